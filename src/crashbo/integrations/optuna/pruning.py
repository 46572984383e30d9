"""What a pruned trial would have cost: its last value, moved by what finished trials gained after that step."""

import bisect
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Curve:
    """The values that a trial reported on its way.

    Attributes:
        steps: in order.
        values: at those steps, all finite.
    """

    steps: Sequence[int] = ()
    values: Sequence[float] = ()

    def at(self, step: int) -> float | None:
        """The value at a step, or at the last one before it; None if there is none."""
        found = bisect.bisect_right(self.steps, step)
        return self.values[found - 1] if found else None


def curve_of(reported: Mapping[int, float], usable: Iterable[int]) -> Curve:
    """The curve of a trial's intermediate values, those at the usable steps."""
    steps = sorted(usable)
    return Curve(steps, [reported[step] for step in steps])


def estimate(pruned: Curve, finished: Sequence[tuple[Curve, float]], *, maximize: bool) -> float:
    """Return what a pruned trial would have cost.

    Pruners compare values at the same step, and so does this. An early value says little about a final one as such
    (all curves fall while a model trains), but much beside those of other trials at that step.

    Math:
        value(s) + median over finished trials of (cost - value_i(s)), but worse than the best of their costs: no trial
        that was given up becomes the best one.

    Args:
        pruned: of the trial, with at least one value.
        finished: curves and costs of the trials that ended.
        maximize: whether more is better.
    """
    step, value = pruned.steps[-1], pruned.values[-1]
    gains = [cost - before for curve, cost in finished if (before := curve.at(step)) is not None]
    guess = value + (statistics.median(gains) if gains else 0.0)
    costs = [cost for _, cost in finished]
    if not costs:
        return guess
    best = max(costs) if maximize else min(costs)
    bound = math.nextafter(best, -math.inf if maximize else math.inf)
    return min(guess, bound) if maximize else max(guess, bound)
