"""Cost and margin together: what is learned, predicted and sampled."""

import math

import numpy as np
import pytest
import torch

from crashbo.data import HybridData
from crashbo.inference.coupled_small import Coupling, SmallCoupled
from crashbo.models.coupled import CoupledFit, fit_coupled
from crashbo.models.coupled_predictor import CoupledPredictor
from crashbo.problems import SYNTHETIC


def measured(name, n=40, seed=0):
    """Random trials of a problem, noise-free."""
    problem = SYNTHETIC[name]
    params = problem.space.sample(n, np.random.default_rng(seed))
    values = [problem.measure(**one)["objective"] for one in params]
    X = torch.from_numpy(np.stack([problem.space.encode(one) for one in params]))
    observed = torch.tensor([i for i, value in enumerate(values) if value is not None])
    costs = torch.tensor([value for value in values if value is not None], dtype=torch.float64)
    return HybridData(X, torch.tensor([value is None for value in values]), observed, costs)


def unfitted(correlation=0.6, n=12, seed=0):
    """A fit with chosen hyperparameters on random trials."""
    rng = np.random.default_rng(seed)
    X, crashed = rng.random((n, 2)), rng.random(n) < 0.4
    observed = np.flatnonzero(~crashed)
    costs = rng.standard_normal(len(observed))
    data = HybridData(*(torch.from_numpy(one) for one in (X, crashed, observed, costs)))
    at = Coupling(np.array([0.3, 0.5]), np.array([0.4, 0.2]), 1.3, 1e-2, correlation, 0.7)
    ep = SmallCoupled(X, 1 - 2.0 * crashed, observed, costs, tolerance=1e-10).solve(at)
    return CoupledFit(data, at, ep, 2.0, 3.0)


def _matern(A, B, length):
    r = math.sqrt(5) * np.sqrt((np.square(A[:, None] - B[None]) / length**2).sum(-1))
    return (1 + r + r**2 / 3) * np.exp(-r)


def dense(fit, Z):
    """Posterior mean and covariance of [costs at Z, margins at Z], by the textbook."""
    at, ep = fit.coupling, fit.ep
    X, seen = fit.data.X.numpy(), fit.data.observed.numpy()
    s, rho = math.sqrt(at.cost_variance), at.correlation
    speaks = ep.site_precision > 0
    places = [(X[seen], s, 0.0), (X[speaks], rho, math.sqrt(1 - rho**2)), (Z, s, 0.0), (Z, rho, math.sqrt(1 - rho**2))]
    full = np.block(
        [
            [
                a[1] * b[1] * _matern(a[0], b[0], at.cost_lengthscale)
                + a[2] * b[2] * _matern(a[0], b[0], at.margin_lengthscale)
                for b in places
            ]
            for a in places
        ]
    )
    m = len(seen) + int(speaks.sum())
    noise = np.concatenate([np.full(len(seen), at.noise_variance), 1 / ep.site_precision[speaks]])
    target = np.concatenate([fit.data.costs.numpy(), at.threshold + ep.site_shift[speaks] / ep.site_precision[speaks]])
    gain = np.linalg.solve(full[:m, :m] + np.diag(noise), full[:m, m:]).T
    return gain @ target, full[m:, m:] - gain @ full[:m, m:]


def test_crashes_that_are_high_costs_are_recognised():
    assert fit_coupled(measured("sim1")).correlation > 0.8


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_crashes_unrelated_to_cost_are_recognised(seed):
    X = np.random.default_rng(seed).random((60, 2))
    crashed = np.abs(X[:, 1] - 0.5) < 0.15
    observed = np.flatnonzero(~crashed)
    costs = np.sin(7 * X[observed, 0])
    found = fit_coupled(HybridData(*(torch.from_numpy(one) for one in (X, crashed, observed, costs))))
    assert abs(found.correlation) < 0.6


def test_crashes_where_costs_are_low_give_a_negative_correlation():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2))
    total = X.sum(1)
    crashed = total > 1.2
    observed = np.flatnonzero(~crashed)
    data = HybridData(*(torch.from_numpy(one) for one in (X, crashed, observed, -total[observed])))
    found = fit_coupled(data)
    assert found.correlation < -0.5
    assert math.isinf(found.threshold)


