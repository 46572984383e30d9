"""Climbing a score from several points at once, within the unit cube."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Slope = Callable[[Array], tuple[Array, Array]]
_FIRST = 0.03  # largest change of a coordinate in the first step
_SMALLEST = 1e-9  # step, of the largest coordinate, that is not worth a look
_ENOUGH = 1e-4  # share of the promised gain that a step must bring
_FLAT = 1e-10


def ascend(steps: Slope, start: Array, *, rounds: int, precision: float) -> Array:
    """Climb from every row of `start`, `k x d`, and return where each ended.

    BFGS with backtracking, projected onto the cube. The points share nothing but their evaluations, so a kink that
    stops one does not hold up the others. After a third of the rounds only the better half goes on.

    Args:
        steps: `m x d` to scores `m`, larger is better, and their gradients `m x d`.
        start: `k x d`.
        rounds: evaluations at most, of all points that still climb.
        precision: gain of a step, relative to the score but at least to 1, at which a point has arrived.
    """
    climbers = _Climbers(start, *_sound(*steps(start)))
    for done in range(1, rounds):
        if done == rounds // 3:
            climbers.halve()
        rows, trials = climbers.next()
        if not len(rows):
            break
        climbers.learn(rows, trials, *_sound(*steps(trials)), precision)
    return climbers.x


def _sound(value: Array, gradient: Array) -> tuple[Array, Array]:
    return np.where(np.isfinite(value), value, -np.inf), np.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)


class _Climbers:
    """Points on their way up: where they are, what they know of the curvature, and what they would try next."""

    def __init__(self, x: Array, value: Array, gradient: Array) -> None:
        self.x, self.value, self.gradient = x.copy(), value, gradient
        k, d = x.shape
        self.live = np.isfinite(value)
        self.inverse = np.zeros((k, d, d))  # of the curvature
        self.bent = np.zeros(k, dtype=bool)  # whether that is known
        self.direction, self.length = np.zeros((k, d)), np.ones(k)
        self._aim(np.flatnonzero(self.live))

    def next(self) -> tuple[NDArray[np.intp], Array]:
        """Which points still climb, and what they try."""
        rows = np.flatnonzero(self.live)
        here = self.x[rows]
        trials = np.minimum(np.maximum(here + self.length[rows, None] * self.direction[rows], 0.0), 1.0)
        far = np.abs(trials - here).max(-1, initial=0.0) > _SMALLEST
        self.live[rows] = far
        return rows[far], trials[far]

    def halve(self) -> None:
        """Stop all but the better half."""
        self.live[self.value.argsort()[: len(self.value) // 2]] = False

    def learn(self, rows: NDArray[np.intp], trials: Array, value: Array, gradient: Array, precision: float) -> None:
        """Go where it is better, try less where it is not."""
        moved = trials - self.x[rows]
        promised, gain = (self.gradient[rows] * moved).sum(-1), value - self.value[rows]
        better = gain >= _ENOUGH * np.maximum(promised, 0.0)
        if not better.all():
            # The peak of the parabola through what is known; no score at all: a tenth.
            p, g = promised[~better], gain[~better]
            self.length[rows[~better]] *= np.clip(0.5 * p / np.maximum(p - g, 1e-300), 0.1, 0.5)
            if not better.any():
                return
        up, moved, gradient, gain = rows[better], moved[better], gradient[better], gain[better]
        self._bend(up, moved, self.gradient[up] - gradient)
        self.x[up], self.value[up], self.gradient[up] = trials[better], value[better], gradient
        self.live[up] = gain > precision * np.maximum(np.abs(self.value[up]), 1.0)
        self._aim(up)

    def _aim(self, rows: NDArray[np.intp]) -> None:
        """Choose directions, and try all of them."""
        x, gradient = self.x[rows], self.gradient[rows]
        blocked = ((x <= 0) & (gradient < 0)) | ((x >= 1) & (gradient > 0))
        slope = np.where(blocked, 0.0, gradient)
        newton = np.where(blocked, 0.0, (self.inverse[rows] @ slope[:, :, None])[:, :, 0])
        uphill = (newton * slope).sum(-1)
        useful = self.bent[rows] & (uphill > _FLAT * np.sqrt(np.square(newton).sum(-1) * np.square(slope).sum(-1)))
        steepest = np.abs(slope).max(-1, initial=0.0)
        self.direction[rows] = np.where(
            useful[:, None], newton, slope * (_FIRST / np.maximum(steepest, _FLAT))[:, None]
        )
        self.bent[rows], self.length[rows] = useful, 1.0
        self.live[rows] &= steepest > _FLAT

    def _bend(self, rows: NDArray[np.intp], moved: Array, change: Array) -> None:
        """BFGS: what steps say about the curvature; the first one sets its scale."""
        curvature, steep = (moved * change).sum(-1), np.square(change).sum(-1)
        sound = curvature > _FLAT * np.sqrt(np.square(moved).sum(-1) * steep)
        if not sound.all():
            rows, moved, change, curvature, steep = (one[sound] for one in (rows, moved, change, curvature, steep))
        inverse = self.inverse[rows]
        new = ~self.bent[rows]
        inverse[new] = np.eye(moved.shape[-1]) * (curvature / np.maximum(steep, 1e-300))[new, None, None]
        along = (inverse @ change[:, :, None])[:, :, 0]
        weight = (1 + (change * along).sum(-1) / curvature) / curvature
        cross = moved[:, :, None] * (along / curvature[:, None])[:, None, :]
        inverse += weight[:, None, None] * moved[:, :, None] * moved[:, None, :] - cross - cross.transpose(0, 2, 1)
        self.inverse[rows], self.bent[rows] = inverse, True
