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
        self.rng, self.noise = rng, model.noise
        self.lengthscale, self.kernel, self.deviation = at.lengthscale[0, 0], model.point.kernel, model.deviation
        self.trials = len(predictor.X)
        self.whitener = self.deviation * predictor.whiteners[0][0]
        self.weights = self.deviation * predictor.weights[0][0]
        d = predictor.X.shape[-1]
        self.X = np.concatenate([predictor.X, np.zeros((capacity, d))])
        self.white = np.zeros(capacity)
        self.explained = np.zeros((capacity, self.whitener.shape[-1]))
        self.inverse = np.zeros((capacity, capacity))  # of the Cholesky factor: products need no copies, solves do
        self.count = 0

    def __call__(self, X: Array) -> Array:
        """Reveal the sample at `q x d`, with noise, in units of the model's scaling."""
        q, n, m = len(X), self.trials, self.count
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


class _SpentError(Exception):
    """Ends a local search: no evaluation is left, or the last step was short."""


class _Search:
    """One local search on samples of the objective and the constraints, counted in virtual evaluations."""

    def __init__(
        self, cost: VirtualFunction, others: Sequence[tuple[VirtualFunction, float]], valid: Round, step: float
    ):
        self.functions = [cost, *(one for one, _ in others)]
        self.limits = np.array([0.0, *(limit for _, limit in others)])
        self.units = np.array([one.deviation for one in self.functions])
        self.valid, self.step = valid, step
        self.values: dict[bytes, Array] = {}
        self.slopes: dict[bytes, Array] = {}
        self.left = 0
        self.best = (math.inf, math.inf)

    def run(self, start: Array, evaluations: int, precision: float) -> None:
        """SLSQP from `start` until a step is shorter than `precision` or all evaluations are spent."""
        self.left, before = evaluations, start

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
                options={"maxiter": evaluations, "ftol": 1e-12},
            )

    def look(self, X: Array) -> int:
        """Reveal the samples at `p x d` and return which point is best."""
        ranks = [self._compare(found) for found in self._reveal(X).T]
        return min(range(len(ranks)), key=ranks.__getitem__)

    def _compare(self, found: Array) -> tuple[float, float]:
        """Violation and objective, remembered if they are the lowest."""
        violation = float(np.maximum(found[1:], 0.0).sum())
        rank = (violation if violation > _BROKEN else 0.0, float(found[0]))
        self.best = min(self.best, rank)
        return rank

    def _at(self, x: Array) -> Array:
        """Objective, and constraints less their limits, at `d`, in prior standard deviations."""
        key = x.tobytes()
        if key not in self.values:
            self._spend(1)
            place = self.valid(np.clip(x, 0.0, 1.0)[None])
            found = self._reveal(place)[:, 0]
            self.values[key] = found
            self._compare(found)
        return self.values[key]

    def _slope(self, x: Array) -> Array:
        """Forward differences of `_at`, away from the faces of the cube: one evaluation per coordinate."""
        key = x.tobytes()
        if key not in self.slopes:
            here = self._at(x)
            self._spend(len(x))
            steps = np.where(x + self.step > 1.0, -self.step, self.step)
            moved = self._reveal(self.valid(np.clip(x, 0.0, 1.0) + np.diag(steps)))
            self.slopes[key] = (moved - here[:, None]) / steps
        return self.slopes[key]

    def _reveal(self, X: Array) -> Array:
        drawn = np.stack([one(X) for one in self.functions])
        return np.asarray((drawn - self.limits[:, None]) / self.units[:, None])

    def _spend(self, count: int) -> None:
        if count > self.left:
            raise _SpentError
        self.left -= count


_BROKEN = 1e-3  # violation, in prior standard deviations, up to which a constraint counts as held


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
        capacity = len(block.values) + self.evaluations
        cost = VirtualFunction(objective, rng, capacity)
        finite = [one for one in constraints if math.isfinite(one.threshold)]
        others = [(VirtualFunction(one, rng, capacity), one.threshold) for one in finite]
        search = _Search(cost, others, valid, self.step)
        if len(block.values):
            search.look(block.X[block.value_point])
        points = rng.random((self.starts, block.X.shape[-1]))
        start = points[search.look(valid(points))] if self.starts > 1 else points[0]
        search.run(start, self.evaluations - (self.starts if self.starts > 1 else 0), self.precision)
        return search.best[1] * cost.deviation
