"""Ask and tell: the optimizer as a pure function of its settings and what it was told."""

import math
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, overload

import numpy as np

from crashbo.errors import InputError
from crashbo.model.memory import Memory
from crashbo.model.surrogate import Limit, Relation, Surrogate
from crashbo.model.threads import few_threads
from crashbo.model.words import describe_relation
from crashbo.problem.history import OBJECTIVE, Direction, History, Settings
from crashbo.problem.ledger import Ledger
from crashbo.problem.options import Options, is_count, require
from crashbo.problem.outcome import Constraint, Trial
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Best, Reason, Suggestion
from crashbo.search import make_strategy
from crashbo.search.design import initial_count
from crashbo.search.strategy import Score, Strategy


class Optimizer(Ledger):
    """Suggests trials (`ask`), learns from their results (`tell`), and gives the best guess (`best`).

    The same settings, seed and trials give the same suggestions, in any process. Several threads may share one
    optimizer: suggestions are made one after the other, so none is made twice, and what is told is recorded at once.
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
            strategy: "default", "paper", or an object of your own (see `crashbo.search.strategy.Strategy`).
            acquisition: for the paper's strategy: "mes", "mesco", or "auto" (mESCO with constraints, mES without).
            seed: the same seed gives the same suggestions; None: a random seed.
            initial_points: points to suggest first, in this order.
            options: how to search.
        """
        settings = Settings.check(constraints, direction, strategy, acquisition, seed, options)
        super().__init__(space if isinstance(space, Space) else Space(space), settings)
        for point in initial_points:
            self.add_initial_point(point)
        self._remember(Memory())
        self._asking = threading.Lock()

    @property
    def saved(self) -> History:
        """The whole state, frozen, which is the `history`; `restore` continues exactly from here."""
        return self.history

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised. Costs are multiplied by it before they are modelled."""
        return self.history.sign

    @property
    def best_trial(self) -> Trial | None:
        """The best trial that did not fail; None without one. `best` is the guess of the models."""
        return self.history.best_trial

    # --- what the models say -----------------------------------------------------------------

    def surrogate(self) -> Surrogate:
        """The models of all outputs, given all trials so far (the objective minimised)."""
        return self._models(self.history)

    def _models(self, history: History) -> Surrogate:
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
        history = self.history
        return _limits(history, self._models(history)) if _modelled(history) else {}

    @property
    def thresholds(self) -> dict[str, float]:
        """The most probable limits of all outputs that have one, in their own units."""
        return {name: limit.value for name, limit in self.limits.items()}

    @property
    def relation(self) -> Relation | None:
        """How crashes are related to the objective, as probabilities; None while unknown."""
        history = self.history
        return self._models(history).relation if _modelled(history) else None

    @property
    def crash_relation(self) -> str:
        """How crashes are related to the objective, in words."""
        return describe_relation(self.relation, self.direction)

    # --- ask ---------------------------------------------------------------------------------

    @overload
    def ask(self) -> Suggestion: ...
    @overload
    def ask(self, n: int) -> list[Suggestion]: ...
    def ask(self, n: int | None = None) -> Suggestion | list[Suggestion]:
        """Suggest the next trial, or `n` trials planned together. Pending trials are taken into account."""
        if n is None:
            return self._ask_one()
        require("n", n, is_count(n), "be an integer >= 1")
        return [self._ask_one() for _ in range(n)]

    def _ask_one(self) -> Suggestion:
        with self._asking:
            history = self.history
            given = _next_given(history)
            params, why = self._suggest(history) if given is None else (given, Reason("given"))
            with self._lock:  # trials may have been told meanwhile
                now = self.history
                made = Suggestion(params, now.next_number, why)
                pending, numbered = (*now.pending, made), made.number + 1
                self._history = replace(now, pending=pending, asked=now.asked + 1, numbered=numbered)
            return made

    def _suggest(self, history: History) -> tuple[dict[str, Any], Reason]:
        begin = time.perf_counter()
        if not self.space.dimension:
            return self.space.sample(1, np.random.default_rng(0))[0], Reason("initial")
        with few_threads(len(history.trials)):
            found = self.strategy.suggest(history)
            params = self.space.decode(found.point)
            if found.mode == "initial":
                return params, Reason("initial")
            surrogate = self.strategy.surrogate(history)
            mean, deviation = (float(one[0]) for one in surrogate.moments(found.point[None]))
        limits, known, sign = _limits(history, surrogate), surrogate.any_cost, history.sign
        best = None if history.best_trial is None else history.best_trial.objective
        causes = {} if surrogate.relation is None else vars(surrogate.relation)
        return params, Reason(
            found.mode,
            found.value,
            found.success_probability,
            thresholds={name: limit.value for name, limit in limits.items()},
            seconds=time.perf_counter() - begin,
            relation={name: value for name, value in causes.items() if value is not None},
            deviations={name: limit.deviation for name, limit in limits.items()},
            expected=sign * mean if known else None,
            expected_std=deviation if known else None,
            best=best,
            better=best is not None and mean < sign * best,
        )

    @property
    def initial(self) -> int:
        """Number of initial trials, before the models decide."""
        return max(initial_count(self.history), len(self.initial_points))

    def copy(self) -> "Optimizer":
        """A copy in the same state, which need not learn again what this one has learned."""
        other = Optimizer.restore(self.history)
        other._remember(self.memory)
        return other

    def with_pending(self, params: Sequence[Mapping[str, Any]]) -> "Optimizer":
        """A copy with more pending points."""
        other = self.copy()
        first = self.history.next_number
        more = [Suggestion(self.space.validate(one), first + i, Reason("given")) for i, one in enumerate(params)]
        other._history = replace(other.history, pending=(*other.pending, *more))
        return other

    def adopt(self, other: "Optimizer") -> None:
        """Use what another optimizer has learned from the same trials. This saves time and changes no result."""
        self._remember(other.memory)

    def _remember(self, memory: Memory) -> None:
        """Keep what is learned there, and use what is there already."""
        self.memory = memory
        self.strategy: Strategy = make_strategy(self.settings.strategy, memory)

    # --- best --------------------------------------------------------------------------------

    def best(self) -> Best:
        """Return the best guess: the best expected objective where success is likely enough.

        While no point is safe enough, this is the point most likely to succeed, and `feasible` is False.
        """
        history = self.history
        if not self.space.dimension:
            return _only_guess(history)
        with few_threads(len(history.trials)):
            surrogate, guess = self.strategy.surrogate(history), self.strategy.guess(history)
            mean, deviation = (float(one[0]) for one in surrogate.moments(guess.point[None]))
            success = float(surrogate.success(guess.point[None])[0])
        if not surrogate.any_cost:
            mean, deviation = math.nan, math.nan
        return Best(self.space.decode(guess.point), history.sign * mean, deviation, success, guess.feasible)

    # --- state -------------------------------------------------------------------------------

    @classmethod
    def restore(cls, saved: History) -> "Optimizer":
        """Return an optimizer in a state that was saved."""
        settings = {one.name: getattr(saved, one.name) for one in fields(Settings)}
        optimizer = cls(saved.space, **settings, initial_points=saved.initial_points)
        optimizer._history = replace(saved, initial_points=optimizer.initial_points)
        return optimizer

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain JSON; `from_json` continues exactly from here."""
        return _files().to_json(self.history)

    @classmethod
    def from_json(cls, state: Mapping[str, Any], *, strategy: Strategy | None = None) -> "Optimizer":
        """Restore an optimizer from what `to_json` returned, also from a state of version 0.1.

        `strategy` is your strategy object, if you used one of your own. An `InputError` names the field that is wrong.
        """
        return cls.restore(_files().from_json(state, strategy))

    def save(self, path: str | Path) -> None:
        """Write the state to a file, completely or not at all. When this returns, it is on the disk."""
        _files().write_file(Path(path), self.history)

    @classmethod
    def load(cls, path: str | Path, *, strategy: Strategy | None = None) -> "Optimizer":
        """Read a state written by `save`; `strategy` is your strategy object, if you used one of your own."""
        return cls.restore(_files().read_file(Path(path), strategy))


