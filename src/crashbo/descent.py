"""Minimisation inside bounds by L-BFGS with projected steps.

SciPy's would do; importing scipy.optimize takes longer than a suggestion.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Function = Callable[[Array], tuple[float, Array]]
_MEMORY = 10  # steps that the curvature is learned from
_ENOUGH = 1e-4  # share of the decrease that the slope promises
_STEEP = 0.9  # share of the slope at which a step was too short
_TRIES = 20  # of one step's length


@dataclass(frozen=True)
class Effort:
    """When to stop.

    Attributes:
        iterations: at most.
        evaluations: after which no further iteration begins.
        precision: decrease of the value in one iteration, relative to its size or 1.
        steepest: largest derivative, in directions that the bounds leave free.
    """

    iterations: int
    evaluations: int = 15_000
    precision: float = 1e-9
    steepest: float = 1e-5


@dataclass(frozen=True)
class Minimum:
    """The lowest point found, its value, and how often the function was evaluated."""

    x: Array
    value: float
    evaluations: int


def descend(function: Function, start: Array, low: Array, high: Array, effort: Effort) -> Minimum:
    """Minimise a function with a gradient between bounds.

    A step goes along the quasi-Newton direction of the coordinates that are not held by a bound, cut at the bounds; it
    is shortened until the value decreases enough, and lengthened while the function falls as steeply as at its start.

    Args:
        function: `p` to a value and its gradient.
        start: `p`, moved inside the bounds.
        low, high: `p` each, may be infinite.
        effort: when to stop.
    """
    x = np.clip(start, low, high)
    value, slope = function(x)
    memory = _Memory()
    evaluations = 1
    for _ in range(effort.iterations):
        held = ((x <= low) & (slope > 0)) | ((x >= high) & (slope < 0))
        free = np.where(held, 0.0, slope)
        if not np.abs(free).max(initial=0.0) > effort.steepest or evaluations > effort.evaluations:
            break
        direction = -memory.times(free, held)
        if not -np.inf < _product(direction, free) < 0:
            memory, direction = _Memory(), -free
        length = 1.0 if memory.steps else min(1.0, 1.0 / float(np.abs(free).sum()))
        moved = _search(function, (x, value, slope), direction, length, (low, high))
        evaluations += moved.evaluations
        if moved.x is x:  # no decrease along this direction: once more along the slope, then give up
            if not memory.steps:
                break
            memory = _Memory()
            continue
        decrease, size = value - moved.value, max(abs(value), abs(moved.value), 1.0)
        memory.add(moved.x - x, moved.slope - slope)
        x, value, slope = moved.x, moved.value, moved.slope
        if decrease <= effort.precision * size:
            break
    return Minimum(x, value, evaluations)


@np.errstate(over="ignore", invalid="ignore")
def _product(a: Array, b: Array) -> float:
    """Inner product; infinite or no number for slopes of 1e200, after which a search goes on along the slope."""
    return float(a @ b)


class _Memory:
    """The curvature, from past steps and the changes of the slope along them."""

    def __init__(self) -> None:
        self.steps: list[Array] = []
        self.changes: list[Array] = []

    def add(self, step: Array, change: Array) -> None:
        if _product(step, change) > 1e-10 * _product(change, change):
            self.steps, self.changes = [*self.steps, step][-_MEMORY:], [*self.changes, change][-_MEMORY:]

    @np.errstate(over="ignore", invalid="ignore")
    def times(self, slope: Array, held: Bools) -> Array:
        """The inverse Hessian of the coordinates that are free, times a slope."""
        if not self.steps:
            return slope
        steps, changes = np.array(self.steps), np.array(self.changes)
        steps[:, held], changes[:, held] = 0.0, 0.0
        curved = np.einsum("kp,kp->k", steps, changes)
        usable = np.flatnonzero(curved > 1e-12 * np.einsum("kp,kp->k", changes, changes))
        result, shares = slope.copy(), {}
        for k in usable[::-1].tolist():
            shares[k] = steps[k] @ result / curved[k]
            result -= shares[k] * changes[k]
        if len(usable):
            last = int(usable[-1])
            result *= curved[last] / (changes[last] @ changes[last])
        for k in usable.tolist():
            result += (shares[k] - changes[k] @ result / curved[k]) * steps[k]
        return result


@dataclass(frozen=True)
class _Moved:
    """Where a step led; the same `x` if nowhere."""

    x: Array
    value: float
    slope: Array
    evaluations: int


def _search(
    function: Function, at: tuple[Array, float, Array], direction: Array, length: float, bounds: tuple[Array, Array]
) -> _Moved:
    """Find a length of the step at which the value decreases enough and the slope has become flatter."""
    x, value, slope = at
    best, shortened = _Moved(x, value, slope, 0), False
    for tries in range(1, _TRIES + 1):
        there = np.clip(x + length * direction, *bounds)
        promised = _product(slope, there - x)
        new, new_slope = function(there)
        if promised < 0 and new <= min(value + _ENOUGH * promised, best.value):
            best = _Moved(there, new, new_slope, tries)
            length *= 4
            longer = np.clip(x + length * direction, *bounds)
            steep = _product(new_slope, direction) < _STEEP * _product(slope, direction)
            if shortened or not steep or np.array_equal(longer, there):
                break
        elif best.x is not x:
            break  # the one before was long enough
        else:
            # The lowest point of the parabola through value, slope and the new value, within reason.
            curve = new - value - promised
            guess = -0.5 * promised / curve if 0 < curve < np.inf else 0.1
            length *= min(max(guess, 0.1), 0.5)
            shortened = True
            if not np.abs(length * direction).max() > 1e-14:
                break
    return _Moved(best.x, best.value, best.slope, tries)
