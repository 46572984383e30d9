"""Samples of the constrained minimum: by virtual evaluations (SampleConstrainedMinimum in the algorithm mESCO), or
from functions drawn by pathwise conditioning, all at once."""

import math
from collections.abc import Callable, Sequence
from contextlib import suppress

import numpy as np
from scipy.linalg import lapack
from scipy.optimize import minimize

from crashbo.model.kernel import squared_distance
from crashbo.problem.arrays import Array
from crashbo.problem.sobol import sobol
from crashbo.search.paper.model import GPCR

Round = Callable[[Array], Array]
_STEP = 1e-2  # of the finite differences that SLSQP needs
_BROKEN = 1e-3  # violation, in prior standard deviations, up to which a constraint counts as held
# Random Fourier features. Kolmogorov-Smirnov distance between their minimum and that on a grid, Simulations I and II
# after 12 trials (1,500 minima, noise 0.03): 0.04 and 0.04 at 256, 0.02 and 0.02 at 512.
_FEATURES = 512
_RAW = 512  # points of the first look
_ROUNDS = 6  # of narrowing, one more for every three dimensions
_LOCAL = 8  # points per function and round, three more for every dimension


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
        predictor, self.deviation = model.predictor, model.deviation
        self.rng, self.noise, self.capacity, self.count = rng, model.noise, capacity, 0
        self.lengthscale, self.kernel = model.posterior.at.lengthscale[0, 0], model.point.kernel
        self.trials = len(predictor.X)
        self.whitener = self.deviation * predictor.whiteners[0][0]
        self.weights = self.deviation * predictor.weights[0][0]
        self.X = np.concatenate([predictor.X, np.zeros((capacity, predictor.X.shape[-1]))])
        self.white = np.zeros(capacity)
        self.explained = np.zeros((capacity, self.whitener.shape[-1]))
        self.inverse = np.zeros((capacity, capacity))  # of the Cholesky factor: products need no copies, solves do

    def __call__(self, X: Array) -> Array:
        """Reveal the sample at `q x d`, with noise, in units of the model's scaling."""
        n, past = self.trials, slice(self.count)
        new = slice(self.count, self.count + len(X))
        if new.stop > self.capacity:
            raise _SpentError
        self.X[n + new.start : n + new.stop] = X
        near = self.kernel.correlation(squared_distance(X, self.X[: n + new.stop], self.lengthscale))
        of_trials, of_evaluations = near[:, :n], self.deviation**2 * near[:, n:]
        t = of_trials @ self.whitener
        inverse = self.inverse[past, past]
        half = (of_evaluations[:, past] - t @ self.explained[past].T) @ inverse.T
        spread = of_evaluations[:, new] - t @ t.T - half @ half.T
        spread.flat[:: len(X) + 1] = np.maximum(spread.diagonal(), 0.0) + self.noise
        root, drawn = _root(spread, self.noise), self.rng.standard_normal(len(X))
        own, _ = lapack.dtrtri(root, lower=1)
        values = of_trials @ self.weights + half @ self.white[past] + root @ drawn
        self.inverse[new, past] = -own @ (half @ inverse)
        self.inverse[new, new], self.white[new], self.explained[new] = own, drawn, t
        self.count = new.stop
        return values


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
    """One local search on samples of the objective and the constraints, in virtual evaluations."""

    def __init__(self, models: Sequence[GPCR], rng: np.random.Generator, capacity: int, valid: Round):
        self.functions, self.valid = [VirtualFunction(one, rng, capacity) for one in models], valid
        self.limits = np.array([0.0, *(one.threshold for one in models[1:])])[:, None]
        self.units = np.array([one.deviation for one in models])[:, None]
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
            here, steps = self._at(x), np.where(x + _STEP > 1.0, -_STEP, _STEP)
            moved = self._reveal(self.valid(np.clip(x, 0.0, 1.0) + np.diag(steps)))
            self.slopes[key] = (moved - here[:, None]) / steps
        return self.slopes[key]

    def _reveal(self, X: Array) -> Array:
        """Objective, and constraints less their limits, at `p x d`, in prior standard deviations."""
        return (np.stack([one(X) for one in self.functions]) - self.limits) / self.units


def virtual_minima(
    objective: GPCR,
    constraints: Sequence[GPCR],
    count: int,
    rng: np.random.Generator,
    valid: Round,
    *,
    starts: int = 200,
    evaluations: int = 400,
    precision: float = 1e-3,
) -> Array:
    """Minimise posterior samples that are extended point by point, by local constrained optimization.

    The virtual data set begins with the trials, and a sample is the lowest value in it where the constraints hold. (The
    paper evaluates once more, with new noise, where a search ended. Such samples may lie above the cost of a trial, and
    mES then repeats that trial again and again.) One local search per sample. As printed, it begins at one uniform
    random point and ends in some local minimum, so that samples lie too high; here it begins at the lowest of many.

    Args:
        objective, constraints: a sample must lie at or below each constraint's threshold. Where no such point is found,
            it is the objective where they are broken least.
        count, rng, valid: how many samples, their randomness, and what rounds points to valid ones.
        starts: uniform random points, at the lowest of which the local search begins; 1 is as printed. Mean minimum of
            Simulation II after 12 trials: -53 with 1, -109 with 100, -113 with 200, -118 with 400; on a grid -121.
        evaluations: virtual evaluations per sample, R, those at the trials aside; not printed. It is never exceeded.
        precision: length of a step in x that ends a search, kappa.

    Returns:
        `count`, in units of the objective's scaling.
    """
    block, finite = objective.models.block, [one for one in constraints if math.isfinite(one.threshold)]

    def one() -> float:
        search = _Search([objective, *finite], rng, len(block.values) + evaluations, valid)
        if len(block.values):
            search.look(block.X[block.value_point])
        points = rng.random((starts, block.X.shape[-1]))
        search.run(points[search.look(valid(points))[1] if starts > 1 else 0], precision)
        return search.best[1] * objective.deviation

    return np.array([one() for _ in range(count)])


