"""Crashes that strike at random are told from those that have a place."""

import numpy as np
import pytest
import torch

from crashbo.data import HybridData
from crashbo.models.chance import explained, fit_crashes, with_trials
from crashbo.models.coupled import fit_coupled
from crashbo.models.coupled_predictor import CoupledPredictor
from crashbo.models.surrogates import Surrogates

GRID = torch.rand(50, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def trials(crashes, n=40, seed=0):
    """Random trials of a smooth cost; `crashes` says which of the points do, given a generator."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    crashed = crashes(X, rng)
    observed = np.flatnonzero(~crashed)
    costs = np.sin(5 * X[observed, 0]) + X[observed, 1]
    return HybridData(*(torch.from_numpy(one) for one in (X, crashed, observed, costs)))


def anywhere(X, rng):
    return rng.random(len(X)) < 0.2


def half(X, _):
    return X[:, 0] + 0.5 * X[:, 1] > 1.0


def high(X, _):
    return np.sin(5 * X[:, 0]) + X[:, 1] > 1.0


@pytest.mark.parametrize("seed", range(5))
def test_random_crashes_are_called_so(seed):
    data = trials(anywhere, seed=seed)
    fit = fit_crashes(data)
    share = float(data.crashed.double().mean())
    assert fit.rival is not None
    assert fit.chance == pytest.approx(share, abs=0.08)
    models = Surrogates(CoupledPredictor(fit), told=data)
    assert models.log_success(GRID).exp().min() > 0.999  # nothing to avoid
    torch.testing.assert_close(models.success(GRID), torch.full((50,), 1 - fit.chance, dtype=torch.float64))
    assert models.thresholds == {}


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("crashes", [half, high])
def test_crashes_with_a_place_keep_it(crashes, seed):
    data = trials(crashes, seed=seed)
    fit, plain = fit_crashes(data), fit_coupled(data)
    assert fit.rival is None
    assert fit.chance == 0.0
    assert explained(fit) > 0.5
    assert fit.coupling.correlation == plain.coupling.correlation


def test_costs_are_predicted_as_if_random_crashes_had_not_been():
    data = trials(anywhere)
    model = CoupledPredictor(fit_crashes(data))
    mean, deviation = model.moments(GRID)
    truth = torch.sin(5 * GRID[:, 0]) + GRID[:, 1]
    assert (mean - truth).abs().max() < 0.1
    assert ((mean - truth).abs() < 4 * deviation + 0.01).all()


def test_few_crashes_always_have_a_place():
    assert fit_crashes(trials(anywhere, n=14)).rival is None


def test_one_success_among_crashes_has_a_place():
    data = trials(lambda X, _: np.arange(len(X)) != 7)
    fit = fit_crashes(data)
    assert fit.rival is None
    success = CoupledPredictor(fit).log_success
    here, far = data.X[7:8], GRID[(GRID - data.X[7]).norm(dim=-1) > 0.4]
    assert success(here).exp() > 0.6
    assert success(far).exp().max() < 0.5


def test_crashes_in_one_spot_turn_out_to_have_a_place():
    fit = fit_crashes(trials(anywhere))
    assert fit.rival is not None
    spot = 0.5 + 0.02 * torch.randn(12, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    nothing = torch.zeros(0, dtype=torch.float64)
    for one in spot:
        crash = HybridData(one.unsqueeze(0), torch.tensor([True]), nothing.long(), nothing)
        fit = with_trials(fit, crash)
    assert fit.rival is None
    assert CoupledPredictor(fit).log_success(torch.full((1, 2), 0.5, dtype=torch.float64)).exp() < 0.3


def test_more_random_crashes_change_the_share_alone():
    data, more = trials(anywhere), trials(anywhere, n=5, seed=9)
    fit = fit_crashes(data)
    after = with_trials(fit, more)
    assert after.coupling is fit.coupling
    assert after.chance == (int(data.crashed.sum()) + int(more.crashed.sum()) + 1) / 50


def test_both_outcomes_in_one_place_are_chance_not_an_error():
    X = torch.rand(10, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).repeat(2, 1)
    crashed = torch.arange(20) >= 10
    costs = X[:10].sum(-1)
    fit = fit_crashes(HybridData(X, crashed, torch.arange(10), costs))
    assert fit.chance == pytest.approx(0.44)