def test_one_crash_is_no_proof_that_the_lowest_costs_crash():
    found = []
    for seed in range(8):
        X = torch.rand(10, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
        costs = torch.sin(6 * X[:, 0]) + X[:, 1]
        crashed = torch.arange(10) == costs.argmin()
        observed = (~crashed).nonzero().squeeze(-1)
        found.append(fit_coupled(HybridData(X, crashed, observed, costs[observed])).correlation)
    assert min(found) > -0.99  # -0.999, the bound, in all eight by the evidence alone
    assert np.median(found) > -0.9


def test_separate_models_are_uncorrelated():
    assert fit_coupled(measured("sim1"), relation="separate").correlation == 0.0


def test_the_threshold_of_related_crashes_is_a_cost():
    assert fit_coupled(measured("sim1", n=60)).threshold == pytest.approx(1.5, abs=0.4)


@pytest.mark.parametrize("correlation", [-0.8, 0.0, 0.6, 0.99])
def test_predictions_agree_with_the_textbook(correlation):
    fit = unfitted(correlation)
    Z = np.random.default_rng(1).random((6, 2))
    mean, covariance = dense(fit, Z)
    found = CoupledPredictor(fit).joint(torch.from_numpy(Z))
    assert found.cost.numpy() == pytest.approx(mean[:6], abs=1e-8)
    assert found.margin.numpy() == pytest.approx(mean[6:], abs=1e-8)
    assert found.cost_variance.numpy() == pytest.approx(covariance.diagonal()[:6], abs=1e-8)
    assert found.margin_variance.numpy() == pytest.approx(covariance.diagonal()[6:], abs=1e-8)
    assert found.covariance.numpy() == pytest.approx(covariance[:6, 6:].diagonal(), abs=1e-8)


def test_moments_and_success_come_in_the_costs_own_units():
    predictor = CoupledPredictor(unfitted())
    Z = torch.rand(5, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    there = predictor.joint(Z)
    mean, deviation = predictor.moments(Z)
    torch.testing.assert_close(mean, 2.0 + 3.0 * there.cost)
    torch.testing.assert_close(deviation, 3.0 * there.cost_variance.sqrt())
    z = (0.7 - there.margin) / there.margin_variance.sqrt()
    torch.testing.assert_close(predictor.log_success(Z).exp(), torch.special.ndtr(z))


def test_samples_have_the_moments_of_the_predictions():
    predictor = CoupledPredictor(unfitted())
    Z = torch.rand(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(1)
    pairs = [predictor.sample_paths(100, generator, features=256).latent(Z) for _ in range(40)]
    cost, margin = (torch.cat([pair[i] for pair in pairs]) for i in (0, 1))
    there = predictor.joint(Z)
    torch.testing.assert_close(cost.mean(0), there.cost, atol=0.06, rtol=0)
    torch.testing.assert_close(margin.mean(0), there.margin, atol=0.06, rtol=0)
    torch.testing.assert_close(cost.var(0), there.cost_variance, atol=0.03, rtol=0.15)
    torch.testing.assert_close(margin.var(0), there.margin_variance, atol=0.03, rtol=0.15)
    covariance = ((cost - cost.mean(0)) * (margin - margin.mean(0))).mean(0)
    torch.testing.assert_close(covariance, there.covariance, atol=0.05, rtol=0)


def test_believed_points_keep_their_mean_and_lose_their_doubt():
    plain = CoupledPredictor(unfitted())
    Z = torch.tensor([[0.9, 0.1], [0.2, 0.95]], dtype=torch.float64)
    believing = plain.believing(Z[:1]).believing(Z[1:])
    torch.testing.assert_close(believing.joint(Z).cost, plain.joint(Z).cost)
    torch.testing.assert_close(believing.joint(Z).margin, plain.joint(Z).margin)
    assert (plain.moments(Z)[1] > 0.7).all()
    assert (believing.moments(Z)[1] < 0.3).all()  # the noise alone: 3 * 0.1


def test_gradients_reach_the_points():
    predictor = CoupledPredictor(unfitted())

    def both(X):
        return predictor.log_success(X) + predictor.moments(X)[0] + predictor.moments(X)[1]

    Z = torch.rand(3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0), requires_grad=True)
    assert torch.autograd.gradcheck(both, Z)


@pytest.mark.parametrize(
    ("X", "crashed", "costs"),
    [
        ([[0.5, 0.5]] * 6, [True, False] * 3, [1.0, 1.0, 1.0]),
        ([[0.5, 0.5], [0.5, 0.5], [0.1, 0.9]], [True, False, True], [1e12]),
        ([[0.2, 0.2], [0.8, 0.8], [0.8, 0.8 + 1e-9]], [False, False, True], [-1e-12, 1e-12]),
        ([[0.1, 0.1], [0.5, 0.5], [0.9, 0.9], [0.3, 0.3]], [True, True, True, False], [0.0]),
    ],
    ids=["contradictions", "one huge cost", "near-duplicates", "one success"],
)
def test_odd_data_give_a_sound_model(X, crashed, costs):
    crashed = torch.tensor(crashed)
    data = HybridData(
        torch.tensor(X, dtype=torch.float64),
        crashed,
        (~crashed).nonzero().squeeze(-1),
        torch.tensor(costs, dtype=torch.float64),
    )
    predictor = CoupledPredictor(fit_coupled(data))
    Z = torch.rand(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    mean, deviation = predictor.moments(Z)
    assert mean.isfinite().all()
    assert (deviation > 0).all()
    assert predictor.log_success(Z).isfinite().all()


def test_scale_and_offset_of_costs_do_not_matter():
    data = measured("sim1")
    moved = HybridData(data.X, data.crashed, data.observed, 1e6 * data.costs - 3e7)
    one, two = (CoupledPredictor(fit_coupled(each)) for each in (data, moved))
    Z = torch.rand(20, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(1e6 * one.moments(Z)[0] - 3e7, two.moments(Z)[0], rtol=1e-3, atol=1e3)
    torch.testing.assert_close(one.log_success(Z).exp(), two.log_success(Z).exp(), rtol=0, atol=1e-2)
