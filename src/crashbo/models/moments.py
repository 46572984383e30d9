"""Posterior means and variances at single points with their gradients, in NumPy.

A search evaluates its models a few points at a time, hundreds of times. Torch would spend that time
dispatching operations and walking back through them; here both directions are a dozen array operations.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.spatial.distance import cdist
from torch import Tensor
from torch.autograd.function import once_differentiable

Array = NDArray[np.float64]
_SMALLEST = 1e-12  # variance, relative to the prior's


@dataclass(frozen=True)
class Component:
    """A latent function that all outputs share, each with its own amplitude.

    Attributes:
        points: `m x d`, where it meets what is known.
        lengthscale: `d`.
        smoothness: of the Matern kernel, 1.5 or 2.5; inf is RBF.
        amplitude: `o x m`, covariance of the outputs with what is known, but for the correlation.
        first: column of the first point among all that is known.
    """

    points: Array
    lengthscale: Array
    smoothness: float
    amplitude: Array
    first: int = 0

    def correlation(self, x: Array) -> tuple[Array, Callable[[], Array]]:
        """R at `p x d`, `p x m`, and what gives F with dR / dx_j = -F (x_j - points_j) / lengthscale_j^2."""
        r = cdist(x / self.lengthscale, self.points / self.lengthscale)
        if math.isinf(self.smoothness):
            value = np.exp(-0.5 * np.square(r))
            return value, lambda: value
        r *= math.sqrt(2 * self.smoothness)
        decay = np.exp(-r)
        if self.smoothness == 1.5:
            return (1 + r) * decay, lambda: 3 * decay
        value = 1 + r
        value += np.square(r) / 3
        value *= decay
        return value, lambda: (5 / 3) * (1 + r) * decay


class PointMoments:
    """Gaussian predictions of one or two outputs given all that is known.

    Math: mean_o = c_o' A^-1 t,  cov_op = prior_op - c_o' A^-1 c_p,  c_o = sum of the components' covariances
    """

    def __init__(self, components: Sequence[Component], factor: Tensor, weights: Tensor, prior: Sequence[float]):
        """Hold what predictions need.

        Args:
            components: of the outputs.
            factor: `m x m`, lower Cholesky factor of A.
            weights: `m x 1`, A^-1 t.
            prior: variance of the first output; of two: that, variance of the second, covariance.
        """
        self.components = list(components)
        self.factor = np.asfortranarray(factor.detach().numpy())
        self.weights = weights.detach().numpy().ravel()
        self.prior = tuple(prior)
        self.outputs = 1 if len(self.prior) == 1 else 2

    def __call__(self, X: Tensor) -> Tensor:
        """Moments at `p x d`, differentiable once.

        Returns:
            `r x p`: mean, variance; of two outputs: mean, variance, mean, variance, covariance.
        """
        moments: Tensor = _Moments.apply(X, self)
        return moments

    def forward(self, x: Array) -> tuple[Array, tuple[Any, ...]]:
        """The rows, and what `backward` needs."""
        p, m = len(x), len(self.weights)
        cross = np.zeros((self.outputs, p, m))
        slopes = []
        for one in self.components:
            value, slope = one.correlation(x)
            slopes.append(slope)
            cross[:, :, one.first : one.first + value.shape[1]] += value * one.amplitude[:, None, :]
        means = cross @ self.weights
        half, _ = lapack.dtrtrs(self.factor, cross.reshape(-1, m).T, lower=1)
        half = half.T.reshape(self.outputs, p, m)
        rows = []
        for o in range(self.outputs):
            left = self.prior[o] - np.einsum("pm,pm->p", half[o], half[o])
            rows += [means[o], np.maximum(left, _SMALLEST * self.prior[o])]
        if self.outputs == 2:
            rows.append(self.prior[2] - np.einsum("pm,pm->p", half[0], half[1]))
        return np.stack(rows), (x, slopes, half, [rows[2 * o + 1] for o in range(self.outputs)])

    def backward(self, grown: Array, kept: tuple[Any, ...]) -> Array:
        """Gradient of a scalar by `p x d`, from that by the rows, `r x p`."""
        x, slopes, half, variances = kept
        m = len(self.weights)
        grown = grown.copy()
        for o, variance in enumerate(variances):
            grown[2 * o + 1, variance <= _SMALLEST * self.prior[o]] = 0.0
        solved, _ = lapack.dtrtrs(self.factor, half.reshape(-1, m).T, lower=1, trans=1)
        solved = solved.T.reshape(half.shape)
        by_cross = [
            grown[2 * o][:, None] * self.weights - 2 * grown[2 * o + 1][:, None] * solved[o]
            for o in range(self.outputs)
        ]
        if self.outputs == 2:
            by_cross[0] = by_cross[0] - grown[4][:, None] * solved[1]
            by_cross[1] = by_cross[1] - grown[4][:, None] * solved[0]
        total = np.zeros_like(x)
        for one, slope_of in zip(self.components, slopes, strict=True):
            slope = slope_of()
            columns = slice(one.first, one.first + slope.shape[1])
            weight = slope * sum(by_cross[o][:, columns] * one.amplitude[o] for o in range(self.outputs))
            total -= (x * weight.sum(1)[:, None] - weight @ one.points) / np.square(one.lengthscale)
        return total


class _Moments(torch.autograd.Function):
    """`PointMoments` for autograd."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, moments: PointMoments) -> Tensor:
        rows, kept = moments.forward(X.detach().numpy())
        ctx.moments, ctx.kept = moments, kept
        return torch.from_numpy(rows)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grown: Tensor) -> tuple[Tensor, None]:
        return torch.from_numpy(ctx.moments.backward(grown[0].numpy(), ctx.kept)), None
