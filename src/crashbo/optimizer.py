"""Ask and tell: the optimizer as a pure function of its settings and what it was told."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, overload

import numpy as np

from crashbo.errors import InputError
from crashbo.history import OBJECTIVE, Direction, History
from crashbo.ledger import Ledger
from crashbo.options import Options
from crashbo.outcome import Constraint, Trial
from crashbo.settings import Settings
from crashbo.space import Space
from crashbo.strategies import make_strategy
from crashbo.strategies.base import Limit, Relation, Score, Strategy, Surrogate
from crashbo.strategies.design import initial_count
from crashbo.strategies.words import describe_relation
from crashbo.suggestion import Best, Reason, Saved, Suggestion
from crashbo.threads import few_threads


class Optimizer(Ledger):
    """Suggests trials (`ask`), learns from their results (`tell`), and gives the best guess (`best`).

    The same settings, seed and trials give the same suggestions, in any process. Several threads may share one
    optimizer: every call takes a lock, so no point is suggested twice.
    """

    def __init__(
        self,
        space: Space | Mapping[str, Any],
        *,
        constraints: Sequence[Constraint | str] = (),
        direction: Direction = "minimize",
        strategy: str | Strategy = "default",
        acquisition: str = "auto",
        seed: int | None = 0,
        initial_points: Sequence[Mapping[str, Any]] = (),
        options: Options | None = None,
    ) -> None:
        """Set up; nothing is computed yet.

        Args:
            space: the parameters.
            constraints: outputs besides the objective that must stay below a limit. A name alone means that the limit
                is unknown.
            direction: "minimize" or "maximize".
            strategy: "default", "paper", or an object of your own (see `crashbo.strategies.base.Strategy`).
            acquisition: for the paper's strategy: "mes", "mesco", or "auto" (mESCO with constraints, mES without).
            seed: the same seed gives the same suggestions; None: a random seed.
            initial_points: points to suggest first, in this order.
            options: how to search.
        """
        settings = Settings.check(constraints, direction, strategy, acquisition, seed, options)
        super().__init__(space if isinstance(space, Space) else Space(space), settings)
        self.initial_points = [self.space.validate(params) for params in initial_points]
        for point in self.initial_points:
            if rules := self.space.broken(point):
                raise InputError(f"`initial_points` must satisfy the space's constraints; {point} breaks {rules[0]!r}.")
        self.strategy: Strategy = make_strategy(self.settings.strategy)

    @property
    def history(self) -> History:
        """Settings, trials and pending suggestions, frozen: what strategies decide from."""
        with self._lock:
            settings = {name: value for name, value in vars(self.settings).items() if name != "strategy"}
            pending = tuple(dict(one) for one in self._pending.values())
            return History(self.space, **settings, trials=self.trials, pending=pending, asked=self._asked)

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised. Costs are multiplied by it before they are modelled."""
        return self.history.sign

    @property
    def best_trial(self) -> Trial | None:
        """The best trial that did not fail; None without one. `best` is the guess of the models."""
        history = self.history
        held = [trial for trial, failed in zip(history.trials, history.failed, strict=True) if not failed]
        return min(held, key=lambda trial: history.sign * (trial.objective or 0.0)) if held else None

    # --- what the models say -----------------------------------------------------------------

    def surrogate(self) -> Surrogate:
        """The models of all outputs, given all trials so far (the objective minimised)."""
        history = self.history
        with few_threads(len(history.trials)):
            return self.strategy.surrogate(history)

    def score(self) -> Score:
        """The score that the next suggestion maximises, after the initial points."""
        history = self.history
        with few_threads(len(history.trials)):
            return self.strategy.score(history)

    @property
    def limits(self) -> dict[str, Limit]:
        """The limits of all outputs that have one, each with its standard deviation, in the outputs' own units."""
        if not self._trials or not self.space.dimension:
            return {}
        return self._limits(self.surrogate(), self.history)

    @property
    def thresholds(self) -> dict[str, float]:
        """The most probable limits of all outputs that have one, in their own units."""
        return {name: limit.value for name, limit in self.limits.items()}

    @property
    def relation(self) -> Relation | None:
        """How crashes are related to the objective, as probabilities; None while unknown."""
        return self.surrogate().relation if self._trials and self.space.dimension else None

    @property
    def crash_relation(self) -> str:
        """How crashes are related to the objective, in words."""
        return describe_relation(self.relation, self.direction)

    def _limits(self, surrogate: Surrogate, history: History) -> dict[str, Limit]:
        """The limits in the outputs' own units; one that is neither known nor was ever broken says nothing."""
        said = {one.name for one in history.constraints if one.threshold is not None}
        said |= {name for trial in history.trials for name, value in trial.constraints.items() if value is None}
        said |= {OBJECTIVE} if any(trial.crashed for trial in history.trials) else set()
        found = surrogate.limits if said else {}
        return {
            name: limit.times(history.sign) if name == OBJECTIVE else limit
            for name, limit in found.items()
            if name in said
        }

    # --- ask ---------------------------------------------------------------------------------

    @overload
    def ask(self) -> Suggestion: ...
    @overload
    def ask(self, n: int) -> list[Suggestion]: ...
    def ask(self, n: int | None = None) -> Suggestion | list[Suggestion]:
        """Suggest the next trial, or `n` trials planned together. Pending trials are taken into account."""
        if n is None:
            return self._ask_one()
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise InputError(f"`n` must be an integer >= 1; got {n!r}.")
        return [self._ask_one() for _ in range(n)]

    def _ask_one(self) -> Suggestion:
        with self._lock:
            given = self._next_given()
            params, why = self._suggest() if given is None else (given, Reason("given"))
            suggestion = Suggestion(params, self._asked, why)
            self._pending[self._asked] = suggestion
            self._asked += 1
            return suggestion

    def _suggest(self) -> tuple[dict[str, Any], Reason]:
        begin, history = time.perf_counter(), self.history
        if not self.space.dimension:
            return self.space.sample(1, np.random.default_rng(0))[0], Reason("initial")
        with few_threads(len(history.trials)):
            found = self.strategy.suggest(history)
            params = self.space.decode(found.point)
            if found.mode == "initial":
                return params, Reason("initial")
            surrogate = self.strategy.surrogate(history)
            mean, deviation = (float(one[0]) for one in surrogate.moments(found.point[None]))
        limits, best, known = self._limits(surrogate, history), self.best_trial, surrogate.any_cost
        causes = {} if surrogate.relation is None else vars(surrogate.relation)
        return params, Reason(
            found.mode,
            found.value,
            found.success_probability,
            {name: limit.value for name, limit in limits.items()},
            time.perf_counter() - begin,
            {name: value for name, value in causes.items() if value is not None},
            {name: limit.deviation for name, limit in limits.items()},
            history.sign * mean if known else None,
            deviation if known else None,
            None if best is None else best.objective,
            best is not None and best.objective is not None and mean < history.sign * best.objective,
        )

    def _next_given(self) -> dict[str, Any] | None:
        """The first of the user's initial points that is neither out nor told."""
        seen = [dict(one) for one in self.pending] + [dict(trial.params) for trial in self._trials]
        for point in self.initial_points:
            if point not in seen:
                return point
            seen.remove(point)
        return None

    @property
    def initial(self) -> int:
        """Number of initial trials, before the models decide."""
        return max(initial_count(self.history), len(self.initial_points))

    def copy(self) -> "Optimizer":
        """A copy in the same state, which need not learn again what this one has learned."""
        other = Optimizer.restore(self.saved)
        other.strategy = self.strategy
        return other

    def with_pending(self, params: Sequence[Mapping[str, Any]]) -> "Optimizer":
        """A copy with more pending points."""
        other = self.copy()
        for number, one in enumerate(params):
            other._pending[-1 - number] = Suggestion(self.space.validate(one), -1 - number, Reason("given"))
        return other

    def adopt(self, other: "Optimizer") -> None:
        """Use what another optimizer has learned from the same trials. This saves time and changes no result."""
        if type(self.strategy) is type(other.strategy) and self.settings.strategy == other.settings.strategy:
            self.strategy = other.strategy

    # --- best --------------------------------------------------------------------------------

    def best(self) -> Best:
        """Return the best guess: the best expected objective where success is likely enough.

        While no point is safe enough, this is the point most likely to succeed, and `feasible` is False.
        """
        if not self.space.dimension:
            return self._only_guess()
        surrogate, history = self.surrogate(), self.history
        with few_threads(len(history.trials)):
            guess = self.strategy.guess(history)
            mean, deviation = (float(one[0]) for one in surrogate.moments(guess.point[None]))
            success = float(surrogate.success(guess.point[None])[0])
        if not surrogate.any_cost:
            mean, deviation = math.nan, math.nan
        return Best(self.space.decode(guess.point), self.sign * mean, deviation, success, guess.feasible)

    def _only_guess(self) -> Best:
        """The best guess where there is nothing to choose: plain statistics of the trials."""
        if not self._trials:
            raise InputError("`trials` must hold at least one trial before there is a best guess; got none. Tell one.")
        costs = [trial.objective for trial in self._trials if trial.objective is not None]
        success = 1 - float(np.mean(self.history.failed))
        mean, deviation = (float(np.mean(costs)), float(np.std(costs))) if costs else (math.nan, math.nan)
        params = dict(self._trials[0].params)
        return Best(params, mean, deviation, success, success >= 1 - self.options.delta)

    # --- state -------------------------------------------------------------------------------

    @property
    def saved(self) -> Saved:
        """The whole state, frozen; `restore` continues exactly from here."""
        with self._lock:
            points, errors = tuple(self.initial_points), dict(self._errors)
            return Saved(self.space, self.settings, points, self._asked, self.trials, self.pending, errors)

    @classmethod
    def restore(cls, saved: Saved) -> "Optimizer":
        """Return an optimizer in a state that was saved."""
        optimizer = cls(saved.space, **vars(saved.settings), initial_points=saved.initial_points)
        optimizer._trials, optimizer._asked = list(saved.trials), saved.asked
        optimizer._pending = {one.number: one for one in saved.pending}
        optimizer._errors = dict(saved.errors)
        return optimizer

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain JSON; `from_json` continues exactly from here."""
        return _files().to_json(self.saved)

    @classmethod
    def from_json(cls, state: Mapping[str, Any], *, strategy: Strategy | None = None) -> "Optimizer":
        """Restore an optimizer from what `to_json` returned, also from a state of version 0.1.

        `strategy` is your strategy object, if you used one of your own. An `InputError` names the field that is wrong.
        """
        return cls.restore(_files().from_json(state, strategy))

    def save(self, path: str | Path) -> None:
        """Write the state to a file, completely or not at all. When this returns, it is on the disk."""
        _files().write_file(Path(path), self.saved)

    @classmethod
    def load(cls, path: str | Path, *, strategy: Strategy | None = None) -> "Optimizer":
        """Read a state written by `save`; `strategy` is your strategy object, if you used one of your own."""
        return cls.restore(_files().read_file(Path(path), strategy))


def _files() -> ModuleType:
    """State files, which are storage: imported where one is written or read."""
    from crashbo.studies import state_files

    return state_files
