"""GPCR and its threshold against independent computations."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from crashbo.learning.threshold import solve_labels
from crashbo.strategies.paper.data import Data
from crashbo.strategies.paper.gpcr import GPCR, Prior
from crashbo.strategies.paper.hyperparameters import _log_posterior, learned_prior
from tests.strategies.paper.models import example1, joint, simulation1, simulation2

PRIOR = Prior(np.array([0.2]), 0.5, 0.02**2, None, "matern32")


def data(values: list[float | None], limit: float | None = None) -> Data:
    above = np.array([one is None for one in values])
    seen = np.array([one for one in values if one is not None])
    X = np.linspace(0.1, 0.9, len(values))[:, None]
    return Data(X, np.flatnonzero(~above), seen, above, np.arange(len(values)), limit)


def test_example_1_by_maximum_likelihood():
    assert example1().threshold == pytest.approx(2.0284, abs=2e-4)


def test_example_1_at_the_papers_threshold():
    found = GPCR.fit(data([0.5, 2.0, 1.0, None, None], limit=2.03), PRIOR).posterior.ep
    assert found.log_partition[0] == pytest.approx(-8.7800, abs=2e-3)
    assert found.mean[0] == pytest.approx([0.5005, 1.9956, 1.0010, 2.2685, 2.3067], abs=3e-3)
    assert np.sqrt(found.variance[0]) == pytest.approx([0.0200, 0.0179, 0.0200, 0.2112, 0.2437], abs=3e-3)


@pytest.mark.parametrize("prior", [None, (0.0, 5.0), (1.5, 0.1)])
def test_the_threshold_is_the_maximum_over_a_grid(prior):
    model = example1(prior)
    grid = np.linspace(1.5, 2.5, 2001)
    heights = solve_labels(model.posterior.given, model.data.sign, grid).log_partition
    if prior is not None:
        heights = heights + norm.logpdf(grid, *prior)
    assert model.threshold == pytest.approx(grid[heights.argmax()], abs=6e-4)


def test_the_spread_of_the_threshold_is_that_of_its_posterior():
    model = example1((0.0, 5.0))
    grid = np.linspace(1.8, 4.0, 4001)
    heights = solve_labels(model.posterior.given, model.data.sign, grid).log_partition + norm.logpdf(grid, 0, 5)
    density = np.exp(heights - heights.max())
    exact = math.sqrt(np.trapezoid(density * (grid - model.threshold) ** 2, grid) / np.trapezoid(density, grid))
    assert model.limit.deviation == pytest.approx(exact, rel=0.05)


def test_prescribed_thresholds():
    assert GPCR.fit(data([None, None]), PRIOR).threshold == 0.0
    assert GPCR.fit(data([None, None]), PRIOR).limit is None
    assert GPCR.fit(data([1.0, 2.0]), PRIOR).threshold == math.inf
    assert GPCR.fit(data([1.0, 2.0]), PRIOR).limit is None
    wide = Prior(np.array([0.2]), 0.5, 0.02**2, (0.0, 5.0), "matern32")
    assert 2.0 < GPCR.fit(data([1.0, 2.0]), wide).threshold < 5.0
    known = GPCR.fit(data([1.0, None], limit=3.0), PRIOR)
    assert (known.threshold, known.limit.value, known.limit.deviation) == (3.0, 3.0, 0.0)


@pytest.mark.parametrize("model", [example1(), simulation1(), *simulation2()])
def test_predictions_are_those_of_a_gp_on_values_and_sites(model):
    X = np.random.default_rng(0).random((7, model.data.X.shape[-1]))
    mean, covariance = joint(model, X)
    found = model.moments(X)
    unit = math.sqrt(model.prior.variance)
    assert found[0] == pytest.approx(mean, abs=1e-6 * unit)
    assert found[1] == pytest.approx(np.sqrt(covariance.diagonal()), abs=1e-5 * unit)
    success = np.exp(model.log_success(model.predictor(X)))
    assert success == pytest.approx(norm.cdf((model.threshold - mean) / np.sqrt(covariance.diagonal())), abs=1e-5)


def test_the_gradient_of_success():
    model, X, step = simulation1(), np.random.default_rng(1).random((5, 2)), 1e-6
    found = model.log_success_slope(model.predictor(X))
    for j in range(2):
        move = step * np.eye(2)[j]
        ahead, behind = (model.log_success(model.predictor(X + one)) for one in (move, -move))
        assert found[:, j] == pytest.approx((ahead - behind) / (2 * step), rel=1e-4, abs=1e-6)


def test_pending_points_keep_the_mean_and_lose_variance():
    model, X = simulation1(), np.array([[0.21, 0.83], [0.6, 0.4]])
    after = model.believing(X)
    assert after.moments(X)[0] == pytest.approx(model.moments(X)[0], abs=1e-3)
    assert (after.moments(X)[1] < 0.05 * model.moments(X)[1]).all()
    assert model.believing(X[:0]) is model


@pytest.mark.parametrize("known", [None, 1.7])
def test_the_gradient_that_hyperparameters_are_learned_by(known):
    model = simulation1()
    rows = model.posterior.rows
    theta = np.array([-1.0, -1.4, 0.2, -5.0, 1.6])[: 5 if known is None else 4]
    value, gradient = _log_posterior(rows, theta, known)
    for j in range(len(theta)):
        move = 1e-5 * np.eye(len(theta))[j]
        ahead, behind = (_log_posterior(rows, theta + one, known)[0] for one in (move, -move))
        assert gradient[j] == pytest.approx((ahead - behind) / 2e-5, rel=1e-3, abs=1e-3)
    assert math.isfinite(value)


def test_learned_hyperparameters_do_not_depend_on_the_units():
    model = simulation1()
    told = model.data
    other = Data(told.X, told.observed, 7 + 1000 * told.values, told.above, told.labelled)
    first, second = (GPCR.fit(one, learned_prior(one)) for one in (told, other))
    assert second.prior.lengthscale == pytest.approx(first.prior.lengthscale, rel=1e-3)
    assert second.limit.value == pytest.approx(7 + 1000 * first.limit.value, rel=1e-3)
    assert learned_prior(data([None, None])).variance == pytest.approx(1.0)
