"""The correlation function: Matern-3/2, Matern-5/2 or RBF, with a lengthscale per coordinate."""

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import InputError

Array = NDArray[np.float64]
KernelName = Literal["matern32", "matern52", "rbf"]
KERNELS: tuple[KernelName, ...] = ("matern32", "matern52", "rbf")


def check_kernel(name: str) -> None:
    """Refuse a name that is no kernel."""
    if name not in KERNELS:
        raise InputError(f"`kernel` must be one of {', '.join(map(repr, KERNELS))}; got {name!r}.")


def squared_distance(A: Array, B: Array, lengthscale: Array) -> Array:
    """Squared distances in lengthscales.

    Args:
        A, B: `m x d`, `n x d`.
        lengthscale: `... x d`.

    Returns:
        `... x m x n`.
    """
    precision = np.square(1.0 / lengthscale)
    total = np.zeros((*lengthscale.shape[:-1], len(A), len(B)))
    for j in range(A.shape[-1]):
        total += precision[..., j, None, None] * np.square(A[:, j, None] - B[None, :, j])
    return total


def correlation(r2: Array, kernel: KernelName) -> Array:
    """Correlation at squared distances `r2`, any shape."""
    if kernel == "rbf":
        return np.exp(-0.5 * r2)
    if kernel == "matern32":
        r = np.sqrt(3 * r2)
        return (1 + r) * np.exp(-r)
    r = np.sqrt(5 * r2)
    return (1 + r + np.square(r) / 3) * np.exp(-r)


def correlation_and_slope(r2: Array, kernel: KernelName) -> tuple[Array, Array]:
    """Correlation R, and F = -2 dR / d r2.

    Math: dR / d log lengthscale_j = F (x_j - z_j)^2 / lengthscale_j^2,
        dR / d x_j = -F (x_j - z_j) / lengthscale_j^2
    """
    if kernel == "rbf":
        value = np.exp(-0.5 * r2)
        return value, value
    if kernel == "matern32":
        r = np.sqrt(3 * r2)
        decay = np.exp(-r)
        return (1 + r) * decay, 3 * decay
    r = np.sqrt(5 * r2)
    decay = np.exp(-r)
    return (1 + r + np.square(r) / 3) * decay, (5 / 3) * (1 + r) * decay


def spectral_shape(kernel: KernelName) -> float:
    """Degrees of freedom over two of the spectrum, a Student t; infinity for a Gaussian."""
    return {"matern32": 1.5, "matern52": 2.5, "rbf": math.inf}[kernel]
