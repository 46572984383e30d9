"""Samples of the constrained minimum from functions drawn by pathwise conditioning, all at once."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from crashbo.arrays import Array
from crashbo.gp.kernel import correlation, squared_distance
from crashbo.sobol import sobol
from crashbo.strategies.paper.model import GPCR
from crashbo.strategies.paper.virtual import Round

_SPECTRA = {"matern32": 1.5, "matern52": 2.5}  # half the degrees of freedom of a Student t; an RBF's is Gaussian


def draw_paths(model: GPCR, count: int, features: int, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Draw functions by Matheron's rule, on the rows of the posterior.

    A value row has its noise, a label row its EP site as a pseudo-observation: sites' means and variances.

    Math: f = f_prior + k(., rows) (b - G (f_prior(rows) + e)),  e ~ N(0, noise or 1 / precision),
        f_prior(x) = phi(x)' w, phi random Fourier features; b the posterior's weights, G as in `Posterior`

    Returns:
        the `count` functions, to be evaluated at common points `p x d`, or at each function's own `count x p x d`, in
        units of the model's scaling; gives `count x p`.
    """
    trials, deviation, lengthscale = model.posterior.rows.X, model.deviation, model.posterior.at.lengthscale[0, 0]
    frequencies = rng.standard_normal((features, trials.shape[-1]))
    if shape := _SPECTRA.get(model.point.kernel):  # a Student t is a Gaussian over the root of a chi-squared
        frequencies /= np.sqrt(rng.gamma(shape, 1 / shape, (features, 1)))
    frequencies /= lengthscale
    phases = rng.uniform(0, 2 * math.pi, features)
    weights = deviation * math.sqrt(2 / features) * rng.standard_normal((count, features))
    prior = weights @ np.cos(trials @ frequencies.T + phases).T
    update = deviation * _update(model, prior / deviation, rng)
    both = np.concatenate([weights, update], -1)

    def paths(X: Array) -> Array:
        flat = X.reshape(-1, X.shape[-1])
        waves = np.cos(flat @ frequencies.T + phases)
        near = correlation(squared_distance(flat, trials, lengthscale), model.point.kernel)
        rows = np.concatenate([waves, near], -1)
        if X.ndim == 2:
            return np.asarray(both @ rows.T)
        return np.asarray((rows.reshape(*X.shape[:-1], -1) @ both[..., None])[..., 0])

    return paths


def _update(model: GPCR, prior: Array, rng: np.random.Generator) -> Array:
    """Weights of the trials' correlations, `s x n`, given the latent's prior draws there."""
    posterior = model.posterior
    rows, k, half = posterior.rows, posterior.rows.n_values, posterior.half[0]
    mixing = posterior.at.mixing[0, rows.output, 0]
    precision = posterior.ep.precision[0]
    used = precision > 0  # a label without precision has no row in G
    variance = np.concatenate([posterior.at.row_noise(rows)[0], 1 / np.where(used, precision, 1.0)])
    drawn = rng.standard_normal((len(prior), len(variance)))
    order = np.concatenate([np.arange(k), k + np.argsort(np.argsort(rows.label_point))])  # drawn in the trials' order
    noise = np.sqrt(variance) * drawn[:, order]
    noise[:, k:][:, ~used] = 0.0
    moved = mixing * (posterior.weights[0] - ((mixing * prior[:, rows.point] + noise) @ half.T) @ half)
    return np.asarray(moved @ rows.incidence)


@dataclass(frozen=True)
class PathwiseMinimum:
    """Minimises functions drawn by pathwise conditioning.

    A quasi-random look at the whole cube, then rounds of ever narrower random search around each function's best point.

    Attributes:
        features: random Fourier features. Kolmogorov-Smirnov distance between their minimum and that on a grid,
            Simulations I and II after 12 trials (1,500 minima, noise 0.03): 0.04 and 0.04 at 256, 0.02 and 0.02 at 512.
        raw: points of the first look.
        rounds: of narrowing, one more for every three dimensions.
        local: points per function and round, three more for every dimension.
    """

    features: int = 512
    raw: int = 512
    rounds: int = 6
    local: int = 8

    def __call__(
        self, objective: GPCR, constraints: Sequence[GPCR], count: int, rng: np.random.Generator, valid: Round
    ) -> Array:
        """See `VirtualMinimum`."""
        d = objective.models.block.X.shape[-1]
        cost = draw_paths(objective, count, self.features, rng)
        others = [(draw_paths(one, count, self.features, rng), one.threshold) for one in constraints]

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
        spread = np.clip((sobol(self.raw, d, int(rng.integers(2**31))) - 0.5) * 1.1 + 0.5, 0.0, 1.0)
        best, value = best_of(valid(np.concatenate([spread, objective.models.block.X])))
        radius, local = 0.5 / self.raw ** (1 / d) + 0.05, self.local + 3 * d
        for _ in range(self.rounds + d // 3):
            moved = best[:, None] + radius * _steps(count, local, d, rng)
            best, value = best_of(np.concatenate([best[:, None], valid(np.clip(moved, 0.0, 1.0))], 1))
            radius *= 0.4
        return value


def _steps(count: int, local: int, d: int, rng: np.random.Generator) -> Array:
    """Random steps, `count x local x d`; half of them move a few coordinates only."""
    keep = rng.random((count, local, d)) < max(0.2, 2 / d)
    keep[:, : local // 2] = True
    return rng.standard_normal((count, local, d)) * keep
