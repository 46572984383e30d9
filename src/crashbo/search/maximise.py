"""Global maximisation over the unit cube, with integer and categorical coordinates."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from crashbo.problem.arrays import Array, Bools
from crashbo.problem.space import Space
from crashbo.search.points import Rounding

Score = Callable[[Array], Array]
Slope = Callable[[Array], tuple[Array, Array]]
_CELLS, _STEPS = 64, 33  # integers that are all tried, and steps of a ladder elsewhere
_NEXT = np.array([-3, -2, -1, 1, 2, 3])[:, None]  # integers next to one of many
_CLIMBS = 10  # changes of one parameter at most
_LENGTHS = (0.1, 0.03, 0.01, 0.003, 0.001)  # of random steps along the border of what constraints allow


@dataclass(frozen=True)
class Effort:
    """How hard to search: how many of the best points L-BFGS-B refines, and where it ends, all of them together."""

    starts: int = 4
    iterations: int = 30
    evaluations: int = 40  # after which no further iteration begins
    precision: float = 1e-7  # of the sum of scores, relative


@dataclass(frozen=True)
class Maximum:
    """The best point found, `d`, a valid one, and its score."""

    point: Array
    value: float

    def or_better(self, other: "Maximum") -> "Maximum":
        return other if other.value > self.value else self


def maximise(
    score: Score,
    slope: Slope,
    points: Array,
    space: Space,
    *,
    effort: Effort | None = None,
    allowed: Callable[[Array], Bools] | None = None,
    first: Array | None = None,
) -> Maximum:
    """Maximise a score over the unit cube.

    A look at given points, then L-BFGS-B from the best of them, all together; discrete coordinates are rounded inside
    the score, so gradients move the continuous ones; a hill climb then changes parameters one at a time, and gradients
    follow it. Where constraints end the space, random steps follow, ever shorter, along the border.

    Args:
        score, slope: `p x d` to scores `p`, and to scores with gradients `p x d`.
        points: `k x d`, valid ones to look at first.
        space: which points are valid.
        allowed: `p x d` to bool `p`, points that may be returned; None allows all.
        first: `k`, the scores at `points` where they are known, -infinity where that is not allowed.
    """
    effort, rounding = effort or Effort(), Rounding(space)

    def evaluate(X: Array) -> Array:
        values = score(X)
        values = np.where(np.isfinite(values), values, -1e300)
        return values if allowed is None else np.where(allowed(X), values, -1e301)

    def best_near(X: Array) -> Maximum:
        moved = rounding(X)
        return _highest(moved, evaluate(moved))

    def climb(best: Maximum) -> Maximum:
        for _ in range(_CLIMBS):
            found = best_near(_moves(best.point, space))
            if found.value <= best.value + 1e-9 * abs(best.value):
                break
            best = found
        return best

    values = evaluate(points) if first is None else first
    top = np.argsort(-values, kind="stable")[: effort.starts]
    refined = best_near(_ascend(slope, points[top], rounding, effort))
    best = refined.or_better(_highest(points[top], values[top]))
    if rounding.needed:
        best = climb(best)
        again = best_near(_ascend(slope, best.point[None], rounding, effort))
        if again.value > best.value:
            best = climb(again)
    return _along_border(best, best_near) if space.constraints else best


def _along_border(best: Maximum, best_near: Callable[[Array], Maximum]) -> Maximum:
    """Random steps, ever shorter, from the best point."""
    rng = np.random.default_rng(0)
    for length in _LENGTHS:
        steps = length * rng.standard_normal((64, len(best.point)))
        best = best.or_better(best_near(best.point + steps))
    return best


def _highest(points: Array, values: Array) -> Maximum:
    winner = int(values.argmax())
    return Maximum(points[winner], float(values[winner]))


def _ascend(slope: Slope, start: Array, rounding: Rounding, effort: Effort) -> Array:
    """Refine all starting points together."""

    def negative(flat: Array) -> tuple[float, Array]:
        values, gradients = slope(rounding(flat.reshape(start.shape)))
        total = float(values.sum())
        if not math.isfinite(total):
            return 1e300, np.zeros_like(flat)
        return -total, -(np.nan_to_num(gradients) * rounding.free).ravel()

    options = {"maxiter": effort.iterations, "maxfun": effort.evaluations, "ftol": effort.precision, "gtol": 1e-12}
    bounds = [(0.0, 1.0)] * start.size
    found = minimize(negative, start.ravel().copy(), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    return np.clip(found.x.reshape(start.shape), 0.0, 1.0)


def _moves(point: Array, space: Space) -> Array:
    """A point with one parameter changed: to every choice, to all integers if they are few, or along a ladder."""
    moved = []
    for one in space.coordinates:
        few = one.kind == "one-hot" or 0 < one.cells <= _CELLS
        ladder = one.spread((np.arange(one.cells) + 0.5) / one.cells if few else np.linspace(0.0, 1.0, _STEPS))
        if one.cells and not few:
            ladder = np.concatenate([ladder, point[one.start] + _NEXT / one.cells])
        rows = np.repeat(point[None], len(ladder), 0)
        rows[:, one.start : one.stop] = ladder
        moved.append(rows)
    return np.clip(np.concatenate(moved), 0.0, 1.0)


def with_differences(score: Score, step: float = 1e-5) -> Slope:
    """A score with its gradient by central differences."""

    def slope(X: Array) -> tuple[Array, Array]:
        p, d = X.shape
        moves = step * np.eye(d)
        ahead, behind = np.clip(X[:, None] + moves, 0, 1), np.clip(X[:, None] - moves, 0, 1)
        values = score(np.concatenate([X, ahead.reshape(-1, d), behind.reshape(-1, d)]))
        width = np.einsum("pjj->pj", ahead - behind)
        gaps = (values[p : p + p * d] - values[p + p * d :]).reshape(p, d)
        return values[:p], gaps / width

    return slope
