"""Correlation functions: Matern-3/2, Matern-5/2 or RBF, with a lengthscale per coordinate."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from crashbo.problem.arrays import Array, Indices
from crashbo.problem.options import KernelName

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


class Kernel(Protocol):
    """A stationary correlation function R of squared distances `r2` in lengthscales, any shape."""

    name: ClassVar[KernelName]

    def correlation(self, r2: Array) -> Array:
        """R."""

    def correlation_and_slope(self, r2: Array) -> tuple[Array, Array]:
        """R, and its slope F = -2 dR / d r2.

        Math: dR / d log lengthscale_j = F (x_j - z_j)^2 / lengthscale_j^2,  dR / d x_j = -F (x_j - z_j) /
            lengthscale_j^2
        """

    def frequencies(self, count: int, d: int, rng: np.random.Generator) -> Array:
        """`count x d`, samples of the spectral density at lengthscale 1: R is the mean of cos(frequency' (x - z))."""


@dataclass(frozen=True)
class RBF:
    """Math: R = exp(-r2 / 2); its spectral density is a standard Gaussian."""

    name: ClassVar[KernelName] = "rbf"

    def correlation(self, r2: Array) -> Array:
        return np.exp(-0.5 * r2)

    def correlation_and_slope(self, r2: Array) -> tuple[Array, Array]:
        value = np.exp(-0.5 * r2)
        return value, value

    def frequencies(self, count: int, d: int, rng: np.random.Generator) -> Array:
        return rng.standard_normal((count, d))


@dataclass(frozen=True)
class Matern32:
    """Math: R = (1 + r) exp(-r),  r = sqrt(3 r2); its spectral density is a Student t of 3 degrees of freedom."""

    name: ClassVar[KernelName] = "matern32"

    def correlation(self, r2: Array) -> Array:
        r = np.sqrt(3 * r2)
        value = 1 + r
        value *= np.exp(np.negative(r, out=r), out=r)
        return value

    def correlation_and_slope(self, r2: Array) -> tuple[Array, Array]:
        r = np.sqrt(3 * r2)
        decay = np.exp(-r)
        return (1 + r) * decay, 3 * decay

    def frequencies(self, count: int, d: int, rng: np.random.Generator) -> Array:
        return _student_t(1.5, count, d, rng)


@dataclass(frozen=True)
class Matern52:
    """Math: R = (1 + r + 5 r2 / 3) exp(-r),  r = sqrt(5 r2); its spectral density is a Student t of 5 degrees of
    freedom."""

    name: ClassVar[KernelName] = "matern52"

    def correlation(self, r2: Array) -> Array:
        r = np.sqrt(5 * r2)
        value = 1 + r
        value += (5 / 3) * r2
        value *= np.exp(np.negative(r, out=r), out=r)
        return value

    def correlation_and_slope(self, r2: Array) -> tuple[Array, Array]:
        r = np.sqrt(5 * r2)
        decay = np.exp(-r)
        return (1 + r + (5 / 3) * r2) * decay, (5 / 3) * (1 + r) * decay

    def frequencies(self, count: int, d: int, rng: np.random.Generator) -> Array:
        return _student_t(2.5, count, d, rng)


def _student_t(half_degrees: float, count: int, d: int, rng: np.random.Generator) -> Array:
    """`count x d`: a Gaussian over the root of a chi-squared, in units of its degrees of freedom."""
    gaussian = rng.standard_normal((count, d))
    return np.asarray(gaussian / np.sqrt(rng.gamma(half_degrees, 1 / half_degrees, (count, 1))))


KERNELS: dict[KernelName, Kernel] = {one.name: one for one in (Matern32(), Matern52(), RBF())}
Kernels = Kernel | tuple[Kernel, ...]


@dataclass(frozen=True)
class Latents:
    """The correlation functions of `b x l` latents; those that are the same are computed once."""

    lengthscale: Array  # q x d, of those that differ
    kernels: tuple[Kernel, ...]  # q, sorted by name
    place: Indices  # b x l, which of them a latent has; -1: it is constant, its lengthscales being CONSTANT or above

    @classmethod
    def of(cls, lengthscale: Array, kernel: Kernels) -> "Latents":
        """Of lengthscales `b x l x d` and one kernel, or one for each of the `b`."""
        b, latents, d = lengthscale.shape
        each = kernel if isinstance(kernel, tuple) else (kernel,) * b
        varying = np.argwhere(~(lengthscale.min(-1) >= CONSTANT)).tolist()  # NaN is not constant
        keys = {(i, latent): (each[i], lengthscale[i, latent].tobytes()) for i, latent in varying}
        ordered = sorted(dict.fromkeys(keys.values()), key=lambda one: one[0].name)
        numbers = {key: number for number, key in enumerate(ordered)}
        place = np.full((b, latents), -1)
        for where, key in keys.items():
            place[where] = numbers[key]
        different = np.array([np.frombuffer(one) for _, one in ordered]).reshape(-1, d)
        return cls(different, tuple(one for one, _ in ordered), place)

    def correlation(self, r2: Array) -> Array:
        """Correlations at squared distances `q x ...`."""
        return self._each(lambda kernel, part: kernel.correlation(part), r2)

    def slope(self, r2: Array) -> Array:
        """Their slopes; see `Kernel.correlation_and_slope`."""
        return self._each(lambda kernel, part: kernel.correlation_and_slope(part)[1], r2)

    def _each(self, function: Callable[[Kernel, Array], Array], r2: Array) -> Array:
        if len(set(self.kernels)) == 1:
            return function(self.kernels[0], r2)
        found = np.empty_like(r2)
        for kernel in set(self.kernels):
            begin = self.kernels.index(kernel)
            run = slice(begin, begin + self.kernels.count(kernel))
            found[run] = function(kernel, r2[run])
        return found

    def of_latent(self, different: Array, latent: int, constant: float) -> Array:
        """`b x ...`, what belongs to one latent of `q x ...` values; `constant` in settings where it is constant."""
        found = different[self.place[:, latent]]
        found[self.place[:, latent] < 0] = constant
        return found
