"""Samples of the (constrained) minimum of a posterior, in two ways behind one interface."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import torch
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from torch import Tensor

from crashbo.acquisition.maximise import Round, sobol
from crashbo.errors import InputError
from crashbo.models.coupled_predictor import CoupledPredictor
from crashbo.models.hyperparameters import covariance
from crashbo.models.predictor import Predictor

Objective: TypeAlias = Predictor | CoupledPredictor


@dataclass(frozen=True)
class Limit:
    """A constraint on a sampled minimum: the model's sample must lie at or below `threshold`."""

    model: Predictor
    threshold: float


class MinimumSampler(Protocol):
    """Draws samples of min f(x) subject to g_j(x) <= c_j over the unit cube."""

    def __call__(
        self, objective: Objective, limits: Sequence[Limit], count: int, seed: int, round_: Round | None = None
    ) -> Tensor:
        """Return `count` samples in the objective's own units.

        A sample whose constraints hold nowhere found gives the objective where they are
        violated least.
        """
        ...


@dataclass(frozen=True)
class PathwiseMinimum:
    """Minimise functions drawn by pathwise conditioning, all samples at once.

    A quasi-random look at the whole cube, then rounds of ever narrower random search around
    each function's best point so far. Fast, and accurate to the random features.

    Attributes:
        raw: points of the first look.
        rounds: of narrowing, one more for every three dimensions.
        local: points per function and round, three more for every dimension.
        features: random Fourier features of the prior.
    """

    raw: int = 512
    rounds: int = 5
    local: int = 8
    features: int = 256

    @torch.no_grad()
    def __call__(
        self, objective: Objective, limits: Sequence[Limit], count: int, seed: int, round_: Round | None = None
    ) -> Tensor:
        generator = torch.Generator().manual_seed(seed)
        rounded: Round = round_ or (lambda x: x)
        dimension = objective.X.shape[-1]
        cost = objective.sample_paths(count, generator, features=self.features)
        others = [(one.model.sample_paths(count, generator, features=self.features), one.threshold) for one in limits]

        def rank(X: Tensor) -> tuple[Tensor, Tensor]:
            """Objective and total violation, `s x p` each."""
            value, violation = cost.with_violation(X)
            for path, threshold in others:
                violation = violation + (path(X) - threshold).clamp_min(0.0)
            return value, violation

        # Stretched a little, so that the faces, where minima like to be, are looked at too.
        spread = ((sobol(self.raw, dimension, seed) - 0.5) * 1.1 + 0.5).clamp(0.0, 1.0)
        points = torch.cat([spread, objective.X])
        X = rounded(points)
        best, value = _better(X.expand(count, -1, dimension), *rank(X))
        radius = 0.5 / self.raw ** (1.0 / dimension) + 0.05
        local = self.local + 3 * dimension
        for _ in range(self.rounds + dimension // 3):
            noise = torch.randn(count, local, dimension, dtype=torch.float64, generator=generator)
            # Half of the proposals move a few coordinates only: that is what pays in high dimension.
            few = torch.rand(count, local, dimension, dtype=torch.float64, generator=generator)
            keep = few < max(0.2, 2.0 / dimension)
            keep[:, : local // 2] = True
            X = rounded((best.unsqueeze(1) + radius * noise * keep).clamp(0.0, 1.0))
            X = torch.cat([best.unsqueeze(1), X], 1)
            best, value = _better(X, *rank(X))
            radius *= 0.4
        return value


def _better(X: Tensor, value: Tensor, violation: Tensor) -> tuple[Tensor, Tensor]:
    """The best point of each sample: lowest objective where feasible, else least violation."""
    feasible = violation <= 0
    any_feasible = feasible.any(-1, keepdim=True)
    score = torch.where(any_feasible, torch.where(feasible, value, math.inf), violation)
    winner = score.argmin(-1, keepdim=True)
    point = X.gather(1, winner.unsqueeze(-1).expand(-1, 1, X.shape[-1])).squeeze(1)
    return point, value.gather(-1, winner).squeeze(-1)


class VirtualFunction:
    """One posterior sample, revealed point by point (the paper's Ve): exact, no features.

    Every evaluation is drawn from the posterior given all earlier ones, noise is added, and
    the Cholesky factor grows by one row; nothing is ever factored anew.
    """

    def __init__(self, model: Predictor, rng: np.random.Generator, capacity: int = 256) -> None:
        self.model, self.rng = model, rng
        n, d = model.X.shape
        self.count = n
        self.factor = np.zeros((n + capacity, n + capacity))
        self.factor[:n, :n] = model.factor.numpy()
        self.white = np.zeros(n + capacity)
        self.white[:n] = solve_triangular(model.factor.numpy(), model.targets.numpy(), lower=True)
        self.X = np.zeros((n + capacity, d))
        self.X[:n] = model.X.numpy()
        self.noise = max(model.fit.given.noise_variance, 1e-8 * float(model.prior_variance))

    def __call__(self, x: np.ndarray) -> float:
        """Reveal the sample at `d`, with noise, in the model's own units."""
        n = self.count
        if n == len(self.X):
            self._grow()
        with torch.no_grad():
            points = torch.from_numpy(np.vstack([self.X[:n], x]))
            row = covariance(self.model.kernel, torch.from_numpy(x[None]), points).numpy()[0]
        half = solve_triangular(self.factor[:n, :n], row[:n], lower=True, check_finite=False)
        variance = max(row[n] - half @ half, 0.0)
        total = variance + self.noise
        value = half @ self.white[:n] + math.sqrt(total) * self.rng.standard_normal()
        self.factor[n, :n], self.factor[n, n] = half, math.sqrt(total)
        self.white[n] = (value - half @ self.white[:n]) / self.factor[n, n]
        self.X[n] = x
        self.count = n + 1
        return self.model.fit.offset + self.model.fit.scale * float(value)

    def _grow(self) -> None:
        extra = len(self.X)
        self.factor = np.pad(self.factor, ((0, extra), (0, extra)))
        self.white = np.pad(self.white, (0, extra))
        self.X = np.pad(self.X, ((0, extra), (0, 0)))


@dataclass(frozen=True)
class VirtualMinimum:
    """The paper's way (`alg:mESCO`): local constrained optimization on virtual evaluations.

    SLSQP on a posterior sample that is extended point by point, from random starts on one
    and the same sample. Exact but for local optima; far slower than `PathwiseMinimum`.

    Attributes:
        restarts: local searches per sample.
        evaluations: at most this many virtual evaluations per local search (R).
        precision: relative precision of the location (kappa).
        step: of the finite differences.
    """

    restarts: int = 5
    evaluations: int = 100
    precision: float = 1e-3
    step: float = 1e-2

    def __call__(
        self, objective: Objective, limits: Sequence[Limit], count: int, seed: int, round_: Round | None = None
    ) -> Tensor:
        if not isinstance(objective, Predictor):
            raise InputError("`objective` must be a single model for virtual evaluations; got cost and margin.")
        rng = np.random.default_rng(seed)
        return torch.tensor([self._one(objective, limits, rng, round_) for _ in range(count)], dtype=torch.float64)

    def _one(
        self, objective: Predictor, limits: Sequence[Limit], rng: np.random.Generator, round_: Round | None
    ) -> float:
        cost = VirtualFunction(objective, rng)
        others = [(VirtualFunction(one.model, rng), one.threshold) for one in limits]

        def valid(x: np.ndarray) -> np.ndarray:
            x = np.clip(x, 0.0, 1.0)
            return x if round_ is None else round_(torch.from_numpy(x[None])).numpy()[0]

        best = (math.inf, math.inf)
        iterations = max(1, self.evaluations // (objective.X.shape[-1] + 2))
        for _ in range(self.restarts):
            found = minimize(
                lambda x: cost(valid(x)),
                rng.random(objective.X.shape[-1]),
                method="SLSQP",
                bounds=[(0.0, 1.0)] * objective.X.shape[-1],
                constraints=[{"type": "ineq", "fun": lambda x, g=g, c=c: c - g(valid(x))} for g, c in others],
                options={"maxiter": iterations, "eps": self.step, "ftol": self.precision**2},
            )
            x = valid(found.x)
            violation = sum(max(g(x) - c, 0.0) for g, c in others)
            best = min(best, (violation if violation > 1e-3 else 0.0, cost(x)))
        return best[1]
