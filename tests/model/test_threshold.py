"""The crash threshold: fixed, maximum likelihood, MAP, and the cases without a search."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from crashbo.model.ep import Labels
from crashbo.model.exact import exact_truncation
from crashbo.model.inference import solve
from crashbo.model.threshold import ThresholdRule, estimate_threshold
from tests.helpers import EXAMPLE1, example1_given, given_values, matern32_matrix

SIGN = np.where(EXAMPLE1.crashed, -1.0, 1.0)


def estimate(rule: ThresholdRule, **options):
    """Of Example 1."""
    return estimate_threshold(example1_given(), SIGN, rule, **options)


def test_maximum_likelihood_on_example1():
    found = estimate(ThresholdRule())
    assert found.threshold == pytest.approx(2.0284, abs=2e-4)
    assert found.solution.ep.converged.all()
    assert len(found.relaxed) == 0


def test_maximum_likelihood_maximises_the_exact_integral():
    given = example1_given()

    def loss(threshold: float) -> float:
        return -exact_truncation(given.mean[0], given.covariance[0], Labels(SIGN, threshold, 0.0)).log_partition

    exact = minimize_scalar(loss, bounds=(1.9, 2.5), method="bounded", options={"xatol": 1e-5})
    assert estimate(ThresholdRule()).threshold == pytest.approx(exact.x, abs=0.003)


def test_a_fixed_threshold_stays():
    found = estimate(ThresholdRule(fixed=2.5))
    assert found.threshold == 2.5
    assert found.solves == 1


def test_map_is_where_evidence_and_hyperprior_balance():
    rule = ThresholdRule(prior=(2.3, 0.1))
    found = estimate(rule)

    def objective(threshold: float) -> float:
        result = solve(example1_given(), Labels(SIGN, threshold, 0.0))
        return float(result.log_evidence[0]) - 0.5 * ((threshold - 2.3) / 0.1) ** 2

    best = objective(found.threshold)
    assert found.log_posterior == pytest.approx(best, abs=1e-6)
    assert best >= objective(found.threshold - 0.01)
    assert best >= objective(found.threshold + 0.01)


def test_a_tighter_hyperprior_pulls_harder():
    found = [estimate(ThresholdRule(prior=(3.0, sd))).threshold for sd in (100.0, 0.3, 0.1, 1e-3)]
    assert found[0] == pytest.approx(2.0284, abs=0.003)
    assert found == sorted(found)
    assert found[-1] == pytest.approx(3.0, abs=0.01)


def test_an_earlier_estimate_is_a_good_start():
    cold = estimate(ThresholdRule())
    warm = estimate(ThresholdRule(), guess=cold.threshold, sites=cold.solution.ep.sites)
    assert warm.threshold == pytest.approx(cold.threshold, abs=1e-4)
    assert warm.solves < cold.solves


@pytest.mark.parametrize("width", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(6))
def test_the_slope_is_zero_at_the_estimate(seed, width):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(20, 2))
    latent = np.sin(5 * X[:, 0]) + 0.5 * np.cos(7 * X[:, 1])
    crashed = latent > 0.3
    observed = np.flatnonzero(~crashed)
    given = given_values(matern32_matrix(X, X, 0.5, 1.0), observed, latent[observed], 0.05**2)
    rule = ThresholdRule(prior=(0.0, 5.0))
    found = estimate_threshold(given, np.where(crashed, -1.0, 1.0), rule, width=width)
    curvature = max(found.solution.ep.precision.sum(), 1.0)
    slope = rule.log_density(found.threshold)[1] - found.solution.ep.gradient.sum()
    assert abs(slope) < 1e-3 * curvature
    assert found.solves < 25


@pytest.mark.parametrize(
    ("rule", "crashed", "expected"),
    [
        (ThresholdRule(fixed=1.5), [True, False], 1.5),
        (ThresholdRule(fixed=1.5), [], 1.5),
        (ThresholdRule(), [], 0.0),
        (ThresholdRule(prior=(2.0, 1.0)), [], 2.0),
        (ThresholdRule(prior=(2.0, 1.0)), [True, True], 0.0),
        (ThresholdRule(), [False], math.inf),
        (ThresholdRule(prior=(2.0, 1.0)), [False], None),
        (ThresholdRule(), [True, False], None),
    ],
)
def test_cases_without_a_search(rule, crashed, expected):
    assert rule.without_search(np.where(np.array(crashed, dtype=bool), -1.0, 1.0)) == expected


def test_hyperprior_slope_is_its_derivative():
    rule = ThresholdRule(prior=(1.0, 2.0))
    value, slope = rule.log_density(3.5)
    assert value == pytest.approx(-0.5 * 1.25**2)
    assert slope == pytest.approx(-2.5 / 4)
    assert ThresholdRule().log_density(3.5) == (0.0, 0.0)


def test_the_estimate_lies_above_the_floor():
    free = ThresholdRule(prior=(0.0, 5.0))
    mode = estimate(free)
    floored = free.with_floor(np.array([mode.threshold + 0.1]))
    assert estimate(floored).threshold == pytest.approx(mode.threshold + 0.1)
    assert free.with_floor(np.zeros(0)) == free


def test_only_successes_under_maximum_likelihood_never_crash():
    given = given_values(matern32_matrix(EXAMPLE1.X[:3], EXAMPLE1.X[:3]), np.arange(3), EXAMPLE1.costs, 0.02**2)
    found = estimate_threshold(given, np.ones(3), ThresholdRule())
    assert found.threshold == math.inf
    assert found.solution.ep.log_partition[0] == 0.0
