"""Samples of the minimum: against dense grids, against each other, against exact joint samples."""

import math

import numpy as np
import pytest
import torch

import crashbo.acquisition.minimum as module
from crashbo.acquisition.minimum import Limit, PathwiseMinimum, VirtualFunction, VirtualMinimum
from crashbo.models.hyperparameters import covariance
from crashbo.models.predictor import Predictor
from tests.acquisition.models import predictor
from tests.helpers import double, matern

LINE = torch.linspace(0, 1, 1001, dtype=torch.float64)[:, None]
AXIS = torch.linspace(0, 1, 121, dtype=torch.float64)
SQUARE = torch.cartesian_prod(AXIS, AXIS)
GRIDS = {1: LINE, 2: SQUARE}
QUIET = {"noise_std": 1e-3, "covar_module": matern(0.3, 1.0, nu=2.5)}


def objective(dimension: int = 1) -> Predictor:
    """Prior standard deviation 1."""
    return predictor(dimension, **QUIET, threshold=math.inf)


def limits(dimension: int = 1, threshold: float = 0.3) -> list[Limit]:
    """A constraint that rules out part of the cube."""
    return [Limit(predictor(dimension, **(QUIET | {"covar_module": matern(0.4, 0.5)}), threshold=0.6), threshold)]


def on_grid(cost: torch.Tensor, others: list[torch.Tensor], thresholds: list[float]) -> torch.Tensor:
    """Minimum over feasible grid points of functions `s x p`."""
    for value, threshold in zip(others, thresholds, strict=True):
        cost = torch.where(value <= threshold, cost, math.inf)
    return cost.amin(-1)