def _modelled(history: History) -> bool:
    """Whether there is anything to model."""
    return bool(history.trials and history.space.dimension)


def _limits(history: History, surrogate: Surrogate) -> dict[str, Limit]:
    """The limits in the outputs' own units; one that is neither known nor was ever broken says nothing."""
    said = {one.name for one in history.constraints if one.threshold is not None}
    said |= {name for trial in history.trials for name, value in trial.constraints.items() if value is None}
    said |= {OBJECTIVE} if any(trial.crashed for trial in history.trials) else set()
    found = surrogate.limits if said else {}
    return {
        name: limit.times(history.sign) if name == OBJECTIVE else limit for name, limit in found.items() if name in said
    }


def _next_given(history: History) -> dict[str, Any] | None:
    """The first of the user's initial points that is neither out nor told."""
    seen = [dict(one) for one in history.pending] + [dict(trial.params) for trial in history.trials]
    for point in history.initial_points:
        if dict(point) not in seen:
            return dict(point)
        seen.remove(dict(point))
    return None


def _only_guess(history: History) -> Best:
    """The best guess where there is nothing to choose: plain statistics of the trials."""
    if not history.trials:
        raise InputError("`trials` must hold at least one trial before there is a best guess; got none. Tell one.")
    costs = [trial.objective for trial in history.trials if trial.objective is not None]
    success = 1 - float(np.mean(history.failed))
    mean, deviation = (float(np.mean(costs)), float(np.std(costs))) if costs else (math.nan, math.nan)
    params = dict(history.trials[0].params)
    return Best(params, mean, deviation, success, success >= 1 - history.options.delta)


def _files() -> ModuleType:
    """State files, which are storage: imported where one is written or read."""
    from crashbo.problem import state_files

    return state_files
