"""The correlation function: Matern-3/2, Matern-5/2 or RBF, with a lengthscale per coordinate."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import InputError

Array = NDArray[np.float64]
KernelName = Literal["matern32", "matern52", "rbf"]
Kernels = KernelName | tuple[KernelName, ...]
CONSTANT = 1e6  # lengthscale of a latent that is constant over the unit cube
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


def correlation(r2: Array, kernel: Kernels) -> Array:
    """Correlation at squared distances `r2`, any shape; one kernel, or one for every entry of the first axis."""
    if not isinstance(kernel, str):
        (value,) = _by_kernel(r2, kernel, lambda part, name: (correlation(part, name),), 1)
        return value
    if kernel == "rbf":
        return np.exp(-0.5 * r2)
    if kernel == "matern32":
        r = np.sqrt(3 * r2)
        return (1 + r) * np.exp(-r)
    r = np.sqrt(5 * r2)
    return (1 + r + np.square(r) / 3) * np.exp(-r)


def correlation_and_slope(r2: Array, kernel: Kernels) -> tuple[Array, Array]:
    """Correlation R as in `correlation`, and F = -2 dR / d r2.

    Math: dR / d log lengthscale_j = F (x_j - z_j)^2 / lengthscale_j^2,
        dR / d x_j = -F (x_j - z_j) / lengthscale_j^2
    """
    if not isinstance(kernel, str):
        value, slope = _by_kernel(r2, kernel, correlation_and_slope, 2)
        return value, slope
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


def latent_correlation(A: Array, B: Array, lengthscale: Array, kernel: Kernels) -> tuple[Array, Array]:
    """`correlation_and_slope` between `m x d` and `n x d` points under lengthscales `b x d`, `b x m x n` each.

    Lengthscales of `CONSTANT` and above make a latent that is the same everywhere.
    """
    if lengthscale.min() >= CONSTANT:
        shape = (len(lengthscale), len(A), len(B))
        return np.ones(shape), np.zeros(shape)
    return correlation_and_slope(squared_distance(A, B, lengthscale), kernel)


def _by_kernel(r2: Array, kernels: tuple[KernelName, ...], function: Any, results: int) -> list[Array]:
    """Apply a function of distances and kernel to the entries of each kernel."""
    found = [np.empty_like(r2) for _ in range(results)]
    for name in sorted(set(kernels)):
        mine = [i for i, one in enumerate(kernels) if one == name]
        for target, value in zip(found, function(r2[mine], name), strict=True):
            target[mine] = value
    return found


def spectral_shape(kernel: KernelName) -> float:
    """Degrees of freedom over two of the spectrum, a Student t; infinity for a Gaussian."""
    return {"matern32": 1.5, "matern52": 2.5, "rbf": math.inf}[kernel]
