"""Bounded minimisation, against SciPy's."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from crashbo.descent import Effort, descend

EFFORT = Effort(300, precision=1e-13, steepest=1e-8)


def valley(x):
    """Rosenbrock's function."""
    gap = x[1:] - x[:-1] ** 2
    slope = np.zeros_like(x)
    slope[:-1] += -400 * x[:-1] * gap - 2 * (1 - x[:-1])
    slope[1:] += 200 * gap
    return float((100 * gap**2 + (1 - x[:-1]) ** 2).sum()), slope


def bowl(x):
    root = np.random.default_rng(0).standard_normal((len(x), len(x)))
    matrix, centre = root @ root.T + 0.1 * np.eye(len(x)), np.linspace(-3, 3, len(x))
    return float(0.5 * x @ matrix @ x - centre @ x), matrix @ x - centre


@pytest.mark.parametrize("function", [valley, bowl])
@pytest.mark.parametrize(("low", "high"), [(-9.0, 9.0), (-2.0, 0.8), (0.1, 0.6)])
@pytest.mark.parametrize("seed", range(3))
def test_finds_what_scipy_finds(function, low, high, seed):
    bounds = np.full(3, low), np.full(3, high)
    start = np.random.default_rng(seed).uniform(*bounds)
    found = descend(function, start, *bounds, EFFORT)
    options = {"ftol": 1e-13, "gtol": 1e-8, "maxiter": 300}
    expected = minimize(function, start, jac=True, method="L-BFGS-B", bounds=[(low, high)] * 3, options=options)
    assert found.value == pytest.approx(expected.fun, rel=1e-6, abs=1e-6)
    assert (found.x >= low).all()
    assert (found.x <= high).all()
    assert found.value == function(found.x)[0]


def test_a_start_outside_is_moved_inside_and_bounds_may_be_infinite():
    found = descend(bowl, np.full(3, -20.0), np.full(3, -1.0), np.full(3, math.inf), EFFORT)
    assert (found.x >= -1).all()
    assert found.value <= bowl(np.full(3, -1.0))[0]


def test_a_flat_function_stays_where_it_is():
    found = descend(lambda x: (1.0, np.zeros_like(x)), np.array([0.3]), np.zeros(1), np.ones(1), EFFORT)
    assert found.x == pytest.approx(0.3)
    assert found.evaluations == 1


def test_a_wall_of_huge_values_is_backed_away_from():
    def walled(x):
        return (1e300, np.zeros_like(x)) if x[0] > 0.5 else (float(-x[0]), -np.ones(1))

    found = descend(walled, np.array([0.1]), np.zeros(1), np.ones(1), EFFORT)
    assert 0.1 < found.x[0] <= 0.5


def test_no_iteration_begins_after_the_evaluations_are_spent():
    counted = []

    def function(x):
        counted.append(1)
        return valley(x)

    found = descend(function, np.full(4, -1.2), np.full(4, -2.0), np.full(4, 2.0), Effort(300, evaluations=10))
    assert found.evaluations == len(counted)
    assert len(counted) <= 10 + 20


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-200, 1e150, 1e200])
def test_values_and_slopes_of_any_size(size):
    def function(x):
        return size * float(np.square(x - 0.3).sum()), 2 * size * (x - 0.3)

    found = descend(function, np.full(2, 0.9), np.zeros(2), np.ones(2), EFFORT)
    assert found.value <= function(np.full(2, 0.9))[0]
    if size > 1:
        assert found.x == pytest.approx(0.3, abs=0.3)
