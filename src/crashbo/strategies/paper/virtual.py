"""Samples of the constrained minimum by virtual evaluations (SampleConstrainedMinimum in the algorithm mESCO)."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from crashbo.arrays import Array
from crashbo.gp.kernel import correlation, squared_distance
from crashbo.strategies.paper.model import GPCR

Round = Callable[[Array], Array]
_BROKEN = 1e-3  # violation, in prior standard deviations, up to which a constraint counts as held


class _SpentError(Exception):
    """Ends a local search: no evaluation is left, or the last step was short."""


class VirtualFunction:
    """One sample of a posterior, revealed where it is asked for (function Ve): exact, without features.

    Every evaluation is drawn from the posterior given all earlier ones, noise is added, and the inverse Cholesky factor
    grows by as many rows; nothing is ever factored anew.

    Math: values of a block ~ N(mean + H' w, C - H' H + noise I),  H = L^-1 C_past,block
        (C the posterior's covariance, L L' that of the past evaluations, w their whitened residuals)
    """

    def __init__(self, model: GPCR, rng: np.random.Generator, capacity: int) -> None:
        """Begin with nothing revealed; there is room for `capacity` evaluations."""
        at, predictor = model.posterior.at, model.predictor
        self.rng, self.noise, self.capacity, self.count = rng, model.noise, capacity, 0
        self.lengthscale, self.kernel, self.deviation = at.lengthscale[0, 0], model.point.kernel, model.deviation
        self.trials = len(predictor.X)
        self.whitener = self.deviation * predictor.whiteners[0][0]
        self.weights = self.deviation * predictor.weights[0][0]
        self.X = np.concatenate([predictor.X, np.zeros((capacity, predictor.X.shape[-1]))])
        self.white = np.zeros(capacity)
        self.explained = np.zeros((capacity, self.whitener.shape[-1]))
        self.inverse = np.zeros((capacity, capacity))  # of the Cholesky factor: products need no copies, solves do

    def __call__(self, X: Array) -> Array:
        """Reveal the sample at `q x d`, with noise, in units of the model's scaling."""
        q, n, m = len(X), self.trials, self.count
        if m + q > self.capacity:
            raise _SpentError
        total = n + m + q
        self.X[n + m : total] = X
        near = correlation(squared_distance(X, self.X[:total], self.lengthscale), self.kernel)
        t = near[:, :n] @ self.whitener
        centre, spread = near[:, :n] @ self.weights, self.deviation**2 * near[:, n + m :] - t @ t.T
        if m:
            past = self.deviation**2 * near[:, n : n + m] - t @ self.explained[:m].T
            half = past @ self.inverse[:m, :m].T
            centre, spread = centre + half @ self.white[:m], spread - half @ half.T
        spread.flat[:: q + 1] = np.maximum(spread.diagonal(), 0.0) + self.noise
        root = _root(spread, self.noise)
        drawn = self.rng.standard_normal(q)
        own, _ = lapack.dtrtri(root, lower=1)
        if m:
            self.inverse[m : m + q, :m] = -own @ (half @ self.inverse[:m, :m])
        self.inverse[m : m + q, m : m + q], self.white[m : m + q], self.explained[m : m + q] = own, drawn, t
        self.count = m + q
        return np.asarray(centre + root @ drawn)


def _root(spread: Array, noise: float) -> Array:
    """Lower Cholesky factor; rounding may leave a block of close points slightly indefinite."""
    for jitter in (0.0, 1.0, 1e3, 1e6):
        block = spread.copy()
        block.flat[:: len(spread) + 1] += jitter * noise
        factor, info = lapack.dpotrf(block, lower=1, clean=1)
        if not info:
            return np.asarray(factor)
    return np.diag(np.sqrt(spread.diagonal()))


