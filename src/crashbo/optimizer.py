"""Ask and tell: the optimizer as a pure function of its problem and what it was told."""

import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from crashbo.model.memory import Memory
from crashbo.model.surrogate import Limit, Relation, Surrogate
from crashbo.model.threads import few_threads
from crashbo.model.words import describe_relation
from crashbo.problem import state_files
from crashbo.problem.history import UNCHANGED, History
from crashbo.problem.options import Options, is_count, require
from crashbo.problem.outcome import Constraint, Failure, Outcome, Trial, check_outcome
from crashbo.problem.problem import Direction, Problem
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Best, Reason, Suggestion
from crashbo.search import make_strategy
from crashbo.search.answers import best_at, limits_in, only_guess, reason_for
from crashbo.search.design import initial_count
from crashbo.search.strategy import Score, Strategy


class Optimizer:
    """Suggests trials (`ask`), learns from their results (`tell`), and gives the best guess (`best`).

    The same problem and trials give the same suggestions, in any process on the same machine with the same versions;
    another processor rounds differently, and nearly equal points may swap. Several threads may share one
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
            seed: the same seed gives the same suggestions on one machine; None: a random seed.
            initial_points: points to suggest first, in this order.
            options: how to search.
        """
        problem = Problem.of(
            space,
            constraints=constraints,
            direction=direction,
            strategy=strategy,
            acquisition=acquisition,
            seed=seed,
            options=options,
        )
        self._begin(History(problem))
        for point in initial_points:
            self.add_initial_point(point)

    def _begin(self, history: History) -> None:
        """Start from a history, which is replaced under a lock."""
        self._history = history
        self._lock, self._asking = threading.RLock(), threading.Lock()
        self._remember(Memory())

    @property
    def history(self) -> History:
        """Problem, trials and pending suggestions, frozen: what strategies decide from, and the whole state."""
        return self._history

    @property
    def saved(self) -> History:
        """The whole state, frozen, which is the `history`; `restore` continues exactly from here."""
        return self._history

    @property
    def problem(self) -> Problem:
        """Everything it was set up with, frozen."""
        return self._history.problem

    @property
    def space(self) -> Space:
        """The parameters."""
        return self.problem.space

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The declared constraints."""
        return self.problem.constraints

    @property
    def direction(self) -> Direction:
        """Direction of the objective: "minimize" or "maximize"."""
        return self.problem.direction

    @property
    def options(self) -> Options:
        """How to search."""
        return self.problem.options

    @property
    def acquisition(self) -> str:
        """Of the paper's strategy."""
        return self.problem.acquisition

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self.problem.seed

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised. Costs are multiplied by it before they are modelled."""
        return self.problem.sign

    @property
    def initial_points(self) -> tuple[Mapping[str, Any], ...]:
        """Points to suggest first, in this order."""
        return self._history.initial_points

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All finished trials, in the order told."""
        return self._history.trials

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions that were asked for and not told yet."""
        return self._history.pending

    @property
    def errors(self) -> tuple[Failure, ...]:
        """Suggestions on which the program failed with an error; they stay pending and are not suggested again."""
        return self._history.failures

    @property
    def best_trial(self) -> Trial | None:
        """The best trial that did not fail; None without one. `best` is the guess of the models."""
        return self._history.best_trial

    # --- tell --------------------------------------------------------------------------------

    def add_initial_point(self, params: Mapping[str, Any]) -> None:
        """Suggest one more point before the models decide."""
        with self._lock:
            self._history = self._history.with_initial_point(params)

    def tell(self, params: Mapping[str, Any], objective: Any, *, reason: str = "", **constraints: Any) -> Trial:
        """Record the result of a trial; the trial need not come from `ask`.

        Args:
            params: what was tried: a suggestion, or any params in the space.
            objective: the cost, or `crashbo.CRASHED`. None, NaN, infinity and numbers beyond 1e100 are crashes too.
            reason: reason of a crash, in words.
            constraints: value or `crashbo.VIOLATED` per constraint; may be left out after a crash.

        Raises:
            InputError: if something is wrong; then nothing is recorded.
        """
        return self.record(params, check_outcome(objective, constraints, self.constraints, reason))

    def record(self, params: Mapping[str, Any], outcome: Outcome) -> Trial:
        """Record a trial whose outcome has been checked already."""
        with self._lock:
            self._history = self._history.told(params, outcome)
            return self._history.trials[-1]

    def correct(
        self, number: int, objective: Any = UNCHANGED, *, reason: str | None = None, **constraints: Any
    ) -> Trial:
        """Correct the result of the trial with this number; what is not given stays as it was.

        The arguments are those of `tell`. If something is wrong, an `InputError` is raised and nothing is changed.
        """
        with self._lock:
            self._history = self._history.corrected(number, objective, constraints, reason)
            return self._history.trial(number)

    def remove(self, number: int) -> Trial:
        """Remove a finished trial, as if it had never been told; the others keep their numbers."""
        with self._lock:
            removed = self._history.trial(number)
            self._history = self._history.without_trial(number)
            return removed

    def forget(self, params: Mapping[str, Any]) -> None:
        """Withdraw a suggestion that will not be tried."""
        with self._lock:
            self._history = self._history.without(self._history.number_out(params))

    def fail(self, params: Mapping[str, Any], error: str) -> None:
        """Record that the program failed on a suggestion: neither a crash nor a result, and not suggested again."""
        with self._lock:
            self._history = self._history.with_error(self._history.number_out(params), str(error))

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
        return limits_in(history, self._models(history)) if _modelled(history) else {}

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
            given = history.next_given
            params, why = self._suggest(history) if given is None else (given, Reason("given"))
            with self._lock:  # trials may have been told meanwhile
                self._history = self._history.suggested(params, why)
                return self._history.pending[-1]

    def _suggest(self, history: History) -> tuple[dict[str, Any], Reason]:
        begin = time.perf_counter()
        if not self.space.dimension:
            return self.space.sample(1, np.random.default_rng(0))[0], Reason("initial")
        with few_threads(len(history.trials)):
            found = self.strategy.suggest(history)
            params = self.space.decode(found.point)
            if found.mode == "initial":
                return params, Reason("initial")
            why = reason_for(history, self.strategy.surrogate(history), found)
        return params, replace(why, seconds=time.perf_counter() - begin)

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
        other._history = self._history.with_pending(params)
        return other

    def adopt(self, other: "Optimizer") -> None:
        """Use what another optimizer has learned from the same trials. This saves time and changes no result."""
        self._remember(other.memory)

    def _remember(self, memory: Memory) -> None:
        """Keep what is learned there, and use what is there already."""
        self.memory = memory
        self.strategy: Strategy = make_strategy(self.problem.strategy, memory)

    # --- best --------------------------------------------------------------------------------

    def best(self) -> Best:
        """Return the best guess: the best expected objective where success is likely enough.

        While no point is safe enough, this is the point most likely to succeed, and `feasible` is False.
        """
        history = self.history
        if not self.space.dimension:
            return only_guess(history)
        with few_threads(len(history.trials)):
            return best_at(history, self.strategy.surrogate(history), self.strategy.guess(history))

    # --- state -------------------------------------------------------------------------------

    @classmethod
    def restore(cls, saved: History) -> "Optimizer":
        """Return an optimizer in a state that was saved."""
        optimizer = cls.__new__(cls)
        optimizer._begin(saved)
        return optimizer

    def to_json(self) -> dict[str, Any]:
        """The whole state as plain JSON; `from_json` continues exactly from here."""
        return state_files.to_json(self.history)

    @classmethod
    def from_json(cls, state: Mapping[str, Any], *, strategy: Strategy | None = None) -> "Optimizer":
        """Restore an optimizer from what `to_json` returned, also from a state of version 0.1.

        `strategy` is your strategy object, if you used one of your own. An `InputError` names the field that is wrong.
        """
        return cls.restore(state_files.from_json(state, strategy))

    def save(self, path: str | Path) -> None:
        """Write the state to a file, completely or not at all. When this returns, it is on the disk."""
        state_files.write_file(Path(path), self.history)

    @classmethod
    def load(cls, path: str | Path, *, strategy: Strategy | None = None) -> "Optimizer":
        """Read a state written by `save`; `strategy` is your strategy object, if you used one of your own."""
        return cls.restore(state_files.read_file(Path(path), strategy))


def _modelled(history: History) -> bool:
    """Whether there is anything to model."""
    return bool(history.trials and history.space.dimension)
