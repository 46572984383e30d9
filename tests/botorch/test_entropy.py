"""Min-value entropy search: formulas in high precision, gradients, and every kind of model."""

import math
from collections.abc import Callable
from typing import Any

import mpmath
import pytest
import torch
from botorch.optim import optimize_acqf
from scipy.stats import norm

from crashbo import InputError
from crashbo.acquisition.entropy import MinValueEntropySearch, believe, log_information, log_noisy_information
from tests.acquisition.models import GRID, NOISE, fake, gpcr, predictor, standard_gp
from tests.helpers import double

MODERATE = [-30.5, -29.5, -8.0, -3.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 2.0, 5.0, 7.0, 9.0, 15.0, 25.0, 37.0]
FAR = [-1e6, -1e2, 40.0, 1e2, 1e6]
MODELS = {"standard": standard_gp, "gpcr": gpcr, "predictor": predictor}


def exact_log_information(t: float) -> float:
    """eq:mES with 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.mpf(t)
        log_cdf = mpmath.log1p(-mpmath.ncdf(-x)) if t > 0 else mpmath.log(mpmath.ncdf(x))
        ratio = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) / mpmath.exp(log_cdf)
        return float(mpmath.log(x * ratio / 2 - log_cdf))


def exact_log_noisy(t: float, share: float) -> float:
    """Its counterpart for noisy evaluations with 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.mpf(t)
        ratio = mpmath.npdf(x) / mpmath.ncdf(x)
        return float(mpmath.log(-mpmath.log1p(-mpmath.mpf(share) * ratio * (ratio + x)) / 2))


def slope(function, t: torch.Tensor) -> torch.Tensor:
    t = t.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(function(t).sum(), t)
    return gradient


def central_difference(function, t: torch.Tensor, step: float = 1e-5) -> torch.Tensor:
    return (function(t + step) - function(t - step)) / (2 * step)


@pytest.mark.parametrize("t", MODERATE + FAR)
def test_information_matches_high_precision(t):
    assert float(log_information(double(t))) == pytest.approx(exact_log_information(t), rel=1e-9, abs=1e-9)


def test_information_decreases_and_stays_finite():
    t = torch.cat([-torch.logspace(8, -4, 400), torch.zeros(1), torch.logspace(-4, 8, 400)]).double()
    value = log_information(t)
    assert value.isfinite().all()
    assert (value.diff() < 0).all()
    assert log_information(double([-1e150, 1e150])).isfinite().all()


def test_gradients_of_information_match_differences():
    t = double([*MODERATE, 1e2])
    assert torch.allclose(slope(log_information, t), central_difference(log_information, t), rtol=1e-5, atol=1e-7)
    assert torch.autograd.gradcheck(log_information, (double([-20.0, -1.0, 0.3, 4.0]).requires_grad_(),))
    far = slope(log_information, double([-1e150, -1e6, 1e6, 1e150]))
    assert far.isfinite().all()
    assert (far <= 0).all()


@pytest.mark.parametrize("t", [-1e6, -1e2, *MODERATE[:12]])
def test_without_noise_noisy_information_is_half_the_log_of_what_is_left(t):
    with mpmath.workdps(60):
        ratio = mpmath.npdf(t) / mpmath.ncdf(t)
        expected = float(mpmath.log(-mpmath.log(1 - ratio * (ratio + mpmath.mpf(t))) / 2))
    assert float(log_noisy_information(double(t), double(1.0))) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("t", [8.0, 10.0, 20.0])
def test_noisy_information_still_tells_poor_points_apart(t):
    assert float(log_noisy_information(double(t), double(1.0))) == pytest.approx(exact_log_noisy(t, 1.0), rel=1e-6)
    assert float(slope(lambda x: log_noisy_information(x, double(1.0)), double([t]))) < 0


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5, 0.9, 1.0 - 1e-6])
@pytest.mark.parametrize("t", [-50.0, -3.0, 0.0, 1.0, 4.0])
def test_noisy_information_matches_high_precision(t, share):
    value = float(log_noisy_information(double(t), double(share)))
    assert value == pytest.approx(exact_log_noisy(t, share), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99, 1.0])
