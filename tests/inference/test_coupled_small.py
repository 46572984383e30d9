"""The evidence of costs and crashes together, against its limits and against independent computation."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from crashbo.inference.coupled_small import Coupling, SmallCoupled
from crashbo.inference.ep import Labels
from crashbo.inference.evidence_small import Hyperparameters, SmallEvidence
from crashbo.inference.exact import exact_truncation

AT = Coupling(np.array([0.3, 0.5]), np.array([0.4, 0.2]), 1.3, 1e-2, 0.6, 0.7)


def trials(n=20, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    crashed = rng.random(n) < 0.4
    observed = np.flatnonzero(~crashed)
    return X, 1 - 2.0 * crashed, observed, rng.standard_normal(len(observed))


def problem(**named):
    return SmallCoupled(*trials(**named), tolerance=1e-10)


def test_a_correlation_of_one_is_gpcr():
    X, sign, observed, costs = trials()
    coupled = SmallCoupled(X, sign, observed, costs, tolerance=1e-10)(replace(AT, correlation=1.0))
    alone = SmallEvidence(X, sign, observed, costs, nu=2.5, width=0.0)
    deviation = math.sqrt(AT.cost_variance)
    expected = alone(
        Hyperparameters(AT.cost_lengthscale, AT.cost_variance, AT.noise_variance, AT.threshold * deviation)
    )
    assert coupled.value == pytest.approx(expected.value, abs=1e-6)


def test_a_correlation_of_zero_is_two_separate_models():
    X, sign, observed, costs = trials()
    coupled = SmallCoupled(X, sign, observed, costs, tolerance=1e-10)(replace(AT, correlation=0.0))
    labels = SmallEvidence(X, sign, observed[:0], costs[:0], nu=2.5, width=0.0)
    crash_part = labels(Hyperparameters(AT.margin_lengthscale, 1.0, 1.0, AT.threshold)).value
    regression = SmallEvidence(X[observed], np.ones(len(observed)), np.arange(len(observed)), costs, nu=2.5, width=0.0)
    cost_part = regression(Hyperparameters(AT.cost_lengthscale, AT.cost_variance, AT.noise_variance, math.inf)).value
    assert coupled.value == pytest.approx(crash_part + cost_part, abs=1e-6)


def test_the_evidence_agrees_with_the_exact_integral():
    X, sign, observed, costs = trials(n=5, seed=3)
    found = SmallCoupled(X, sign, observed, costs, tolerance=1e-10)(AT)
    rf, rh = (_matern(X, length) for length in (AT.cost_lengthscale, AT.margin_lengthscale))
    s = math.sqrt(AT.cost_variance)
    block = s**2 * rf[np.ix_(observed, observed)] + AT.noise_variance * np.eye(len(observed))
    cross = AT.correlation * s * rf[:, observed]
    margins = AT.correlation**2 * rf + (1 - AT.correlation**2) * rh
    mean = cross @ np.linalg.solve(block, costs)
    covariance = margins - cross @ np.linalg.solve(block, cross.T)
    regression = -0.5 * (costs @ np.linalg.solve(block, costs) + np.linalg.slogdet(2 * math.pi * block)[1])
    mean, covariance, sign = (torch.from_numpy(one) for one in (mean, covariance, sign))
    labels = Labels(sign, torch.tensor([AT.threshold]), torch.tensor([1e-6]))
    mass = exact_truncation(mean, covariance, labels).log_partition
    assert found.value == pytest.approx(regression + mass, abs=0.02)


def _matern(X, length):
    r = math.sqrt(5) * np.sqrt((np.square(X[:, None] - X[None]) / length**2).sum(-1))
    return (1 + r + r**2 / 3) * np.exp(-r)


@pytest.mark.parametrize("correlation", [-0.7, 0.0, 0.6])
def test_gradients_agree_with_finite_differences(correlation):
    evidence = problem()
    at = replace(AT, correlation=correlation)
    gradient = evidence(at).gradient

    def slope(change):
        h = 1e-5
        return (evidence(change(h)).value - evidence(change(-h)).value) / (2 * h)

    one, two = np.eye(2)
    expected = [
        *(slope(lambda h, e=e: replace(at, cost_lengthscale=at.cost_lengthscale * np.exp(h * e))) for e in (one, two)),
        *(
            slope(lambda h, e=e: replace(at, margin_lengthscale=at.margin_lengthscale * np.exp(h * e)))
            for e in (one, two)
        ),
        slope(lambda h: replace(at, cost_variance=at.cost_variance * math.exp(h))),
        slope(lambda h: replace(at, noise_variance=at.noise_variance * math.exp(h))),
        slope(lambda h: replace(at, correlation=at.correlation + h)),
        slope(lambda h: replace(at, threshold=at.threshold + h)),
    ]
    assert gradient == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_the_order_of_trials_does_not_matter():
    X, sign, observed, costs = trials()
    turn = np.random.default_rng(1).permutation(len(X))
    place = np.argsort(turn)
    order = np.argsort(place[observed])
    shuffled = SmallCoupled(X[turn], sign[turn], place[observed][order], costs[order], tolerance=1e-10)
    assert shuffled(AT).value == pytest.approx(problem()(AT).value, abs=1e-8)
