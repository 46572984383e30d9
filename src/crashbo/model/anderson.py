"""Anderson acceleration of fixed-point iterations, many at once."""

import math

import numpy as np

from crashbo.problem.arrays import Array, Indices

_MEMORY = 6  # past sweeps combined by Anderson acceleration
_NEAR = 1.0  # mismatch at which acceleration begins
_FAR_STEP, _NEAR_STEP = 0.8, 0.9  # of the way to the next sites
_LEAST_STEP = 0.3
_SLOW = 4  # sweeps without progress after which plain steps become shorter
_PATIENCE = 8  # sweeps without progress that count as a failure of the acceleration


class Anderson:
    """Anderson acceleration of EP's site updates, each problem on its own.

    Far from the solution steps are plain: there updates are not smooth, and extrapolating them leads astray.

    Math: with site parameters x, update steps f(x) and their last differences dX, dF,
        x+ = x + eta f - (dX + eta dF) gamma,   gamma = argmin |f - dF gamma|
    in coordinates scaled by the marginal variances. A problem whose mismatch grows, or stays, goes back to its best
    sites, forgets its history and is accelerated again once it has come closer.
    """

    def __init__(self, b: int, p: int) -> None:
        self.step = np.full((b, 1), _FAR_STEP)
        self.near = np.full((b, 1), _NEAR)
        self.best = np.full((b, 1), math.inf)
        self.stale = np.zeros((b, 1), dtype=np.int64)  # sweeps since the mismatch became smaller
        self.fast = np.zeros((b, 1), dtype=bool)  # accelerated in the last sweep
        self.best_x = self.best_f = self.last_x = self.last_f = np.zeros((b, 0))
        self.dx = self.df = np.zeros((b, p, 0))  # of the last sweeps

    def keep(self, index: Indices) -> None:
        """Go on with some of the problems."""
        for name, value in vars(self).items():
            setattr(self, name, value[index])

    def propose(self, x: Array, f: Array, scale: Array, mismatch: Array) -> tuple[Array, Array]:
        """Return the next parameters and the plain damped ones, `b x p` each."""
        gap = mismatch[:, None]
        if self.best_x.shape != x.shape:
            self.best_x, self.best_f, self.best = x, f, gap
            self.fast = gap <= self.near
        else:
            x, f = self._remember(x, f, gap)
        self.last_x, self.last_f = x, f
        plain = x + np.where(self.fast, _NEAR_STEP, self.step) * f
        if not self.df.shape[-1] or not self.fast.any():
            return plain, plain
        return np.where(self.fast, plain - self._correction(f, scale), plain), plain

    def _remember(self, x: Array, f: Array, gap: Array) -> tuple[Array, Array]:
        """Judge the last step; return the parameters to go on from."""
        self.stale = np.where(gap < 0.9 * self.best, 0, self.stale + 1)
        failed = self.fast & ((gap > 3 * self.best) | (self.stale > _PATIENCE))
        slow = ~self.fast & (self.stale >= _SLOW)
        self.stale[failed | slow] = 0
        if slow.any():
            self.step = np.where(slow, np.maximum(0.7 * self.step, _LEAST_STEP), self.step)
        if failed.any():
            self.near = np.where(failed, 0.3 * np.minimum(self.best, self.near), self.near)
            x, f = np.where(failed, self.best_x, x), np.where(failed, self.best_f, f)
        near = gap <= self.near
        kept = (near & self.fast)[..., None]
        self.dx, self.df = (
            np.where(kept, np.concatenate([old[..., 1 - _MEMORY :], new[..., None]], -1), 0.0)
            for old, new in ((self.dx, x - self.last_x), (self.df, f - self.last_f))
        )
        improved = (gap <= self.best) & ~failed
        self.best_x, self.best_f = np.where(improved, x, self.best_x), np.where(improved, f, self.best_f)
        self.best = np.where(improved, gap, self.best)
        self.fast = near
        return x, f

    def _correction(self, f: Array, scale: Array) -> Array:
        """What acceleration takes from the plain step."""
        scaled = self.df * scale[..., None]
        turned = scaled.swapaxes(-1, -2)
        gram = turned @ scaled
        diagonal = np.einsum("bii->bi", gram)
        diagonal += 1e-10 * diagonal.max(-1, keepdims=True) + 1e-300
        right = turned @ (f * scale)[..., None]
        try:
            gamma = np.linalg.solve(gram, right)
        except np.linalg.LinAlgError:
            gamma = np.zeros_like(right)
        gamma[~np.isfinite(gamma)] = 0.0
        return ((self.dx + _NEAR_STEP * self.df) @ gamma)[..., 0]
