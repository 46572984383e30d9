"""The trials of one output: values, labels, and the rows that they become."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.gp.rows import Rows
from crashbo.history import History
from crashbo.outcome import Constraint

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Data:
    """What was seen of one output, in its own units, minimised (equation (4)).

    Attributes:
        X: `n x d`, points in the unit cube.
        observed: `k`, points with a value.
        values: `k`.
        above: `n`, whether the output lay above its limit.
        labelled: `m`, points whose label counts: all of a GPCR, none of a standard GP.
        limit: where it is known; +inf of an output that cannot fail.
    """

    X: Array
    observed: Indices
    values: Array
    above: Bools
    labelled: Indices
    limit: float | None = None

    @property
    def any_stable(self) -> bool:
        """Whether any point has a value."""
        return len(self.observed) > 0

    @property
    def any_crash(self) -> bool:
        """Whether any label says above."""
        return bool(self.above[self.labelled].any())

    @cached_property
    def sign(self) -> Array:
        """`m`, +1 at or below the limit, -1 above."""
        return np.where(self.above[self.labelled], -1.0, 1.0)

    def rows(self, values: Array, pending: Array | None = None, believed: Array | None = None) -> Rows:
        """Everything seen as rows of one output.

        Args:
            values: `k`, as they are modelled.
            pending: `q x d`, points under way.
            believed: `q`, values that they are believed to return.
        """
        X, seen = self.X, self.observed
        if pending is not None and believed is not None:
            seen = np.concatenate([seen, len(X) + np.arange(len(pending))])
            X, values = np.concatenate([X, pending]), np.concatenate([values, believed])
        zeros = np.zeros(len(seen), dtype=np.int64), np.zeros(len(self.labelled), dtype=np.int64)
        return Rows(X, seen, zeros[0], values, self.labelled, zeros[1], self.sign)


def objective_data(history: History) -> Data:
    """The objective's trials: a GPCR if it ever crashed or if nothing else can fail, else a standard GP (case 3)."""
    above = np.array([trial.crashed for trial in history.trials], dtype=bool)
    values = np.array([cost for cost in history.costs if cost is not None])
    everywhere = np.arange(len(above))
    fails = bool(above.any()) or not history.constraints
    labelled = everywhere if fails else everywhere[:0]
    return Data(history.points, np.flatnonzero(~above), values, above, labelled, None if fails else math.inf)


def constraint_data(history: History, constraint: Constraint) -> Data | None:
    """A constraint's trials; None while nothing was seen of it.

    Values on both sides of a known limit say all that labels would: then only trials without a value keep theirs, and
    without such trials this is a standard GP.
    """
    told = [
        (i, trial.constraints[constraint.name])
        for i, trial in enumerate(history.trials)
        if constraint.name in trial.constraints
    ]
    if not told:
        return None
    limit = math.inf if constraint.threshold is None else constraint.threshold
    missing = np.array([value is None for _, value in told], dtype=bool)
    values = np.array([value for _, value in told if value is not None])
    above = np.array([value is None or value > limit for _, value in told], dtype=bool)
    both = bool((above & ~missing).any())
    labelled = np.flatnonzero(missing) if both else np.arange(len(told))
    points = history.points[[i for i, _ in told]]
    return Data(points, np.flatnonzero(~missing), values, above, labelled, constraint.threshold)
