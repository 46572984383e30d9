"""Global maximisation over the unit cube, with integer and categorical coordinates."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from crashbo.history import History
from crashbo.sobol import sobol as sobol
from crashbo.space import Space

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Score = Callable[[Array], Array]
Slope = Callable[[Array], tuple[Array, Array]]
_CELLS, _STEPS = 64, 33  # integers that are all tried, and steps of a ladder elsewhere
_NEXT = np.array([-3, -2, -1, 1, 2, 3])[:, None]  # integers next to one of many
_NEAR = np.array([0.003, 0.02, 0.1]).reshape(3, 1, 1)  # distances from the trials that a search looks at too


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Attributes:
        starts: best points refined by gradient.
        iterations: of L-BFGS-B, all starts together.
        evaluations: of all starts together, after which no further iteration begins.
        precision: of the sum of their scores, relative.
    """

    starts: int = 4
    iterations: int = 30
    evaluations: int = 40
    precision: float = 1e-7


@dataclass(frozen=True)
class Maximum:
    """The best point found.

    Attributes:
        point: `d`, rounded to a valid one.
        value: its score.
    """

    point: Array
    value: float


class Rounding:
    """Moves points to valid ones: integers and choices to the middle of their cells, all to where constraints hold."""

    def __init__(self, space: Space) -> None:
        self.space, self.constrained = space, bool(space.constraints)
        self.discrete = [one for one in space.coordinates if one.kind != "continuous"]
        self.free = np.ones(space.dimension)
        for one in self.discrete:
            self.free[one.start : one.stop] = 0.0

    def __bool__(self) -> bool:
        return bool(self.discrete) or self.constrained

    def __call__(self, X: Array) -> Array:
        """Round `... x d` points."""
        if not self:
            return X
        result = X.copy()
        for one in self.discrete:
            result[..., one.start : one.stop] = one.round(np.clip(X[..., one.start : one.stop], 0.0, 1.0))
        return self.space.inward(np.clip(result, 0.0, 1.0)) if self.constrained else result


def look(history: History, rounding: Rounding, seed: int, raw: int, near: Array | None = None) -> Array:
    """Points for a first look: quasi-random ones all over the cube, the trials, and points around `near`, `k x d`.

    Without `near`, around all trials.
    """
    near = history.points if near is None else near
    noise = np.random.default_rng(seed).standard_normal((len(_NEAR), *near.shape))
    around = np.clip(near + _NEAR * noise, 0.0, 1.0).reshape(-1, near.shape[-1])
    return rounding(np.concatenate([history.space.spread(raw, seed), history.points, around]))


def maximise(
    score: Score,
    slope: Slope,
    points: Array,
    rounding: Rounding,
    *,
    effort: Effort | None = None,
    allowed: Callable[[Array], Bools] | None = None,
) -> Maximum:
    """Maximise a score over the unit cube.

    A look at given points, then L-BFGS-B from the best of them, all together; discrete coordinates are rounded inside
    the score, so gradients move the continuous ones; a hill climb then changes parameters one at a time, and gradients
    follow it.

    Args:
        score: `p x d` to `p`.
        slope: `p x d` to scores `p` and gradients `p x d`.
        points: `k x d`, valid ones to look at first.
        rounding: to valid points.
        effort: how hard to search.
        allowed: `p x d` to bool `p`, points that may be returned; None allows all.
    """
    effort = effort or Effort()
    values = _evaluate(score, points, allowed)
    top = np.argsort(-values, kind="stable")[: effort.starts]
    refined = rounding(_ascend(slope, points[top], rounding, effort))
    candidates = np.concatenate([refined, points[top]])
    scores = np.concatenate([_evaluate(score, refined, allowed), values[top]])
    winner = int(scores.argmax())
    best = Maximum(candidates[winner], float(scores[winner]))
    if rounding:
        best = _climb(score, rounding, best, allowed)
        refined = rounding(_ascend(slope, best.point[None], rounding, effort))
        value = float(_evaluate(score, refined, allowed)[0])
        best = _climb(score, rounding, Maximum(refined[0], value), allowed) if value > best.value else best
    return _wander(score, rounding, best, allowed) if rounding.constrained else best


def _wander(score: Score, rounding: Rounding, best: Maximum, allowed: Callable[[Array], Bools] | None) -> Maximum:
    """Improve by random steps, ever shorter: along the border of what constraints allow, where gradients end."""
    rng = np.random.default_rng(0)
    for length in (0.1, 0.03, 0.01, 0.003, 0.001):
        moved = rounding(best.point + length * rng.standard_normal((64, len(best.point))))
        values = _evaluate(score, moved, allowed)
        winner = int(values.argmax())
        if values[winner] > best.value:
            best = Maximum(moved[winner], float(values[winner]))
    return best


def _evaluate(score: Score, points: Array, allowed: Callable[[Array], Bools] | None) -> Array:
    values = score(points)
    values = np.where(np.isfinite(values), values, -1e300)
    return values if allowed is None else np.where(allowed(points), values, -1e301)


def _ascend(slope: Slope, start: Array, rounding: Rounding, effort: Effort) -> Array:
    """Refine all starting points together."""
    shape = start.shape

    def negative(flat: Array) -> tuple[float, Array]:
        values, gradients = slope(rounding(flat.reshape(shape)))
        total = float(values.sum())
        if not math.isfinite(total):
            return 1e300, np.zeros_like(flat)
        return -total, -(np.nan_to_num(gradients) * rounding.free).ravel()

    options = {"maxiter": effort.iterations, "maxfun": effort.evaluations, "ftol": effort.precision, "gtol": 1e-12}
    found = minimize(
        negative, start.ravel().copy(), jac=True, method="L-BFGS-B", bounds=[(0.0, 1.0)] * start.size, options=options
    )
    return np.clip(found.x.reshape(shape), 0.0, 1.0)


def _climb(score: Score, rounding: Rounding, best: Maximum, allowed: Callable[[Array], Bools] | None) -> Maximum:
    """Improve by changing one parameter at a time, as long as that helps."""
    for _ in range(10):
        moved = rounding(_moves(best.point, rounding.space))
        values = _evaluate(score, moved, allowed)
        winner = int(values.argmax())
        if values[winner] <= best.value + 1e-9 * abs(best.value):
            break
        best = Maximum(moved[winner], float(values[winner]))
    return best


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