def draw_paths(model: GPCR, count: int, features: int, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Draw functions by Matheron's rule, on the rows of the posterior: values with noise, labels as EP's sites.

    Math: f = f_prior + k(., rows) (b - G (f_prior(rows) + e)),  e ~ N(0, noise or 1 / precision),
        f_prior(x) = phi(x)' w, phi random Fourier features; b the posterior's weights, G as in `Posterior`

    Returns:
        the functions, of common points `p x d` or of each one's own `count x p x d`; values `count x p` in units of the
        model's scaling.
    """
    trials, deviation, lengthscale = model.posterior.rows.X, model.deviation, model.posterior.at.lengthscale[0, 0]
    kernel = model.point.kernel
    frequencies = kernel.frequencies(features, trials.shape[-1], rng) / lengthscale
    phases = rng.uniform(0, 2 * math.pi, features)
    weights = deviation * math.sqrt(2 / features) * rng.standard_normal((count, features))
    prior = weights @ np.cos(trials @ frequencies.T + phases).T
    update = deviation * _update(model, prior / deviation, rng)
    both = np.concatenate([weights, update], -1)

    def paths(X: Array) -> Array:
        flat = X.reshape(-1, X.shape[-1])
        waves = np.cos(flat @ frequencies.T + phases)
        near = kernel.correlation(squared_distance(flat, trials, lengthscale))
        rows = np.concatenate([waves, near], -1)
        if X.ndim == 2:
            return np.asarray(both @ rows.T)
        return np.asarray((rows.reshape(*X.shape[:-1], -1) @ both[..., None])[..., 0])

    return paths


def _update(model: GPCR, prior: Array, rng: np.random.Generator) -> Array:
    """Weights of the trials' correlations, `s x n`, given the latent's prior draws there."""
    posterior, rows, half = model.posterior, model.posterior.rows, model.posterior.half[0]
    mixing, precision = posterior.at.mixing[0, rows.output, 0], posterior.ep.precision[0]
    sites = 1 / np.where(precision > 0, precision, np.inf)  # a label without precision has no row in G
    deviation = np.sqrt(np.concatenate([posterior.at.row_noise(rows)[0], sites]))
    drawn, k = rng.standard_normal((len(prior), len(deviation))), rows.n_values
    order = np.concatenate([np.arange(k), k + np.argsort(np.argsort(rows.label_point))])  # drawn in the trials' order
    seen = mixing * prior[:, rows.point] + deviation * drawn[:, order]
    moved = mixing * (posterior.weights[0] - (seen @ half.T) @ half)
    return np.asarray(moved @ rows.incidence)


def pathwise_minima(
    objective: GPCR, constraints: Sequence[GPCR], count: int, rng: np.random.Generator, valid: Round
) -> Array:
    """Minimise functions drawn by pathwise conditioning; see `virtual_minima`.

    A quasi-random look at the whole cube, then rounds of ever narrower random search around each function's best point.
    """
    d = objective.models.block.X.shape[-1]
    cost = draw_paths(objective, count, _FEATURES, rng)
    others = [(draw_paths(one, count, _FEATURES, rng), one.threshold) for one in constraints]

    def best_of(X: Array) -> tuple[Array, Array]:
        """Each function's best point and value: lowest where constraints hold, else where they are broken least."""
        value, violation = cost(X), np.zeros((count, X.shape[-2]))
        for path, limit in others:
            violation += np.maximum(path(X) - limit, 0.0)
        feasible = violation <= 0
        rank = np.where(feasible.any(-1, keepdims=True), np.where(feasible, value, np.inf), violation)
        every, winner = np.arange(count), rank.argmin(-1)
        return np.broadcast_to(X, (count, *X.shape[-2:]))[every, winner], value[every, winner]

    # Stretched a little, so that the faces, where minima like to be, are looked at too.
    spread = np.clip((sobol(_RAW, d, int(rng.integers(2**31))) - 0.5) * 1.1 + 0.5, 0.0, 1.0)
    best, value = best_of(valid(np.concatenate([spread, objective.models.block.X])))
    radius, shape = 0.5 / _RAW ** (1 / d) + 0.05, (count, _LOCAL + 3 * d, d)
    for _ in range(_ROUNDS + d // 3):
        keep = rng.random(shape) < max(0.2, 2 / d)  # half of the steps move a few coordinates only
        keep[:, : shape[1] // 2] = True
        moved = best[:, None] + radius * rng.standard_normal(shape) * keep
        best, value = best_of(np.concatenate([best[:, None], valid(np.clip(moved, 0.0, 1.0))], 1))
        radius *= 0.4
    return value
