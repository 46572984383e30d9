"""Log evidence of costs alone under a Matern-5/2 Gaussian process, with its gradient, in NumPy."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from crashbo.errors import NumericalError
from crashbo.inference.base import NOISE_FLOOR

Array = NDArray[np.float64]
_LOG_2PI = math.log(2 * math.pi)


class SmallCosts:
    """Evaluates the evidence of fixed costs at many hyperparameters."""

    def __init__(self, X: Array, costs: Array) -> None:
        """Prepare.

        Args:
            X: `n x d`.
            costs: `n`, standardised.
        """
        self.squares = squared_differences(X)
        self.costs = costs

    def __call__(self, lengthscale: Array, variance: float, noise_variance: float) -> tuple[float, Array]:
        """Log evidence, and its gradient by the logs of lengthscales, variance and noise variance, `d + 2`.

        Raises:
            NumericalError: the covariance is not positive definite to double precision.
        """
        k, noise = len(self.costs), max(noise_variance, NOISE_FLOOR * variance)
        correlation, slope = matern52(self.squares, lengthscale)
        weights, inverse, half_log_det = self._solve(variance * correlation, noise)
        value = -0.5 * float(self.costs @ weights) - half_log_det - 0.5 * k * _LOG_2PI
        weight = 0.5 * (np.outer(weights, weights) - inverse)
        by_length = variance * np.tensordot(self.squares, weight * slope, 2) / np.square(lengthscale)
        others = [variance * float((weight * correlation).sum()), noise * float(weight.trace())]
        return value, np.concatenate([by_length, others])

    def leave_one_out(self, lengthscale: Array, variance: float, noise_variance: float) -> Array:
        """Log density of each cost given all others, `n`."""
        noise = max(noise_variance, NOISE_FLOOR * variance)
        correlation, _ = matern52(self.squares, lengthscale)
        weights, inverse, _ = self._solve(variance * correlation, noise)
        precision = inverse.diagonal()
        return 0.5 * (np.log(precision) - np.square(weights) / precision - _LOG_2PI)

    def _solve(self, covariance: Array, noise: float) -> tuple[Array, Array, float]:
        """Inverse times costs, inverse, and half the log determinant of a covariance (changed) plus noise."""
        covariance.flat[:: len(self.costs) + 1] += noise
        factor, info = lapack.dpotrf(covariance.T, lower=1, clean=1)
        if info:
            raise NumericalError("the covariance of the observed costs is not positive definite.")
        weights, _ = lapack.dpotrs(factor, self.costs, lower=1)
        half_log_det = float(np.log(factor.diagonal()).sum())
        return weights, inverse_of(factor), half_log_det


def inverse_of(factor: Array) -> Array:
    """Inverse of a matrix from its lower Cholesky factor, zeros above, which is overwritten."""
    half, _ = lapack.dpotri(factor, lower=1, overwrite_c=1)
    half.flat[:: len(half) + 1] *= 0.5
    inverse: Array = half + half.T
    return inverse


def squared_differences(X: Array) -> Array:
    """`d x n x n`, per coordinate."""
    return np.square(X[:, None, :] - X[None, :, :]).transpose(2, 0, 1).copy()


def matern52(squares: Array, lengthscale: Array) -> tuple[Array, Array]:
    """Correlation R, and F with dR / d log lengthscale_j = F * squares_j / lengthscale_j^2."""
    r = np.sqrt(5 * np.tensordot(1.0 / np.square(lengthscale), squares, 1))
    decay = np.exp(-r)
    return (1 + r + np.square(r) / 3) * decay, (5 / 3) * (1 + r) * decay