def test_gradients_of_noisy_information_match_differences(share):
    def function(t):
        return log_noisy_information(t, double(share))

    t = double([-25.0, -3.0, -0.5, 0.0, 0.5, 3.0, 4.0])
    assert torch.allclose(slope(function, t), central_difference(function, t), rtol=1e-4, atol=1e-7)
    if share < 1:
        shares = double([share] * len(t))
        gradient = slope(lambda s: log_noisy_information(t, s), shares)
        difference = central_difference(lambda s: log_noisy_information(t, s), shares, 1e-6)
        assert torch.allclose(gradient, difference, rtol=1e-4)


def test_noisy_information_is_finite_everywhere_and_falls_with_noise():
    t = double([-1e150, -1e8, -1e2, -1.0, 0.0, 1.0, 1e2, 1e8, 1e150])[:, None].requires_grad_()
    share = double([1e-300, 1e-12, 0.01, 0.3, 0.6, 1 - 1e-12, 1.0])
    value = log_noisy_information(t, share)
    (gradient,) = torch.autograd.grad(value.sum(), t)
    assert value.isfinite().all()
    assert gradient.isfinite().all()
    assert (value.diff(dim=-1) >= 0).all()
    assert (log_noisy_information(double(0.5), double([0.1, 0.5, 0.9])).diff() > 0).all()


# --- the acquisition -------------------------------------------------------------------------


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


@pytest.mark.parametrize("noise", [1e-10, 0.01, 3.0])
def test_the_quick_way_gives_the_values_and_gradients_of_the_plain_one(noise: float) -> None:
    minima = double([-1.3, -0.9, -4.0])
    at = torch.logspace(-3, 2.5, 40, dtype=torch.float64)
    mean = torch.cat([-1.0 - at, at, at]).requires_grad_()
    deviation = torch.cat([torch.ones(40), torch.ones(40), at.flip(0)]).double().requires_grad_()
    quick = MinValueEntropySearch(standard_gp(), minima, noise_variance=noise).information(mean, deviation)
    share = (deviation.square() / (deviation.square() + noise)).unsqueeze(-1)
    t = (mean.unsqueeze(-1) - minima) / deviation.unsqueeze(-1)
    plain = log_noisy_information(t, share).logsumexp(-1) - math.log(3)
    torch.testing.assert_close(quick, plain, rtol=1e-10, atol=1e-10)
    for one, other in zip(*(torch.autograd.grad(v.sum(), (mean, deviation)) for v in (quick, plain)), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)


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


def test_a_predictor_and_its_model_give_the_same_values():
    minima = double([-0.7, -0.9])
    with torch.no_grad():
        values = [MinValueEntropySearch(model, minima)(GRID.unsqueeze(-2)) for model in (gpcr(), predictor())]
    assert torch.allclose(*values, rtol=1e-4, atol=1e-4)


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
    late = MinValueEntropySearch(predictor(), double([-0.7]))
    late.set_X_pending(pending)
    early = MinValueEntropySearch(predictor(), double([-0.7]), pending)
    with torch.no_grad():
        assert torch.equal(late(GRID.unsqueeze(-2)), early(GRID.unsqueeze(-2)))


@pytest.mark.parametrize("minima", [[], [[-0.1]], 0.3, [math.nan], [0.0, math.inf]])
def test_bad_minima_are_refused(minima):
    with pytest.raises(InputError, match="`minima` must be a vector of finite samples; got shape"):
        MinValueEntropySearch(predictor(), double(minima))


@pytest.mark.parametrize("build", [standard_gp, gpcr, predictor])
def test_greedy_planning_by_optimize_acqf_spreads_the_batch(build: Callable[[], Any]) -> None:
    model = build()
    with torch.no_grad():
        lowest = model.posterior(torch.linspace(0, 1, 201).double().reshape(-1, 1, 1)).mean.min()
    acquisition = MinValueEntropySearch(model, lowest - double([0.3, 0.1]))
    torch.manual_seed(0)
    points, _ = optimize_acqf(acquisition, double([[0.0], [1.0]]), q=3, num_restarts=4, raw_samples=64, sequential=True)
    assert torch.pdist(points).min() > 0.02
