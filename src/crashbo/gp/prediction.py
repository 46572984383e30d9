"""Outputs at new points, for all settings of the hyperparameters at once, with gradients in the points."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.gp.inference import Posterior
from crashbo.gp.kernel import latent_correlation

Array = NDArray[np.float64]
_SMALLEST = 1e-12  # of a predicted variance, relative to the prior's


class Predictor:
    """Predicts the outputs of `b` posteriors at `p` points.

    Math: (k_l correlations of the points with the trials under latent l; A_l the rows' mixing, W = half A_l summed to
        points; w_l = A_l weights summed to points)
        mean_o       = sum_l mixing_ol k_l w_l
        covariance_op = prior_op - t_o' t_p,   t_o = sum_l mixing_ol k_l W_l'
    """

    def __init__(self, posterior: Posterior, mixing: Array | None = None) -> None:
        """Prepare.

        Args:
            posterior: to predict from.
            mixing: `b x o x l`, other mixes of the latents to predict instead of the outputs.
        """
        self.posterior, self.at = posterior, posterior.at
        self.mixing = self.at.mixing if mixing is None else mixing
        self.X = posterior.rows.X
        self.prior = self.mixing @ self.mixing.swapaxes(-1, -2)
        self.floor = _SMALLEST * np.einsum("boo->bo", self.prior)[..., None]

    @cached_property
    def whiteners(self) -> list[Array]:
        """Per latent `b x n x r`, W_l'."""
        rows, half = self.posterior.rows, self.posterior.half()
        mixing = self.at.mixing[:, rows.output]  # b x r x l
        return [
            np.ascontiguousarray(rows.incidence.T @ (mixing[:, :, latent, None] * half.swapaxes(-1, -2)))
            for latent in range(mixing.shape[-1])
        ]

    @cached_property
    def weights(self) -> list[Array]:
        """Per latent `b x n`, w_l."""
        rows = self.posterior.rows
        mixing = self.at.mixing[:, rows.output]
        return [(mixing[..., one] * self.posterior.weights) @ rows.incidence for one in range(mixing.shape[-1])]

    def __call__(self, X: Array) -> "Prediction":
        """Predict at `p x d`."""
        b, outputs, latents = self.mixing.shape
        mean = np.zeros((b, outputs, len(X)))
        whitened = np.zeros((b, outputs, len(X), self.posterior.weights.shape[-1]))
        slopes = []
        for latent in range(latents):
            length = self.at.lengthscale[:, latent]
            value, slope = latent_correlation(X, self.X, length, self.at.kernel)
            slopes.append(slope)
            means = (value @ self.weights[latent][..., None])[..., 0]
            whites = value @ self.whiteners[latent]
            for output in range(outputs):
                mixing = self.mixing[:, output, latent]
                if mixing.any():
                    mean[:, output] += mixing[:, None] * means
                    whitened[:, output] += mixing[:, None, None] * whites
        left = np.einsum("boo->bo", self.prior)[..., None] - np.einsum("bopr,bopr->bop", whitened, whitened)
        covariance = self.prior[:, 0, :, None] - np.einsum("bpr,bopr->bop", whitened[:, 0], whitened)
        return Prediction(mean, np.maximum(left, self.floor), covariance, self, X, whitened, slopes)


@dataclass(frozen=True)
class Prediction:
    """Moments of all outputs, `b x o x p`.

    Attributes:
        mean, variance: of each output.
        covariance: of each output with the first.
    """

    mean: Array
    variance: Array
    covariance: Array
    predictor: Predictor
    X: Array
    whitened: Array
    slopes: list[Array]

    def pull(self, by_mean: Array, by_variance: Array, by_covariance: Array | None = None) -> Array:
        """Gradient of a scalar per point by the points, `p x d`, summed over settings.

        Args:
            by_mean, by_variance, by_covariance: its derivatives by these moments, `b x o x p`; the covariance of the
                first output with itself must have none.
        """
        p, at = self.predictor, self.predictor.at
        by_variance = np.where(self.variance <= p.floor, 0.0, by_variance)
        inner = -2 * by_variance[..., None] * self.whitened
        if by_covariance is not None:
            inner -= by_covariance[..., None] * self.whitened[:, :1]
            inner[:, 0] -= np.einsum("bop,bopr->bpr", by_covariance, self.whitened)
        total = np.zeros_like(self.X)
        for latent, slope in enumerate(self.slopes):
            mixing = p.mixing[:, :, latent]
            by_white = np.einsum("bopr,bo->bpr", inner, mixing)
            by_value = by_white @ p.whiteners[latent].swapaxes(-1, -2)
            by_value += np.einsum("bop,bo->bp", by_mean, mixing)[..., None] * p.weights[latent][:, None, :]
            by_value *= slope
            moved = by_value.sum(-1)[..., None] * self.X - by_value @ p.X
            total -= np.einsum("bpd,bd->pd", moved, np.square(1 / at.lengthscale[:, latent]))
        return total
