"""GPCR and its threshold against independent computations."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from crashbo.model.block import Block
from crashbo.model.threshold import solve_labels
from crashbo.problem.options import FixedModel
from crashbo.search.paper.model import GPCR, fit, learn, log_evidence
from crashbo.search.paper.strategy import log_success
from tests.search.paper.models import example1, fixed_fit, joint, make_block, simulation1, simulation2


def block(values: list[float | None], limit: float | None = None, prior: tuple[float, float] | None = None) -> Block:
    X = np.linspace(0.1, 0.9, len(values))[:, None]
    return make_block(X, values, FixedModel(0.2, 0.5, 0.02, prior), threshold=limit)


def log_truncation(model: GPCR, thresholds: np.ndarray) -> np.ndarray:
    """log Z_EP at thresholds in the output's own units."""
    found = solve_labels(model.posterior.given, model.posterior.rows.sign, thresholds / model.deviation)
    return found.log_partition


def test_example_1_by_maximum_likelihood():
    assert example1().threshold == pytest.approx(2.0284, abs=2e-4)


def test_example_1_at_the_papers_threshold():
    model = fixed_fit(block([0.5, 2.0, 1.0, None, None], limit=2.03))
    found, unit = model.posterior.ep, model.deviation
    assert found.log_partition[0] == pytest.approx(-8.7800, abs=2e-3)
    assert unit * found.mean[0] == pytest.approx([0.5005, 1.9956, 1.0010, 2.2685, 2.3067], abs=3e-3)
    assert unit * np.sqrt(found.variance[0]) == pytest.approx([0.0200, 0.0179, 0.0200, 0.2112, 0.2437], abs=3e-3)


@pytest.mark.parametrize("prior", [None, (0.0, 5.0), (1.5, 0.1)])
def test_the_threshold_is_the_maximum_over_a_grid(prior):
    model = example1(prior)
    grid = np.linspace(1.5, 2.5, 2001)
    heights = log_truncation(model, grid)
    if prior is not None:
        heights = heights + norm.logpdf(grid, *prior)
    assert model.threshold == pytest.approx(grid[heights.argmax()], abs=6e-4)


def test_the_spread_of_the_threshold_is_that_of_its_posterior():
    model = example1((0.0, 5.0))
    grid = np.linspace(1.8, 4.0, 4001)
    heights = log_truncation(model, grid) + norm.logpdf(grid, 0, 5)
    density = np.exp(heights - heights.max())
    exact = math.sqrt(np.trapezoid(density * (grid - model.threshold) ** 2, grid) / np.trapezoid(density, grid))
    assert model.limit().deviation == pytest.approx(exact, rel=0.05)


def test_prescribed_thresholds():
    assert fixed_fit(block([None, None])).threshold == 0.0
    assert fixed_fit(block([None, None])).limit() is None
    assert fixed_fit(block([1.0, 2.0])).threshold == math.inf
    assert fixed_fit(block([1.0, 2.0])).limit() is None
    assert 2.0 < fixed_fit(block([1.0, 2.0], prior=(0.0, 5.0))).threshold < 5.0
    known = fixed_fit(block([1.0, None], limit=3.0))
    assert known.threshold == pytest.approx(3.0)
    assert (known.limit().value, known.limit().deviation) == (3.0, 0.0)


@pytest.mark.parametrize("model", [example1(), simulation1(), *simulation2()])
def test_predictions_are_those_of_a_gp_on_values_and_sites(model):
    X = np.random.default_rng(0).random((7, model.models.block.X.shape[-1]))
    mean, covariance = joint(model, X)
    deviation, found = np.sqrt(covariance.diagonal()), model.moments(X)
    assert found[0] == pytest.approx(mean, abs=1e-6 * model.deviation)
    assert found[1] == pytest.approx(deviation, abs=1e-5 * model.deviation)
    assert model.success(X) == pytest.approx(norm.cdf((model.threshold - mean) / deviation), abs=1e-5)


def test_the_gradient_of_success():
    model, X, step = simulation1(), np.random.default_rng(1).random((5, 2)), 1e-6
    q = model.predictor(X)
    found = q.vjp(*log_success(model, q)[1:])
    for j in range(2):
        move = step * np.eye(2)[j]
        ahead, behind = (model.log_held(model.predictor(X + one))[0] for one in (move, -move))
        assert found[:, j] == pytest.approx((ahead - behind) / (2 * step), rel=1e-4, abs=1e-6)


def test_pending_points_keep_the_mean_and_lose_variance():
    model, X = simulation1(), np.array([[0.21, 0.83], [0.6, 0.4]])
    after = model.with_pending(X)
    assert after.moments(X)[0] == pytest.approx(model.moments(X)[0], abs=1e-3)
    assert (after.moments(X)[1] < 0.05 * model.moments(X)[1]).all()
    assert model.with_pending(X[:0]) is model


def test_the_gradient_that_hyperparameters_are_learned_by():
    model = simulation1()
    told, rows = model.models.block, model.posterior.rows

    def found(theta: np.ndarray) -> tuple[float, np.ndarray]:
        return log_evidence(told, rows, theta[:4], theta[4])

    theta = np.array([-1.0, -1.4, 0.2, -5.0, 1.6])
    value, gradient = found(theta)
    for j in range(len(theta)):
        move = 1e-5 * np.eye(len(theta))[j]
        ahead, behind = (found(theta + one)[0] for one in (move, -move))
        assert gradient[j] == pytest.approx((ahead - behind) / 2e-5, rel=1e-3, abs=1e-3)
    assert math.isfinite(value)


def test_learned_hyperparameters_do_not_depend_on_the_units():
    told = replace(simulation1().models.block, fixed=None)
    other = replace(told, values=7 + 1000 * told.values)
    first, second = (fit(one, learn(one)) for one in (told, other))
    assert second.point.theta[:2] == pytest.approx(first.point.theta[:2], abs=1e-3)
    assert second.limit().value == pytest.approx(7 + 1000 * first.limit().value, rel=1e-3)
    assert learn(block([None, None])).theta[-2] == pytest.approx(0.0)
