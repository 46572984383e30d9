"""Points that a search looks at first, and which of them are valid and worth a trial."""

import math

import numpy as np

from crashbo.model.kernel import squared_distance
from crashbo.problem.arrays import Array, Bools
from crashbo.problem.history import History
from crashbo.problem.space import Space

_DISTANCES = np.array([0.003, 0.02, 0.1]).reshape(3, 1, 1)  # from the trials that a search looks around
_NEAR = 40  # trials that are looked around
_SAME = 1e-6  # distance below which points are one and the same


class Rounding:
    """Moves points to valid ones: integers and choices to the middle of their cells, all to where constraints hold."""

    def __init__(self, space: Space) -> None:
        self.space = space
        kinds = [one.kind for one in space.coordinates for _ in range(one.start, one.stop)]
        self.free = np.array([kind == "continuous" for kind in kinds], dtype=bool)  # d
        self.needed = bool(space.constraints) or not self.free.all()

    def __call__(self, X: Array) -> Array:
        """Round `... x d` points; a coordinate that a search has made NaN becomes 0."""
        return self.space.project(self.space.round(np.nan_to_num(X))) if self.needed else X


def look(history: History, seed: int, raw: int, near: Array) -> Array:
    """Valid points for a first look: quasi-random ones, the trials, and points near and far around `near`, `k x d`."""
    noise = np.random.default_rng(seed).standard_normal((len(_DISTANCES), *near.shape))
    around = np.clip(near + _DISTANCES * noise, 0.0, 1.0).reshape(-1, near.shape[-1])
    return Rounding(history.space)(np.concatenate([history.space.spread(raw, seed), history.points, around]))


def look_around(history: History, seed: int, raw: int) -> Array:
    """As `look`, around all trials, or of many around the best."""
    costs = [math.inf if cost is None else cost for cost in history.costs]
    return look(history, seed, raw, history.points[np.argsort(costs, kind="stable")[:_NEAR]])


def points_to_try(history: History) -> Array:
    """Points that the search for the next suggestion looks at first."""
    return look_around(history, int(history.generator().integers(2**31)), history.options.raw)


def fresh(history: History, X: Array) -> Bools:
    """Which points, `p x d`, are neither under way nor known to fail."""
    taken = np.concatenate([history.points[history.failed], history.pending_points])
    if not len(taken):
        return np.ones(len(X), dtype=bool)
    gaps = squared_distance(X, taken, np.ones(X.shape[-1]))
    return np.asarray(gaps.min(-1) > _SAME**2)
