"""The correlation function: Matern-3/2, Matern-5/2 or RBF, with a lengthscale per coordinate."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crashbo.problem.arrays import Array, Indices
from crashbo.problem.options import KernelName

Kernels = KernelName | tuple[KernelName, ...]
CONSTANT = 1e6  # lengthscale of a latent that is constant over the unit cube
_AT_ONCE = 500_000  # numbers in the squared differences of coordinates that are kept at once


def squared_distance(A: Array, B: Array, lengthscale: Array) -> Array:
    """Squared distances of points `m x d` and `n x d` in lengthscales `... x d`, `... x m x n`; 0 for equal points."""
    (m, d), n = A.shape, len(B)
    precision = np.square(1.0 / lengthscale).reshape(-1, d)
    total = np.empty((len(precision), m, n))
    step = max(1, _AT_ONCE // max(1, d * n))
    for i in range(0, m, step):
        part = total[:, i : i + step]
        part[:] = (precision @ square_gaps(A[i : i + step], B)).reshape(part.shape)
    return total.reshape(*lengthscale.shape[:-1], m, n)


def square_gaps(A: Array, B: Array) -> Array:
    """`d x (m n)`, squared differences of the coordinates of `m x d` and `n x d` points."""
    gaps = A.T[:, :, None] - B.T[:, None, :]
    gaps *= gaps
    return gaps.reshape(A.shape[-1], len(A) * len(B))


def correlation(r2: Array, kernel: KernelName) -> Array:
    """Correlation at squared distances `r2`, any shape."""
    if kernel == "rbf":
        return np.exp(-0.5 * r2)
    r = np.sqrt((3 if kernel == "matern32" else 5) * r2)
    value = 1 + r
    if kernel == "matern52":
        value += (5 / 3) * r2
    value *= np.exp(np.negative(r, out=r), out=r)
    return value


def correlation_slope(r2: Array, kernel: KernelName) -> Array:
    """The second part of `correlation_and_slope`."""
    return correlation_and_slope(r2, kernel)[1]


def correlation_and_slope(r2: Array, kernel: KernelName) -> tuple[Array, Array]:
    """The correlation R, and its slope F = -2 dR / d r2.

    Math: dR / d log lengthscale_j = F (x_j - z_j)^2 / lengthscale_j^2,  dR / d x_j = -F (x_j - z_j) / lengthscale_j^2
    """
    if kernel == "rbf":
        value = np.exp(-0.5 * r2)
        return value, value
    r = np.sqrt((3 if kernel == "matern32" else 5) * r2)
    decay = np.exp(-r)
    if kernel == "matern32":
        return (1 + r) * decay, 3 * decay
    return (1 + r + (5 / 3) * r2) * decay, (5 / 3) * (1 + r) * decay


@dataclass(frozen=True)
class Latents:
    """The correlation functions of `b x l` latents; those that are the same are computed once."""

    lengthscale: Array  # q x d, of those that differ
    kernels: tuple[KernelName, ...]  # q, sorted
    place: Indices  # b x l, which of them a latent has; -1: it is constant, its lengthscales being CONSTANT or above

    @classmethod
    def of(cls, lengthscale: Array, kernel: Kernels) -> "Latents":
        """Of lengthscales `b x l x d` and one kernel, or one for each of the `b`."""
        b, latents, d = lengthscale.shape
        names = [kernel] * b if isinstance(kernel, str) else list(kernel)
        varying = np.argwhere(~(lengthscale.min(-1) >= CONSTANT)).tolist()  # NaN is not constant
        keys = {(i, latent): (names[i], lengthscale[i, latent].tobytes()) for i, latent in varying}
        ordered = sorted(dict.fromkeys(keys.values()), key=lambda one: one[0])
        numbers = {key: number for number, key in enumerate(ordered)}
        place = np.full((b, latents), -1)
        for where, key in keys.items():
            place[where] = numbers[key]
        different = np.array([np.frombuffer(one) for _, one in ordered]).reshape(-1, d)
        return cls(different, tuple(name for name, _ in ordered), place)

    def evaluate(self, function: Callable[[Array, KernelName], Array], r2: Array) -> Array:
        """A function of squared distances and kernel, at distances `q x ...`."""
        if len(set(self.kernels)) == 1:
            return function(r2, self.kernels[0])
        found = np.empty_like(r2)
        for name in set(self.kernels):
            begin = self.kernels.index(name)
            run = slice(begin, begin + self.kernels.count(name))
            found[run] = function(r2[run], name)
        return found

    def of_latent(self, different: Array, latent: int, constant: float) -> Array:
        """`b x ...`, what belongs to one latent of `q x ...` values; `constant` in settings where it is constant."""
        found = different[self.place[:, latent]]
        found[self.place[:, latent] < 0] = constant
        return found
