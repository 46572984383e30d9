"""What happened: trials that are finished, suggestions that are out, and what came of them."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crashbo.errors import InputError
from crashbo.history import Direction
from crashbo.options import Options
from crashbo.outcome import CRASHED, VIOLATED, Constraint, Failure, Outcome, Trial, check_outcome
from crashbo.parameters import native
from crashbo.settings import Settings
from crashbo.space import Space
from crashbo.suggestion import Suggestion

_KEPT: Any = object()


class Ledger:
    """The book that an optimizer keeps. Every call takes a lock, so threads may share it."""

    def __init__(self, space: Space, settings: Settings) -> None:
        clash = [one.name for one in settings.constraints if one.name in space]
        if clash:
            raise InputError(f"`{clash[0]}` must name either a parameter or a constraint; got both. Rename one.")
        self.space, self.settings = space, settings
        self._trials: list[Trial] = []
        self._pending: dict[int, Suggestion] = {}
        self._errors: dict[int, str] = {}  # of pending suggestions that ended in an error of the program itself
        self._asked = 0
        self._lock = threading.RLock()

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The declared constraints."""
        return self.settings.constraints

    @property
    def direction(self) -> Direction:
        """Direction of the objective: "minimize" or "maximize"."""
        return self.settings.direction

    @property
    def options(self) -> Options:
        """How to search."""
        return self.settings.options

    @property
    def acquisition(self) -> str:
        """Of the paper's strategy."""
        return self.settings.acquisition

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self.settings.seed

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All finished trials, in the order told."""
        return tuple(self._trials)

    @property
    def pending(self) -> tuple[Suggestion, ...]:
        """Suggestions that were asked for and not told yet."""
        return tuple(self._pending.values())

    @property
    def errors(self) -> tuple[Failure, ...]:
        """Suggestions on which the program failed with an error; they stay pending and are not suggested again."""
        with self._lock:
            return tuple(Failure(dict(self._pending[number]), words) for number, words in self._errors.items())

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
        checked = self.space.validate(params)
        with self._lock:
            number = self._number_of(params, checked)
            trial = Trial(self._trials[-1].number + 1 if self._trials else 0, checked, *outcome)
            self._trials.append(trial)
            if number is not None:
                self._withdraw(number)
            return trial

    def correct(self, number: int, objective: Any = _KEPT, *, reason: str | None = None, **constraints: Any) -> Trial:
        """Correct the result of the trial with this number; what is not given stays as it was.

        The arguments are those of `tell`. If something is wrong, an `InputError` is raised and nothing is changed.
        """
        with self._lock:
            index = self._index(number)
            before = self._trials[index]
            seen = {name: VIOLATED if value is None else value for name, value in before.constraints.items()}
            cost = objective if objective is not _KEPT else CRASHED if before.crashed else before.objective
            if reason is None:
                reason = before.reason if before.crashed and cost is CRASHED else ""
            outcome = check_outcome(cost, seen | constraints, self.constraints, reason)
            self._trials[index] = replace(before, **outcome._asdict())
            return self._trials[index]

    def remove(self, number: int) -> Trial:
        """Remove a finished trial, as if it had never been told; the others keep their numbers."""
        with self._lock:
            return self._trials.pop(self._index(number))

    def forget(self, params: Mapping[str, Any]) -> None:
        """Withdraw a suggestion that will not be tried."""
        with self._lock:
            self._withdraw(self._still_out(params))

    def fail(self, params: Mapping[str, Any], error: str) -> None:
        """Record that the program failed on a suggestion: neither a crash nor a result, and not suggested again."""
        with self._lock:
            self._errors[self._still_out(params)] = str(error)

    def _index(self, number: int) -> int:
        numbers, wanted = [trial.number for trial in self._trials], native(number)
        if isinstance(wanted, bool) or wanted not in numbers:
            there = f"{numbers[0]} to {numbers[-1]}" if numbers else "none"
            raise InputError(f"`number` must be that of a finished trial; got {number!r}, there are: {there}.")
        return numbers.index(wanted)

    def _withdraw(self, number: int) -> None:
        del self._pending[number]
        self._errors.pop(number, None)

    def _still_out(self, params: Mapping[str, Any]) -> int:
        """The number of a suggestion that is out."""
        number = self._number_of(params, dict(params))
        if number is None:
            raise InputError(f"`params` must be a suggestion that is still out; got {dict(params)}.")
        return number

    def _number_of(self, params: Mapping[str, Any], checked: Mapping[str, Any]) -> int | None:
        """Which pending suggestion these params are; None if they were never asked for."""
        number = getattr(params, "number", None)
        if number is None:
            return next((key for key, one in self._pending.items() if dict(one) == checked), None)
        mine = self._pending.get(number)
        if mine is None or (mine is not params and dict(mine) != checked):
            raise InputError(f"`params` must be a suggestion that is still out; got number {number}, told already.")
        return int(number)