class _Search:
    """One local search on samples of the objective and of constraints with their limits, in virtual evaluations."""

    def __init__(self, functions: Sequence[VirtualFunction], limits: Sequence[float], valid: Round, step: float):
        self.functions, self.valid, self.step = functions, valid, step
        self.limits = np.array([0.0, *limits])[:, None]
        self.units = np.array([one.deviation for one in functions])[:, None]
        self.values: dict[bytes, Array] = {}
        self.slopes: dict[bytes, Array] = {}
        self.best = (math.inf, math.inf)  # violation and objective, the lowest looked at

    def run(self, start: Array, precision: float) -> None:
        """SLSQP from `start` until a step is shorter than `precision` or all evaluations are spent."""
        before = start

        def check(x: Array) -> None:
            nonlocal before
            if np.linalg.norm(x - before) < precision:
                raise _SpentError
            before = x.copy()

        held = {"type": "ineq", "fun": lambda x: -self._at(x)[1:], "jac": lambda x: -self._slope(x)[1:]}
        with suppress(_SpentError):
            minimize(
                lambda x: self._at(x)[0],
                start,
                jac=lambda x: self._slope(x)[0],
                method="SLSQP",
                bounds=[(0.0, 1.0)] * len(start),
                constraints=[held] if len(self.functions) > 1 else [],
                callback=check,
                options={"maxiter": self.functions[0].capacity, "ftol": 1e-12},  # evaluations are spent before
            )

    def look(self, X: Array) -> tuple[Array, int]:
        """Reveal the samples at `p x d`, as `_reveal`, and say which point is best."""
        found = self._reveal(X)
        violation = np.maximum(found[1:], 0.0).sum(0)
        violation = np.where(violation > _BROKEN, violation, 0.0)
        winner = int(np.lexsort((found[0], violation))[0])
        self.best = min(self.best, (float(violation[winner]), float(found[0, winner])))
        return found, winner

    def _at(self, x: Array) -> Array:
        key = x.tobytes()
        if key not in self.values:
            self.values[key] = self.look(self.valid(np.clip(x, 0.0, 1.0)[None]))[0][:, 0]
        return self.values[key]

    def _slope(self, x: Array) -> Array:
        """Forward differences of `_at`, away from the faces of the cube: one evaluation per coordinate."""
        key = x.tobytes()
        if key not in self.slopes:
            here, steps = self._at(x), np.where(x + self.step > 1.0, -self.step, self.step)
            moved = self._reveal(self.valid(np.clip(x, 0.0, 1.0) + np.diag(steps)))
            self.slopes[key] = (moved - here[:, None]) / steps
        return self.slopes[key]

    def _reveal(self, X: Array) -> Array:
        """Objective, and constraints less their limits, at `p x d`, in prior standard deviations."""
        return (np.stack([one(X) for one in self.functions]) - self.limits) / self.units


@dataclass(frozen=True)
class VirtualMinimum:
    """Minimises posterior samples that are extended point by point, by local constrained optimization.

    The virtual data set begins with the trials, and a sample is the lowest value in it where the constraints hold. (The
    paper evaluates once more, with new noise, where a search ended. Such samples may lie above the cost of a trial, and
    mES then repeats that trial again and again.) One local search per sample. As printed, it begins at one uniform
    random point and ends in some local minimum, so that samples lie too high; here it begins at the lowest of many.

    Attributes:
        starts: uniform random points, at the lowest of which the local search begins; 1 is as printed. Mean minimum of
            Simulation II after 12 trials: -53 with 1, -109 with 100, -113 with 200, -118 with 400; on a grid -121.
        evaluations: virtual evaluations per sample, R, those at the trials aside; not printed. It is never exceeded.
        precision: length of a step in x that ends a search, kappa.
        step: of the finite differences that SLSQP needs.
    """

    starts: int = 200
    evaluations: int = 400
    precision: float = 1e-3
    step: float = 1e-2

    def __call__(
        self, objective: GPCR, constraints: Sequence[GPCR], count: int, rng: np.random.Generator, valid: Round
    ) -> Array:
        """`count` samples, in units of the objective's scaling; `valid` rounds points to valid ones.

        A sample must lie at or below each constraint's threshold. Where no such point is found, it is the objective
        where they are broken least.
        """
        return np.array([self._one(objective, constraints, rng, valid) for _ in range(count)])

    def _one(self, objective: GPCR, constraints: Sequence[GPCR], rng: np.random.Generator, valid: Round) -> float:
        block = objective.models.block
        models = [objective, *(one for one in constraints if math.isfinite(one.threshold))]
        functions = [VirtualFunction(one, rng, len(block.values) + self.evaluations) for one in models]
        search = _Search(functions, [one.threshold for one in models[1:]], valid, self.step)
        if len(block.values):
            search.look(block.X[block.value_point])
        points = rng.random((self.starts, block.X.shape[-1]))
        search.run(points[search.look(valid(points))[1] if self.starts > 1 else 0], self.precision)
        return search.best[1] * objective.deviation
