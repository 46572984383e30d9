"""The default score: the log of the expected gain, averaged over the models, minus a price per crash."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crashbo.model.belief import Averaged, Output
from crashbo.model.moments import Moments, log_held
from crashbo.model.numbers import FREE, SPENT_TOLERANCE, UNAFFORDABLE, Numbers
from crashbo.model.warp import spread_of
from crashbo.problem.arrays import Array, Bools
from crashbo.problem.history import History
from crashbo.search.design import initial_count
from crashbo.search.gain import expected_improvement, with_slopes
from crashbo.search.maximise import with_differences
from crashbo.search.points import fresh, points_to_try
from crashbo.search.price import crash_price

_NO_GAIN = 1e-300  # relative to the largest


@dataclass(frozen=True)
class GainScore:
    """Log of the expected gain relative to the largest, minus price times probability of failure.

    The log never prefers a trial without gain, whatever the price of a crash.

    Math: U = log(gain / largest gain) - price (1 - success)
    """

    history: History
    models: Averaged[Output]  # with pending trials believed to end as expected
    numbers: Numbers
    mode: str = "gain"

    @cached_property
    def points(self) -> Array:
        """Points for a first look."""
        return points_to_try(self.history)

    @cached_property
    def price(self) -> float:
        """Of a failure, in the log of the gain.

        Unless there is a budget, so much that the best trial with a substantial gain loses at most a factor of e. Else
        small safe gains would come first for as long as there are any.

        Math: min(crash price, max_x (1 + log(gain(x) / largest gain)) / (1 - success(x)))
        """
        history = self.history
        failed, budgeted = history.failed.tolist(), history.options.crash_budget is not None
        first = failed.index(False) if False in failed else 0
        start = first if budgeted else max(initial_count(history), first)
        price = crash_price(failed, start, history.options, self.numbers)
        if budgeted:
            return price
        gain, success = self._first
        spread = spread_of(self.models.objective.models.block.values)
        counts = (gain > self.numbers.substantial * spread) & self.fresh(self.points)
        if not counts.any():
            return price
        worth = (1 + np.log(gain[counts] / self.norm)) / np.maximum(1 - success[counts], FREE)
        return min(price, max(float(worth.max()), 0.0))

    @cached_property
    def tolerated(self) -> float:
        """Success probability from which on nothing is paid: 1, or once a budget is spent, close to the safest."""
        if self.price < UNAFFORDABLE:
            return 1.0
        return float(self._first[1].max()) - SPENT_TOLERANCE

    @cached_property
    def best(self) -> Array:
        """`b x 1`, lowest expected cost of trials that did not fail or are under way, in each model's units.

        Where all failed, of all that have a cost: what is known to be had with a limit broken.
        """
        history = self.history
        seen = np.array([not trial.crashed for trial in history.trials])
        held = seen & ~history.failed
        points = np.concatenate([history.points[held if held.any() else seen], history.pending_points])
        return self.models.objective.predictor(points).mean[:, 0].min(-1, keepdims=True)

    @cached_property
    def units(self) -> Array:
        """`b x 1`, weight of a model times the size of its unit of cost, and its chance not to lapse."""
        output = self.models.objective
        scale = np.array([warp.scale for warp in output.models.warps])
        return (output.weights * scale)[:, None] * output.not_lapsed

    @cached_property
    def norm(self) -> float:
        """The largest gain at a first look."""
        return max(float(self._first[0].max()), 1e-300)

    @cached_property
    def _first(self) -> tuple[Array, Array]:
        return self._parts(self.points)

    def _parts(self, X: Array) -> tuple[Array, Array]:
        """Gain and success probability at `p x d`."""
        output = self.models.objective
        at, threshold = Moments.of(output.predictor(X)), output.thresholds
        others = self.models.constraints_hold(X)
        gain = (self.units * expected_improvement(at, self.best, threshold)).sum(0) * others
        held = (output.weights[:, None] * output.not_lapsed * np.exp(log_held(at, threshold))).sum(0) * others
        return gain, held

    def __call__(self, X: Array) -> Array:
        gain, held = self._first if X is self.points else self._parts(X)
        return np.log(np.maximum(gain / self.norm, _NO_GAIN)) - self.price * np.maximum(self.tolerated - held, 0.0)

    def gain(self, X: Array) -> Array | None:
        """The gain alone, relative to the largest."""
        return self._parts(X)[0] / self.norm

    def with_slope(self, X: Array) -> tuple[Array, Array]:
        """Scores at `p x d` and their gradients."""
        if self.models.constraints or self.tolerated < 1:
            return with_differences(self)(X)
        output = self.models.objective
        q, threshold, units = output.predictor(X), output.thresholds, self.units / self.norm
        kept = output.weights[:, None] * output.not_lapsed
        at = Moments.of(q)
        gain = np.maximum((units * expected_improvement(at, self.best, threshold)).sum(0), _NO_GAIN)
        held = (kept * np.exp(log_held(at, threshold))).sum(0)

        def value(moved: Moments) -> Array:
            relative = expected_improvement(moved, self.best, threshold) / np.resize(gain, moved.mean.shape[-1])
            return units * relative + self.price * kept * np.exp(log_held(moved, threshold))

        _, *slopes = with_slopes(value, q)
        return np.log(gain) - self.price * (1 - held), q.vjp(*slopes)  # no success probability exceeds 1

    def fresh(self, X: Array) -> Bools:
        """Whether points are neither under way nor known to fail."""
        return fresh(self.history, X)
