"""What a pruned trial would have cost, by how finished trials went on from that step."""

import bisect
import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_WEIGHT = 1.0  # of the assumption that differences stay as they are, in trials
_FEW = 3  # finished trials before steps can be weighed
_STEPS = 30  # of the last ones that are looked at
_EXACT = 1e-9  # of the costs' variance: a line that fits better counts as exact
_SLOPES = (0.0, 1.5)  # an early value that misleads must not be turned round, nor blown up


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
    (all curves fall while a model trains), but much beside those of other trials at that step. Every step it reported
    has its say, since the last value may just be an unlucky one.

    Math:
        The mean over its last steps s of offset + slope * value(s), each weighted by 1 / (mean squared residual), where
        the line goes through the finished trials' (value_i(s), cost_i): slope by least squares, drawn towards 1 with
        the weight of `_WEIGHT` trials and kept within `_SLOPES`, offset the median of cost_i - slope * value_i(s). With
        fewer than `_FEW` finished trials the last step alone. The result is worse than the best of their costs: no
        trial that was given up becomes the best one.

    Args:
        pruned: of the trial, with at least one value.
        finished: curves and costs of the trials that ended.
        maximize: whether more is better.
    """
    costs = [cost for _, cost in finished]
    steps = list(zip(pruned.steps, pruned.values, strict=True))[-_STEPS:]
    found = [_judge(step, value, finished) for step, value in (steps if len(costs) >= _FEW else steps[-1:])]
    known = [one for one in found if one is not None]
    total = math.fsum(weight for _, weight in known)
    guess = math.fsum(one * weight for one, weight in known) / total if known else pruned.values[-1]
    if not costs:
        return guess
    best = max(costs) if maximize else min(costs)
    bound = math.nextafter(best, -math.inf if maximize else math.inf)
    return min(guess, bound) if maximize else max(guess, bound)


def _judge(step: int, value: float, finished: Sequence[tuple[Curve, float]]) -> tuple[float, float] | None:
    """The cost that a value at a step leads to, and its weight; None if nobody finished had a value by then."""
    pairs = [(before, cost) for curve, cost in finished if (before := curve.at(step)) is not None]
    if not pairs:
        return None
    slope = _slope(pairs)
    offset = statistics.median(cost - slope * before for before, cost in pairs)
    residuals = [cost - slope * before - offset for before, cost in pairs]
    spread = statistics.pvariance([cost for _, cost in finished])
    return offset + slope * value, 1.0 / (math.fsum(one**2 for one in residuals) / len(pairs) + _EXACT * (1.0 + spread))


def _slope(pairs: Sequence[tuple[float, float]]) -> float:
    """How much of a difference at a step is left at the end; 1 while there is nothing to tell it from."""
    if not pairs:
        return 1.0
    middle = [statistics.fmean(column) for column in zip(*pairs, strict=True)]
    apart = [(before - middle[0], cost - middle[1]) for before, cost in pairs]
    spread = math.fsum(before**2 for before, _ in apart)
    prior = _WEIGHT * spread / len(pairs)
    if not spread or not math.isfinite(spread):
        return 1.0
    slope = (math.fsum(before * cost for before, cost in apart) + prior) / (spread + prior)
    return min(max(slope, _SLOPES[0]), _SLOPES[1])
