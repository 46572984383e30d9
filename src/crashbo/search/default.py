"""The default strategy: the log of the expected gain, averaged over the models, minus a price per crash."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from crashbo.errors import InputError
from crashbo.model.average import Candidates, learn, weigh
from crashbo.model.belief import Averaged, Modelling, Output, output_block
from crashbo.model.block import Block
from crashbo.model.kernel import squared_distance
from crashbo.model.moments import Moments, log_held
from crashbo.model.numbers import NUMBERS, Numbers
from crashbo.model.reasons import Reasons, choose_reasons
from crashbo.model.warp import spread_of
from crashbo.problem.arrays import Array, Bools
from crashbo.problem.history import OBJECTIVE, History
from crashbo.search.design import initial_count, initial_point
from crashbo.search.gain import expected_improvement, with_slopes
from crashbo.search.maximise import Effort, look, maximise
from crashbo.search.price import UNAFFORDABLE, budget_left, crash_price
from crashbo.search.strategy import Guess, Suggested

_LABELS = 300  # that are modelled
_NEAR = 40  # trials that are looked around
_NOISY = 0.1  # share of the costs' spread from which on noise may explain the best trial
_TOLERANCE = 0.002  # by which a suggestion may be less likely to succeed than the safest, once a budget is spent
_CERTAIN = 1e-3  # probability of failure below which a trial counts as free
_NO_GAIN = 1e-300  # relative to the largest
_GUESS = Effort(starts=6, iterations=40, evaluations=120, precision=1e-10)
_SAME = 1e-6  # distance below which points are one and the same


class DefaultStrategy(Modelling[Output, tuple[Candidates, Reasons]]):
    """Averages over models and pays a price per crash; see `docs/method.md`."""

    def __init__(self, numbers: Numbers = NUMBERS) -> None:
        super().__init__()
        self.numbers = numbers

    def _block(self, history: History, output: str) -> Block | None:
        found = output_block(history, output, absorbed=history.options.crashes == "absorb")
        return None if found is None else found.thinned(_LABELS)

    def _kind(self, block: Block) -> object:
        return block.margins, bool(len(block.values)), bool(len(block.above))

    def _learn(self, history: History, output: str, block: Block) -> tuple[Candidates, Reasons]:
        """Also which named reasons of crashes have margins of their own."""
        told, numbers = _crash_reasons(history), self.numbers
        reasons = choose_reasons(block, told, numbers) if output == OBJECTIVE else Reasons()
        limited = replace(numbers, correlations=((0.0, 1.0),)) if history.options.crashes == "separate" else numbers
        return learn(reasons.split(block, told), limited), reasons

    def _fit(self, history: History, block: Block, learned: tuple[Candidates, Reasons]) -> Output:
        candidates, reasons = learned
        placed = reasons.split(block, _crash_reasons(history))
        return Output(weigh(candidates.affordable(len(block.X)), placed), reasons)

    def suggest(self, history: History) -> Suggested:
        if self._begins(history):
            return Suggested(initial_point(history), "initial")
        score = self.score(history)
        found = maximise(score, score.with_slope, score.points, history.space, allowed=score.fresh)
        success = float(score.surrogate.success(found.point[None])[0])
        return Suggested(found.point, score.mode, found.value, success)

    def _begins(self, history: History) -> bool:
        """Whether the quasi-random design goes on: at first, and while nothing has succeeded.

        A crash budget ends it with the first success: a design would spend the budget where nothing is to be gained.
        """
        budgeted, succeeded = history.options.crash_budget is not None, not history.failed.all()
        if budgeted and not succeeded and not budget_left(history.failed.tolist(), history.options):
            raise InputError(
                f"`crash_budget` must leave room for a crash until a trial has succeeded; got "
                f"{history.options.crash_budget}, and no trial has. Give a point that is known to succeed "
                "(`initial_points`, or tell a trial of it), or a larger budget."
            )
        if budgeted and succeeded:
            return False
        made = len(history.trials) + len(history.pending)
        return made < initial_count(history) or all(trial.crashed for trial in history.trials)

    def score(self, history: History) -> "GainScore":
        return GainScore(history, self.surrogate(history), self.numbers)

    def guess(self, history: History) -> Guess:
        """Lowest mean plus standard deviation where success is likely enough, random crashes aside.

        Where costs are all but free of noise and the models are not sure to beat the best trial, it is that trial.
        """
        surrogate, least = self.surrogate(history), 1 - history.options.delta
        points = _look(history, history.seed, 1024)
        safe = surrogate.placed_success(points)
        if not surrogate.any_cost or safe.max() < least:
            return Guess(points[int(safe.argmax())], bool(safe.max() >= least))
        unit = float(surrogate.moments(points)[0].std()) or 1.0

        def score(X: Array) -> Array:
            mean, deviation = surrogate.moments(X)
            shortfall = np.minimum(np.log(np.maximum(surrogate.placed_success(X), 1e-300)) - math.log(least), 0.0)
            return -(mean + deviation) / unit + 1e3 * shortfall

        def allowed(X: Array) -> Bools:
            return surrogate.placed_success(X) >= least

        found = maximise(score, _differences(score), points, history.space, effort=_GUESS, allowed=allowed).point
        offered = np.array([not history.space.broken(trial.params) for trial in history.trials])
        usable = allowed(history.points) & offered & ~history.failed
        held = [(cost, i) for i, cost in enumerate(history.costs) if cost is not None and usable[i]]
        if held and surrogate.objective.noise_share() < _NOISY:
            (mean,), (deviation,) = surrogate.moments(found[None])
            lowest, trial = min(held)
            if mean + deviation >= lowest:
                return Guess(history.points[trial], True)
        return Guess(found, True)


def _crash_reasons(history: History) -> list[str]:
    return [trial.reason for trial in history.trials if trial.crashed]


def _differences(score: Callable[[Array], Array], step: float = 1e-5) -> Callable[[Array], tuple[Array, Array]]:
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


@dataclass(frozen=True)
class GainScore:
    """Log of the expected gain relative to the largest, minus price times probability of failure.

    The log never prefers a trial without gain, however dear a failure is.

    Math: U = log(gain / largest gain) - price (1 - success)
    """

    history: History
    known: Averaged[Output]
    numbers: Numbers
    mode: str = "gain"

    @cached_property
    def surrogate(self) -> Averaged[Output]:
        """The models with pending trials believed to end as expected."""
        return self.known.believing(self.history.pending_points)

    @cached_property
    def points(self) -> Array:
        """Points for a first look: all over the cube, and around the trials."""
        seed = int(self.history.generator().integers(2**31))
        return _look(self.history, seed, self.history.options.raw)

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
        spread = spread_of(self.surrogate.objective.models.block.values)
        counts = (gain > self.numbers.substantial * spread) & self.fresh(self.points)
        if not counts.any():
            return price
        worth = (1 + np.log(gain[counts] / self.norm)) / np.maximum(1 - success[counts], _CERTAIN)
        return min(price, max(float(worth.max()), 0.0))

    @cached_property
    def tolerated(self) -> float:
        """Success probability from which on nothing is paid: 1, or once a budget is spent, close to the safest."""
        if self.price < UNAFFORDABLE:
            return 1.0
        return float(self._first[1].max()) - _TOLERANCE

    @cached_property
    def best(self) -> Array:
        """`b x 1`, lowest expected cost of trials that did not fail or are under way, in each model's units.

        Where all failed, of all that have a cost: what is known to be had with a limit broken.
        """
        history = self.history
        seen = np.array([not trial.crashed for trial in history.trials])
        held = seen & ~history.failed
        points = np.concatenate([history.points[held if held.any() else seen], history.pending_points])
        return self.surrogate.objective.predictor(points).mean[:, 0].min(-1, keepdims=True)

    @cached_property
    def units(self) -> Array:
        """`b x 1`, weight of a model times the size of its unit of cost, and its chance not to lapse."""
        output = self.surrogate.objective
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
        output = self.surrogate.objective
        at, threshold = Moments.of(output.predictor(X)), output.thresholds
        others = self.surrogate.constraints_hold(X)
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
        if self.surrogate.constraints or self.tolerated < 1:
            return _differences(self)(X)
        output = self.surrogate.objective
        q, threshold, units = output.predictor(X), output.thresholds, self.units / self.norm
        kept = output.weights[:, None] * output.not_lapsed
        at = Moments.of(q)
        gain = np.maximum((units * expected_improvement(at, self.best, threshold)).sum(0), _NO_GAIN)
        held = (kept * np.exp(log_held(at, threshold))).sum(0)

        def value(moved: Moments) -> Array:
            relative = expected_improvement(moved, self.best, threshold) / np.resize(gain, moved.mean.shape[-1])
            return units * relative + self.price * kept * np.exp(log_held(moved, threshold))

        _, *slopes = with_slopes(value, q)
        return np.log(gain) - self.price * (1 - held), q.pull(*slopes)  # no success probability exceeds 1

    def fresh(self, X: Array) -> Bools:
        """Whether points are neither under way nor known to fail."""
        history = self.history
        taken = np.concatenate([history.points[history.failed], history.pending_points])
        if not len(taken):
            return np.ones(len(X), dtype=bool)
        gaps = squared_distance(X, taken, np.ones(X.shape[-1]))
        return np.asarray(gaps.min(-1) > _SAME**2)


def _look(history: History, seed: int, raw: int) -> Array:
    """Quasi-random points, the trials, and points near and far around them; of many trials around the best."""
    costs = [math.inf if cost is None else cost for cost in history.costs]
    return look(history, seed, raw, history.points[np.argsort(costs, kind="stable")[:_NEAR]])