def joint(model: Predictor, X: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Exact posterior mean and covariance of the latent function, from the textbook formula."""
    with torch.no_grad():
        noisy = covariance(model.kernel, model.X) + model.variances.diag()
        gain = torch.linalg.solve(noisy, covariance(model.kernel, model.X, X)).mT
        spread = covariance(model.kernel, X) - gain @ covariance(model.kernel, model.X, X)
    return gain @ model.targets, spread


def exact_samples(model: Predictor, X: torch.Tensor, count: int, seed: int) -> torch.Tensor:
    mean, spread = joint(model, X)
    factor = torch.linalg.cholesky(spread + 1e-8 * torch.eye(len(X), dtype=torch.float64))
    noise = torch.randn(count, len(X), dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    return model.fit.offset + model.fit.scale * (mean + noise @ factor.mT)


def exact_minima(dimension: int, *, constrained: bool, count: int = 3000) -> torch.Tensor:
    X = LINE[::8] if dimension == 1 else torch.cartesian_prod(AXIS[::6], AXIS[::6])
    bounds = limits(dimension) if constrained else []
    others = [exact_samples(one.model, X, count, 1) for one in bounds]
    values = on_grid(exact_samples(objective(dimension), X, count, 0), others, [one.threshold for one in bounds])
    return values[values.isfinite()]


def agree(sampled: torch.Tensor, reference: torch.Tensor, bias: float) -> None:
    """Means and standard deviations agree within four Monte Carlo errors and a given bias."""
    spread = float(reference.std())
    error = spread * math.sqrt(1 / len(sampled) + 1 / len(reference))
    assert float(sampled.mean()) == pytest.approx(float(reference.mean()), abs=4 * error + bias)
    assert float(sampled.std()) == pytest.approx(spread, abs=4 * error + bias)


# --- pathwise --------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("constrained", [False, True])
def test_pathwise_minima_are_those_of_the_same_paths_on_a_grid(dimension, constrained):
    model, bounds, count = objective(dimension), limits(dimension) if constrained else [], 60
    sampled = PathwiseMinimum()(model, bounds, count, 0)
    generator = torch.Generator().manual_seed(0)
    cost = model.sample_paths(count, generator, features=PathwiseMinimum().features)(GRIDS[dimension])
    others = [
        one.model.sample_paths(count, generator, features=PathwiseMinimum().features)(GRIDS[dimension])
        for one in bounds
    ]
    brute = on_grid(cost, others, [one.threshold for one in bounds])
    assert brute.isfinite().all()
    error = sampled - brute
    # In units of the prior standard deviation; the mesh of the square's grid is coarser.
    assert float(error.min()) > (-0.005 if dimension == 1 else -0.1)
    assert float(error.quantile(0.9)) < 0.005
    assert float(error.max()) < (0.005 if dimension == 1 else 0.03)


@pytest.mark.parametrize("constrained", [False, True])
def test_pathwise_minima_have_the_exact_distribution(constrained):
    bounds = limits() if constrained else []
    sampler = PathwiseMinimum(raw=128, rounds=6, local=16, features=PathwiseMinimum().features)
    sampled = torch.cat([sampler(objective(), bounds, 30, seed) for seed in range(20)])
    agree(sampled, exact_minima(1, constrained=constrained), bias=0.02)


def test_pathwise_minima_repeat_with_the_seed():
    first, again, other = (PathwiseMinimum()(objective(2), [], 5, seed) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_pathwise_minima_respect_rounding():
    def rounded(X):
        return (X * 2).round() / 2

    sampled = PathwiseMinimum()(objective(), [], 8, 0, rounded)
    paths = objective().sample_paths(8, torch.Generator().manual_seed(0), features=PathwiseMinimum().features)
    assert torch.allclose(sampled, paths(double([[0.0], [0.5], [1.0]])).amin(-1))


# --- virtual ---------------------------------------------------------------------------------


@pytest.mark.parametrize("dimension", [1, 2])
def test_the_growing_factor_equals_a_fresh_one(dimension):
    model = predictor(dimension)
    function = VirtualFunction(model, np.random.default_rng(0), capacity=4)
    points = np.random.default_rng(1).random((19, dimension))
    revealed = [function(x) for x in points]
    X = torch.cat([model.X, torch.as_tensor(points)])
    noise = torch.cat([model.variances, torch.full((19,), function.noise).double()])
    with torch.no_grad():
        fresh = torch.linalg.cholesky(covariance(model.kernel, X) + noise.diag())
    n = function.count
    assert n == len(X)
    assert np.allclose(function.factor[:n, :n], fresh.numpy(), atol=1e-9)
    latent = (double(revealed) - model.fit.offset) / model.fit.scale
    white = torch.linalg.solve_triangular(fresh, torch.cat([model.targets, latent])[:, None], upper=False)
    assert np.allclose(function.white[:n], white.squeeze(-1).numpy(), atol=1e-6)


def test_revealed_values_have_the_posterior_distribution():
    model = predictor()
    points = np.array([[0.15], [0.5], [0.93]])
    draws = np.empty((600, 3))
    for row, seed in zip(draws, range(600), strict=True):
        function = VirtualFunction(model, np.random.default_rng(seed), capacity=4)
        row[:] = [function(x) for x in points]
    mean, spread = joint(model, torch.as_tensor(points))
    spread = spread + function.noise * torch.eye(3)
    deviation = spread.diagonal().sqrt().numpy()
    assert np.allclose(draws.mean(0), mean.numpy(), atol=4 * deviation.max() / math.sqrt(600))
    assert np.allclose(np.cov(draws.T), spread.numpy(), atol=6 * deviation.max() ** 2 / math.sqrt(600))


def reveal_all(monkeypatch, bounds: list[Limit], seed: int, dimension: int) -> tuple[float, torch.Tensor]:
    """One virtual minimum, and the minimum over a grid of the function it was found on."""
    functions = []

    class Kept(VirtualFunction):
        def __init__(self, *args):
            super().__init__(*args)
            functions.append(self)

    monkeypatch.setattr(module, "VirtualFunction", Kept)
    sampled = float(VirtualMinimum(restarts=8)(objective(dimension), bounds, 1, seed))
    assert len(functions) == 1 + len(bounds)
    grid = (LINE[::10] if dimension == 1 else torch.cartesian_prod(AXIS[::8], AXIS[::8])).numpy()
    cost, *others = (double([[function(x) for x in grid]]) for function in functions)
    return sampled, float(on_grid(cost, others, [one.threshold - 0.01 for one in bounds]))


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("constrained", [False, True])
def test_the_rest_of_a_virtual_function_holds_nothing_much_lower(monkeypatch, dimension, constrained):
    bounds = limits(dimension) if constrained else []
    gaps = []
    for seed in range(6):
        sampled, rest = reveal_all(monkeypatch, bounds, seed, dimension)
        gaps.append(sampled - rest)
    assert sorted(gaps)[3] < 0.05
    assert max(gaps) < 0.3


@pytest.mark.parametrize("constrained", [False, True])
def test_virtual_minima_have_the_exact_distribution(constrained):
    bounds = limits() if constrained else []
    sampled = VirtualMinimum(restarts=6)(objective(), bounds, 60, 0)
    agree(sampled, exact_minima(1, constrained=constrained), bias=0.03)
    agree(sampled, PathwiseMinimum()(objective(), bounds, 60, 1), bias=0.05)


def test_virtual_minima_repeat_with_the_seed():
    first, again, other = (VirtualMinimum(restarts=2)(objective(), limits(), 2, seed) for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("sampler", [PathwiseMinimum(), VirtualMinimum(restarts=2)], ids=["pathwise", "virtual"])
@pytest.mark.parametrize("dimension", [1, 2])
def test_where_nothing_is_feasible_samples_are_finite(sampler, dimension):
    sampled = sampler(objective(dimension), limits(dimension, threshold=-100.0), 4, 0)
    assert sampled.shape == (4,)
    assert sampled.isfinite().all()
