"""Cost and margin as a BoTorch model of two outputs."""

import pytest
import torch
from botorch.acquisition.logei import qLogExpectedImprovement
from botorch.acquisition.objective import GenericMCObjective
from botorch.optim import optimize_acqf
from botorch.sampling.normal import SobolQMCNormalSampler
from torch import Tensor

from crashbo import CostAndMargin
from crashbo.errors import InputError
from crashbo.model.prediction import Predictor


def trials(bounds: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Costs fall towards a corner; a disk in the middle crashes."""
    X = torch.quasirandom.SobolEngine(2, seed=0).draw(40, dtype=torch.float64)
    cost = 100 * (X - 0.8).square().sum(-1, keepdim=True)
    crashed = (X - 0.5).norm(dim=-1) < 0.3
    return (X if bounds is None else bounds[0] + X * (bounds[1] - bounds[0])), cost, crashed


@pytest.fixture(scope="module")
def model() -> CostAndMargin:
    return CostAndMargin(*trials())


def test_single_points_are_those_of_the_engine(model: CostAndMargin) -> None:
    X = torch.rand(50, 2, dtype=torch.float64)
    warp = model.models.warps[0]
    q = Predictor(model.models.posterior)(X.numpy())
    with torch.no_grad():
        posterior = model.posterior(X.unsqueeze(-2))
    assert posterior.mean.shape == (50, 1, 2)
    mean, variance, covariance = (torch.as_tensor(part[0]) for part in (q.mean, q.variance, q.covariance))
    torch.testing.assert_close(posterior.mean[:, 0, 0], warp.offset + warp.scale * mean[0])
    torch.testing.assert_close(posterior.mean[:, 0, 1], mean[1])
    torch.testing.assert_close(posterior.variance[:, 0, 0], warp.scale**2 * variance[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(posterior.variance[:, 0, 1], variance[1], rtol=1e-4, atol=1e-6)
    joint = posterior.distribution.covariance_matrix[:, 0, 1]
    torch.testing.assert_close(joint, warp.scale * covariance[1], rtol=1e-4, atol=1e-4)
    z = (model.threshold - mean[1]) / variance[1].sqrt()
    torch.testing.assert_close(
        model.success_probability(X), (1 - model.lapse) * torch.special.ndtr(z), rtol=1e-4, atol=1e-6
    )


def test_it_learns_where_trials_crash(model: CostAndMargin) -> None:
    X = torch.rand(400, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    crashes = (X - 0.5).norm(dim=-1) < 0.3
    assert float(((model.success_probability(X) < 0.5) == crashes).double().mean()) > 0.9
    assert model.correlation < 0.5


def test_gradients_reach_the_inputs(model: CostAndMargin) -> None:
    X = torch.rand(3, 2, 2, dtype=torch.float64, requires_grad=True)
    posterior = model.posterior(X)
    (gradient,) = torch.autograd.grad(posterior.mean.sum() + posterior.variance.sum(), X)
    assert gradient.isfinite().all()
    assert (gradient != 0).all()


def test_samples_have_the_covariance_between_points_and_outputs(model: CostAndMargin) -> None:
    X = torch.tensor([[0.2, 0.2], [0.25, 0.2], [0.9, 0.1]], dtype=torch.float64)
    posterior = model.posterior(X)
    with torch.no_grad():
        draws = posterior.rsample(torch.Size([20000])).transpose(-1, -2).reshape(20000, 6)
    expected = posterior.distribution.covariance_matrix
    scale = expected.diagonal().sqrt()
    torch.testing.assert_close(
        draws.mT.cov() / scale / scale[:, None], expected / scale / scale[:, None], rtol=0, atol=0.05
    )
    single = model.posterior(X[:2].unsqueeze(0)).distribution.covariance_matrix[0]
    torch.testing.assert_close(single[:2, :2], expected[:2, :2])


@pytest.fixture(scope="module")
def score(model: CostAndMargin) -> qLogExpectedImprovement:
    """BoTorch's constrained improvement over the best trial."""
    _, cost, crashed = trials()
    return qLogExpectedImprovement(
        model,
        best_f=-cost[~crashed].min(),
        sampler=SobolQMCNormalSampler(torch.Size([64]), seed=0),
        objective=GenericMCObjective(lambda Z, X=None: -Z[..., 0]),
        constraints=[lambda Z: Z[..., 1] - model.threshold],
    )


def test_a_constrained_acquisition_of_botorch_gives_nothing_for_the_disk(
    model: CostAndMargin, score: qLogExpectedImprovement
) -> None:
    X = torch.quasirandom.SobolEngine(2, seed=7).draw(1000, dtype=torch.float64)
    with torch.no_grad():
        value = score(X.unsqueeze(-2))
    crash = model.success_probability(X) < 0.1
    assert crash.double().mean() > 0.1
    assert value[crash].max() < value.max() - 20  # in logs; at the best cost nothing else matters as much


# Costs are exact: at the optimum the variance is of the size of rounding errors, and a line search of BoTorch may end.
@pytest.mark.filterwarnings("ignore:Optimization failed:RuntimeWarning")
@pytest.mark.parametrize("seed", range(3))
def test_its_best_point_is_the_optimum_beside_the_disk(
    model: CostAndMargin, score: qLogExpectedImprovement, seed: int
) -> None:
    bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    torch.manual_seed(seed)
    (point,), _ = optimize_acqf(score, bounds, q=1, num_restarts=4, raw_samples=64)
    assert model.success_probability(point) > 0.9
    assert (point - 0.8).norm() < 0.05
    # Beside it a second point adds next to nothing, wherever it lies: one of a pair is the optimum.
    pair, _ = optimize_acqf(score, bounds, q=2, num_restarts=4, raw_samples=64)
    best = pair[(pair - 0.8).norm(dim=-1).argmin()]
    assert model.success_probability(best) > 0.9
    assert (best - 0.8).norm() < 0.05


def test_bounds_are_those_of_the_inputs() -> None:
    bounds = torch.tensor([[-5.0, 10.0], [5.0, 30.0]], dtype=torch.float64)
    scaled, plain = CostAndMargin(*trials(bounds), bounds=bounds), CostAndMargin(*trials())
    X = torch.rand(7, 2, dtype=torch.float64)
    with torch.no_grad():
        there = scaled.posterior(bounds[0] + X * (bounds[1] - bounds[0])).mean
        torch.testing.assert_close(there, plain.posterior(X).mean, rtol=1e-6, atol=1e-6)


def test_separate_is_unrelated() -> None:
    assert CostAndMargin(*trials(), relation="separate").correlation == 0.0


@pytest.mark.parametrize("label", [True, False])
def test_one_kind_of_trial_is_refused(label: bool) -> None:
    X, cost, _ = trials()
    with pytest.raises(InputError, match="crashed"):
        CostAndMargin(X, cost, torch.full((len(X),), label))


def test_an_unknown_relation_is_refused() -> None:
    with pytest.raises(InputError, match="`relation` must be 'coupled' or 'separate'; got 'absorb'"):
        CostAndMargin(*trials(), relation="absorb")
