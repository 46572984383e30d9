"""Anderson acceleration of fixed-point iterations, many at once."""

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
_MEMORY = 6  # past sweeps combined by Anderson acceleration
_FIRST_STEP = 0.9
_PATIENCE = 8  # sweeps without progress that count as a failure of the acceleration
_FAILURES = 3  # after which a problem goes on by plain half steps


class Anderson:
    """Anderson acceleration of EP's site updates, each problem on its own.

    Math: with site parameters x, update steps f(x) and their last differences dX, dF,
        x+ = x + eta f - (dX + eta dF) gamma,   gamma = argmin |f - dF gamma|
    in coordinates scaled by the marginal variances. A problem whose mismatch grows, or stays, goes back to its best
    sites, forgets its history and takes shorter steps; after a few such failures it is no longer accelerated.
    """

    def __init__(self, b: int) -> None:
        self.step = np.full((b, 1), _FIRST_STEP)
        self.best = np.full((b, 1), math.inf)
        self.stale = np.zeros((b, 1), dtype=int)  # sweeps since the mismatch became smaller
        self.failures = np.zeros((b, 1), dtype=int)
        self.best_x: Array | None = None
        self.best_f: Array | None = None
        self.last: tuple[Array, Array] | None = None
        self.dx: list[Array] = []
        self.df: list[Array] = []

    def propose(self, x: Array, f: Array, scale: Array, mismatch: Array) -> tuple[Array, Array]:
        """Return the next parameters and the plain damped ones, `b x 2n` each."""
        gap = mismatch[:, None]
        failed = np.zeros_like(gap, dtype=bool)
        if self.best_x is not None and self.best_f is not None and self.last is not None:
            self.dx.append(x - self.last[0])
            self.df.append(f - self.last[1])
            self.stale = np.where(gap < 0.9 * self.best, 0, self.stale + 1)
            failed = ((gap > 3 * self.best) | (self.stale > _PATIENCE)) & ~self.plain
            self.stale[failed] = 0
            self.failures = self.failures + failed
            if failed.any():
                x, f = np.where(failed, self.best_x, x), np.where(failed, self.best_f, f)
                self.dx, self.df = ([np.where(failed, 0.0, d) for d in old] for old in (self.dx, self.df))
            self.step = np.where(failed, 0.5 * self.step, np.minimum(1.1 * self.step, _FIRST_STEP))
            self.step = np.where(self.plain, 0.5, self.step)
            self.dx, self.df = self.dx[-_MEMORY:], self.df[-_MEMORY:]
        improved = (gap <= self.best) & ~failed
        self.best_x = x if self.best_x is None else np.where(improved, x, self.best_x)
        self.best_f = f if self.best_f is None else np.where(improved, f, self.best_f)
        self.best = np.where(improved, gap, self.best)
        self.last = (x, f)
        plain = x + self.step * f
        if not self.df:
            return plain, plain
        dx, df = np.stack(self.dx, -1), np.stack(self.df, -1)
        scaled = df * scale[..., None]
        gram = scaled.swapaxes(-1, -2) @ scaled
        diagonal = np.einsum("bii->bi", gram)
        diagonal += 1e-10 * diagonal.max(-1, keepdims=True) + 1e-300
        right = scaled.swapaxes(-1, -2) @ (f * scale)[..., None]
        gamma = np.nan_to_num(_solve(gram, right), nan=0.0, posinf=0.0, neginf=0.0)
        faster = plain - ((dx + self.step[..., None] * df) @ gamma)[..., 0]
        return np.where(self.plain, plain, faster), plain

    @property
    def plain(self) -> Bools:
        """`b x 1`, problems that are not accelerated any more."""
        return self.failures >= _FAILURES


def _solve(gram: Array, right: Array) -> Array:
    try:
        return np.asarray(np.linalg.solve(gram, right))
    except np.linalg.LinAlgError:
        return np.zeros_like(right)
