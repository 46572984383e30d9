"""Failure-aware acquisition, and what every public acquisition must keep."""

import math

import pytest
import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.optim import optimize_acqf

from crashbo.adapters.botorch.acquisition import (
    ConstrainedMinValueEntropySearch,
    FailureAware,
    MinValueEntropySearch,
    mesco,
    success_somewhere,
    total_log_success,
)
from tests.adapters.botorch.helpers import double
from tests.adapters.botorch.models import GRID, cost_and_margin, fake, gpcr, standard_gp

MINIMA = double([-0.7, -0.9])
X = GRID.unsqueeze(-2)


def falling(X):
    """A log success probability that falls along the first input."""
    return -X[..., 0]


def limited(X):
    return -2.0 * (X[..., -1] - 0.5).square()


def own_success(X):
    return gpcr().success_probability(X, log=True)


def improvement() -> LogExpectedImprovement:
    return LogExpectedImprovement(gpcr(), best_f=-0.5, maximize=False)


ACQUISITIONS = {
    "mes": lambda: MinValueEntropySearch(gpcr(), MINIMA),
    "mes with noise": lambda: MinValueEntropySearch(gpcr(), MINIMA, noise_variance=1e-4),
    "mes on a standard GP": lambda: MinValueEntropySearch(standard_gp(), MINIMA),
    "mesco": lambda: mesco(gpcr(), MINIMA, [falling, limited]),
    "mesco looking for success": lambda: mesco(gpcr(), MINIMA, [falling], success_only=True),
    "own crashes": lambda: FailureAware(MinValueEntropySearch(gpcr(), MINIMA), [own_success]),
    "bounded information": lambda: ConstrainedMinValueEntropySearch(gpcr(), MINIMA, falling, noise_variance=1e-4),
    "bounded information of cost and margin": lambda: ConstrainedMinValueEntropySearch(cost_and_margin(), MINIMA),
    "constrained EI": lambda: FailureAware(improvement(), [falling]),
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_every_acquisition_keeps_the_contract(name):
    acquisition = ACQUISITIONS[name]()
    points = double([[0.05], [0.33], [0.5], [0.77]]).unsqueeze(-2).requires_grad_()
    value = acquisition(points)
    assert value.shape == (4,)
    assert value.dtype == torch.float64
    assert value.isfinite().all()
    (gradient,) = torch.autograd.grad(value.sum(), points)
    assert gradient.isfinite().all()
    assert (gradient != 0).any()
    single = torch.cat([acquisition(point.unsqueeze(0)) for point in points])
    assert torch.allclose(single, value, atol=1e-8)
    step = 1e-6
    difference = (acquisition(points.detach() + step) - acquisition(points.detach() - step)) / (2 * step)
    assert torch.allclose(difference, gradient.squeeze(), rtol=2e-3, atol=1e-4)


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_every_acquisition_takes_pending_points(name):
    acquisition = ACQUISITIONS[name]()
    with torch.no_grad():
        before = acquisition(X)
        acquisition.set_X_pending(double([[0.5]]))
        assert acquisition(X).isfinite().all()
        acquisition.set_X_pending(None)
        assert torch.equal(acquisition(X), before)


def test_logs_are_summed():
    inner = improvement()
    with torch.no_grad():
        expected = inner(X) + falling(GRID) + limited(GRID)
        assert torch.allclose(FailureAware(inner, [falling, limited])(X), expected)
        assert torch.equal(FailureAware(inner, [])(X), inner(X))


def test_success_only_ignores_the_acquisition():
    with torch.no_grad():
        for acquisition in (FailureAware(improvement(), [falling], success_only=True), FailureAware(None, [falling])):
            assert acquisition.success_only
            assert torch.equal(acquisition(X), -GRID.squeeze(-1))


def test_mesco_weighs_min_value_entropy_search_by_success():
    with torch.no_grad():
        entropy = MinValueEntropySearch(gpcr(), MINIMA)(X)
        assert torch.allclose(mesco(gpcr(), MINIMA, [falling])(X), entropy + falling(GRID))
        only = mesco(gpcr(), MINIMA, [falling], success_only=True)
        assert only.acquisition is None
        assert torch.equal(only(X), falling(GRID))


def test_mesco_on_a_fake_posterior():
    acquisition = mesco(fake([0.0], [1.0]), double([0.0]), [lambda X: X[..., 0].log()])
    value = acquisition(double([[[0.5]]]))
    assert float(value) == pytest.approx(math.log(math.log(2)) + math.log(0.5), abs=1e-12)


def test_success_moves_the_choice():
    bounds = double([[0.0], [1.0]])
    free, _ = optimize_acqf(improvement(), bounds, q=1, num_restarts=3, raw_samples=32)

    def far_away(X):
        return -1e3 * (X[..., 0] - 0.05).square()

    tied, _ = optimize_acqf(FailureAware(improvement(), [far_away]), bounds, q=1, num_restarts=3, raw_samples=32)
    assert abs(float(tied) - 0.05) < 0.3 * abs(float(free) - 0.05)


def test_total_success_and_its_test():
    points = double([[0.1], [0.4]])
    assert torch.allclose(total_log_success([falling, falling], points), double([-0.2, -0.8]))
    assert torch.equal(total_log_success([], points), double([0.0, 0.0]))
    assert success_somewhere([falling], points, delta=0.1)
    assert not success_somewhere([falling], points, delta=0.05)
    assert success_somewhere([], points, delta=0.05)
