"""Min-value entropy search on every kind of model."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from botorch.optim import optimize_acqf
from scipy.stats import norm

from crashbo import InputError
from crashbo.adapters.botorch.acquisition import MinValueEntropySearch, apply, believe
from crashbo.model.information import log_both_below, log_noisy_information
from crashbo.model.truncation import log_information
from tests.adapters.botorch.helpers import double
from tests.adapters.botorch.models import GRID, NOISE, fake, gpcr, standard_gp

MODELS = {"standard": standard_gp, "gpcr": gpcr}


@pytest.mark.parametrize(
    ("formula", "arguments"),
    [
        (log_information, [[-20.0, -1.0, 0.3, 4.0]]),
        (log_noisy_information, [[-5.0, -1.0, 0.3, 4.0], [0.1, 0.5, 0.9, 0.3]]),
        (log_both_below, [[-5.0, -1.0, 0.3, 2.0], [0.1, -0.5, 0.9, 0.3], [0.5, -0.9, 0.1, 0.0]]),
    ],
)
def test_formulas_of_the_engine_have_their_gradients_in_torch(formula, arguments):
    inputs = tuple(double(one).requires_grad_() for one in arguments)
    assert torch.autograd.gradcheck(lambda *x: apply(formula, *x), inputs)


def test_values_on_a_fake_posterior_match_hand_computation():
    mean, variance, minima = [0.5, -0.2, 2.0], [0.25, 0.04, 1.0], [-0.3, -0.6]
    expected = []
    for m, v in zip(mean, variance, strict=True):
        t = [(m - low) / math.sqrt(v) for low in minima]
        information = [x * norm.pdf(x) / (2 * norm.cdf(x)) - norm.logcdf(x) for x in t]
        expected.append(math.log(sum(information) / 2))
    acquisition = MinValueEntropySearch(fake(mean, variance), double(minima))
    assert torch.allclose(acquisition(torch.zeros(3, 1, 1).double()), double(expected), atol=1e-12)


def test_values_with_noise_on_a_fake_posterior_match_hand_computation():
    mean, variance, minima, noise = [0.5, -0.2], [0.25, 0.04], [-0.3, -0.6], 0.09
    expected = []
    for m, v in zip(mean, variance, strict=True):
        information = []
        for low in minima:
            t = (m - low) / math.sqrt(v)
            ratio = norm.pdf(t) / norm.cdf(t)
            information.append(-0.5 * math.log(1 - v / (v + noise) * ratio * (ratio + t)))
        expected.append(math.log(sum(information) / 2))
    acquisition = MinValueEntropySearch(fake(mean, variance), double(minima), noise_variance=noise)
    assert torch.allclose(acquisition(torch.zeros(2, 1, 1).double()), double(expected), atol=1e-12)


@pytest.mark.parametrize("noise", [None, NOISE**2])
@pytest.mark.parametrize("kind", MODELS)
def test_any_model_can_be_searched(kind, noise):
    acquisition = MinValueEntropySearch(MODELS[kind](), double([-0.7, -0.9]), noise_variance=noise)
    with torch.no_grad():
        values = acquisition(GRID.unsqueeze(-2))
    point, value = optimize_acqf(acquisition, double([[0.0], [1.0]]), q=1, num_restarts=3, raw_samples=32)
    assert point.shape == (1, 1)
    assert 0 <= float(point) <= 1
    assert float(value) >= float(values.max()) - 0.02
    with torch.no_grad():
        assert float(acquisition(point)) == pytest.approx(float(value), abs=1e-9)


@pytest.mark.parametrize("kind", MODELS)
def test_pending_points_make_their_surroundings_less_attractive(kind):
    acquisition = MinValueEntropySearch(MODELS[kind](), double([-0.7, -0.9]))
    X = GRID.unsqueeze(-2)
    with torch.no_grad():
        before = acquisition(X)
        best = int(before.argmax())
        acquisition.set_X_pending(GRID[best : best + 1])
        after = acquisition(X)
        assert after[best] < before[best] - 0.3
        assert int(after.argmax()) != best
        mean_before, mean_after = (m.posterior(X).mean for m in (acquisition._plain, acquisition.model))
        acquisition.set_X_pending(None)
        assert torch.equal(acquisition(X), before)
    assert torch.allclose(mean_before, mean_after, atol=1e-3)
    assert acquisition.X_pending is None


@pytest.mark.parametrize("kind", MODELS)
def test_believing_keeps_the_mean_and_lowers_the_variance(kind):
    model, X = MODELS[kind](), GRID.unsqueeze(-2)
    with torch.no_grad():
        before = model.posterior(X)
        unknown = int(before.variance.argmax())
        after = believe(model, GRID[[unknown, 90]]).posterior(X)
    assert torch.allclose(before.mean, after.mean, atol=1e-3)
    assert (after.variance <= before.variance + 1e-6).all()
    assert float(after.variance[unknown]) < 0.1 * float(before.variance[unknown])


def test_pending_points_may_be_given_at_once():
    pending = double([[0.4]])
    late = MinValueEntropySearch(gpcr(), double([-0.7]))
    late.set_X_pending(pending)
    early = MinValueEntropySearch(gpcr(), double([-0.7]), pending)
    with torch.no_grad():
        assert torch.equal(late(GRID.unsqueeze(-2)), early(GRID.unsqueeze(-2)))


@pytest.mark.parametrize("minima", [[], [[-0.1]], 0.3, [math.nan], [0.0, math.inf]])
def test_bad_minima_are_refused(minima):
    with pytest.raises(InputError, match="`minima` must be a vector of finite samples; got shape"):
        MinValueEntropySearch(gpcr(), double(minima))


@pytest.mark.parametrize("build", [standard_gp, gpcr])
def test_greedy_planning_by_optimize_acqf_spreads_the_batch(build: Callable[[], Any]) -> None:
    model = build()
    with torch.no_grad():
        lowest = model.posterior(torch.linspace(0, 1, 201).double().reshape(-1, 1, 1)).mean.min()
    acquisition = MinValueEntropySearch(model, lowest - double([0.3, 0.1]))
    torch.manual_seed(0)
    points, _ = optimize_acqf(acquisition, double([[0.0], [1.0]]), q=3, num_restarts=4, raw_samples=64, sequential=True)
    assert torch.pdist(points).min() > 0.02
