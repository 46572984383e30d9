"""The one MAP driver, and the priors it is used with."""

import math

import numpy as np
import pytest

from crashbo.errors import NumericalError
from crashbo.model.map import find_mode, log_value_prior, log_varying_fraction, usual_values, value_bounds
from crashbo.model.numbers import NUMBERS


def test_it_finds_a_mode_within_bounds():
    found = find_mode(lambda x: (-float((x - 2) @ (x - 2)), -2 * (x - 2)), np.zeros(2), [(-1.0, 1.0), (-5.0, 5.0)])
    assert found.theta == pytest.approx([1.0, 2.0], abs=1e-3)
    assert found.log_posterior == pytest.approx(-1.0, abs=1e-3)


def test_a_point_without_a_value_is_stepped_back_from():
    def log_posterior(x):
        if x[0] > 0.5:
            raise NumericalError("too far")
        return -float((x[0] - 0.4) ** 2), -2 * (x - 0.4)

    assert find_mode(log_posterior, np.array([-3.0]), [(-5.0, 5.0)]).theta == pytest.approx([0.4], abs=0.05)


def test_nowhere_a_value_is_said():
    def never(x):
        raise NumericalError("never")

    assert find_mode(never, np.zeros(1), [(-1.0, 1.0)]).log_posterior == -np.inf


@pytest.mark.parametrize("d", [1, 3])
def test_the_priors_gradient(d):
    theta = usual_values(d) + np.random.default_rng(0).normal(size=d + 2)
    _, gradient = log_value_prior(theta, NUMBERS)
    for j in range(d + 2):
        step = np.zeros(d + 2)
        step[j] = 1e-5
        slope = (log_value_prior(theta + step, NUMBERS)[0] - log_value_prior(theta - step, NUMBERS)[0]) / 2e-5
        assert gradient[j] == pytest.approx(slope, rel=1e-5, abs=1e-8)
    assert len(value_bounds(d)) == d + 2


def test_the_varying_fraction_of_the_variance_is_that_of_draws_over_the_cube() -> None:
    logs = np.log([0.3, 1.5, 4.0])
    share, gradient = log_varying_fraction(logs)
    # Points of variance 1/12 along every coordinate: the mean squared exponential correlation of pairs, by quadrature.
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    gaps, weights = nodes / math.sqrt(6), weights / weights.sum()
    level = math.prod(float(weights @ np.exp(-0.5 * np.square(gaps / length))) for length in np.exp(logs))
    assert math.exp(share) == pytest.approx(1 - level, abs=2e-3)
    for i in range(3):
        step = 1e-5 * np.eye(3)[i]
        slope = (log_varying_fraction(logs + step)[0] - log_varying_fraction(logs - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, rel=1e-6)
