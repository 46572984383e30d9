"""Costs alone: their evidence, its gradient, and predictions of each from the others."""

import math

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal, norm

from crashbo.inference.costs_small import SmallCosts
from crashbo.models.costs import learn_costs, log_cost_prior, usual_costs

LENGTH, VARIANCE, NOISE = np.array([0.4, 0.7]), 1.3, 0.01


def trials(n: int = 9) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(0).random((n, 2))
    return X, np.sin(5 * X).sum(1) - 0.5


def covariance(X: np.ndarray) -> np.ndarray:
    """By the textbook."""
    r = math.sqrt(5) * np.sqrt((np.square(X[:, None] - X[None]) / LENGTH**2).sum(-1))
    return VARIANCE * (1 + r + r**2 / 3) * np.exp(-r) + NOISE * np.eye(len(X))


def test_the_evidence_is_the_density_of_the_costs() -> None:
    X, costs = trials()
    expected = multivariate_normal(np.zeros(9), covariance(X)).logpdf(costs)
    assert SmallCosts(X, costs)(LENGTH, VARIANCE, NOISE)[0] == pytest.approx(expected)


def test_its_gradient_is_the_one_of_differences() -> None:
    evidence = SmallCosts(*trials())
    theta = np.log([*LENGTH, VARIANCE, NOISE])

    def value(at: np.ndarray) -> float:
        return evidence(np.exp(at[:2]), math.exp(at[2]), math.exp(at[3]))[0]

    found = evidence(LENGTH, VARIANCE, NOISE)[1]
    np.testing.assert_allclose(found, approx_fprime(theta, value, 1e-7), rtol=1e-4, atol=1e-4)


def test_each_cost_is_predicted_from_the_others() -> None:
    X, costs = trials()
    K = covariance(X)
    found = SmallCosts(X, costs).leave_one_out(LENGTH, VARIANCE, NOISE)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        gain = np.linalg.solve(K[np.ix_(rest, rest)], K[rest, i])
        deviation = math.sqrt(K[i, i] - gain @ K[rest, i])
        assert found[i] == pytest.approx(norm(gain @ costs[rest], deviation).logpdf(costs[i]))


def test_learning_ends_where_the_posterior_is_flat() -> None:
    X, costs = trials(25)
    found = learn_costs(X, costs)
    d = X.shape[-1]
    gradient = (
        SmallCosts(X, costs)(np.exp(found.theta[:d]), *np.exp(found.theta[d:]))[1] + log_cost_prior(found.theta)[1]
    )
    assert np.abs(gradient).max() < 0.05
    start = usual_costs(2)
    begun = SmallCosts(X, costs)(np.exp(start[:d]), *np.exp(start[d:]))[0] + log_cost_prior(start)[0]
    assert found.log_posterior > begun


@pytest.mark.parametrize("costs", [np.zeros(6), np.full(6, 3.0), np.array([0, 0, 0, 0, 0, 1e6])])
def test_odd_costs_are_survived(costs: np.ndarray) -> None:
    X = np.repeat(np.random.default_rng(0).random((3, 2)), 2, axis=0)  # every point twice
    found = learn_costs(X, costs)
    assert np.isfinite(found.theta).all()
    assert math.isfinite(found.log_posterior)
    assert np.isfinite(found.leave_one_out()).all()
