"""Outputs at new points, for all settings of the hyperparameters at once, with gradients in the points."""

from dataclasses import dataclass

import numpy as np

from crashbo.model.inference import Posterior
from crashbo.model.kernel import squared_distance
from crashbo.problem.arrays import Array

_AT_ONCE, _FEWEST = 120_000, 32  # numbers that are worked on at once, and points at least
_SMALLEST = 1e-12  # of a predicted variance, relative to the prior's


class Predictor:
    """Predicts the outputs of `b` posteriors at `p` points.

    Math: (k_l correlations of the points with the trials under latent l; A_l the rows' mixing, W = half A_l summed to
        points; w_l = A_l weights summed to points)
        mean_o       = sum_l mixing_ol k_l w_l
        covariance_op = prior_op - t_o' t_p,   t_o = sum_l mixing_ol k_l W_l'
    """

    def __init__(self, posterior: Posterior) -> None:
        rows, self.posterior, self.at = posterior.rows, posterior, posterior.at
        self.X, self.mixing = rows.X, posterior.at.mixing
        self.prior = self.mixing @ self.mixing.swapaxes(-1, -2)
        self.floor = _SMALLEST * np.einsum("boo->bo", self.prior)[..., None]
        self.constant = self.at.latents.place.max(0) < 0  # l, whether a latent is the same everywhere in all settings
        halves = posterior.half.swapaxes(-1, -2)
        by_latent = np.moveaxis(self.mixing[:, rows.output], -1, 0)  # l x b x r
        # Per latent W_l' (b x n x r), w_l (b x n), and those columns of W_l' that are not 0 followed by w_l, of
        # constant latents summed over the points.
        self.whiteners = [np.ascontiguousarray(rows.incidence.T @ (one[..., None] * halves)) for one in by_latent]
        self.weights = [(one * posterior.weights) @ rows.incidence for one in by_latent]
        self._both = []
        for whitener, weight, constant in zip(self.whiteners, self.weights, self.constant, strict=True):
            used = np.flatnonzero(whitener.any((0, 1)))
            columns = slice(int(used[0]), int(used[-1]) + 1) if len(used) else slice(0, 0)
            joined = np.concatenate([whitener[..., columns], weight[..., None]], -1)
            self._both.append((joined.sum(1, keepdims=True) if constant else joined, columns))

    def __call__(self, X: Array) -> "Prediction":
        """Predict at `p x d`."""
        b, outputs, _ = self.mixing.shape
        step = max(_FEWEST, _AT_ONCE // (b * outputs * max(1, self.posterior.weights.shape[-1])))
        if len(X) <= step:
            return self._predict(X)
        # A few points at a time: memory that stays in the cache is not asked for anew.
        parts = [self._predict(X[i : i + step]) for i in range(0, len(X), step)]
        names = ("mean", "variance", "covariance")
        mean, variance, covariance = (np.concatenate([getattr(q, name) for q in parts], -1) for name in names)
        return Prediction(mean, variance, covariance, self, X)

    def _predict(self, X: Array) -> "Prediction":
        mean, whitened, squared = self.project(X)
        left = np.einsum("boo->bo", self.prior)[..., None] - np.einsum("bopr,bopr->bop", whitened, whitened)
        covariance = self.prior[:, 0, :, None] - np.einsum("bpr,bopr->bop", whitened[:, 0], whitened)
        return Prediction(mean, np.maximum(left, self.floor), covariance, self, X, (whitened, squared))

    def project(self, X: Array) -> tuple[Array, Array, Array]:
        """Means `b x o x p`, t_o `b x o x p x r`, and squared distances `q x p x n` of the latents that differ."""
        b, outputs, _ = self.mixing.shape
        latents = self.at.latents
        squared = squared_distance(X, self.X, latents.lengthscale)
        values = latents.correlation(squared)
        mean = np.zeros((b, outputs, len(X)))
        whitened = np.zeros((b, outputs, len(X), self.posterior.weights.shape[-1]))
        for latent, (both, columns) in enumerate(self._both):
            part = both if self.constant[latent] else latents.of_latent(values, latent, 1.0) @ both
            for output in range(outputs):
                mixing = self.mixing[:, output, latent, None, None]
                if mixing.any():
                    moved = mixing * part
                    mean[:, output] += moved[..., -1]
                    whitened[:, output, :, columns] += moved[..., :-1]
        return mean, whitened, squared


@dataclass(frozen=True)
class Prediction:
    """Moments of all outputs, `b x o x p`."""

    mean: Array
    variance: Array
    covariance: Array  # of each output with the first
    predictor: Predictor
    X: Array  # p x d
    work: tuple[Array, Array] | None = None  # what Predictor.project found on the way; None where it was not kept

    def vjp(self, by_mean: Array, by_variance: Array, by_covariance: Array | None = None) -> Array:
        """Gradient of a scalar per point by the points, `p x d`, summed over settings.

        Args:
            by_mean, by_variance, by_covariance: its derivatives by these moments, `b x o x p`; the covariance of the
                first output with itself must have none.
        """
        p, at = self.predictor, self.predictor.at
        whitened, squared = self.work or p.project(self.X)[1:]
        by_variance = np.where(self.variance <= p.floor, 0.0, by_variance)
        inner = -2 * by_variance[..., None] * whitened
        if by_covariance is not None:
            inner -= by_covariance[..., None] * whitened[:, :1]
            inner[:, 0] -= np.einsum("bop,bopr->bpr", by_covariance, whitened)
        latents = at.latents
        slopes = latents.slope(squared)
        total = np.zeros_like(self.X)
        for latent in np.flatnonzero(~p.constant).tolist():
            mixing = p.mixing[:, :, latent]
            by_value = (inner * mixing[:, :, None, None]).sum(1) @ p.whiteners[latent].swapaxes(-1, -2)
            by_value += (by_mean * mixing[..., None]).sum(1)[..., None] * p.weights[latent][:, None, :]
            by_value *= latents.of_latent(slopes, latent, 0.0)
            moved = by_value.sum(-1)[..., None] * self.X - by_value @ p.X
            total -= (moved * np.square(1 / at.lengthscale[:, latent])[:, None]).sum(0)
        return total
