"""What happened: trials that are finished, suggestions that are out, and what came of them."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from crashbo.errors import InputError
from crashbo.problem.history import Direction, History, Settings
from crashbo.problem.options import Options
from crashbo.problem.outcome import CRASHED, VIOLATED, Constraint, Failure, Outcome, Trial, check_outcome
from crashbo.problem.parameters import native
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Suggestion

_KEPT: Any = object()


class Ledger:
    """The book that an optimizer keeps: a frozen history, replaced under a lock, so threads may share it."""

    def __init__(self, space: Space, settings: Settings) -> None:
        clash = [one.name for one in settings.constraints if one.name in space]
        if clash:
            raise InputError(f"`{clash[0]}` must name either a parameter or a constraint; got both. Rename one.")
        self.space, self.settings = space, settings
        self._history = History(space, **vars(settings))
        self._lock = threading.RLock()

    @property
    def history(self) -> History:
        """Settings, trials and pending suggestions, frozen: what strategies decide from, and the whole state."""
        return self._history

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
        history = self._history
        out = {one.number: dict(one) for one in history.pending}
        return tuple(Failure(out[number], words) for number, words in history.errors.items())

    def add_initial_point(self, params: Mapping[str, Any]) -> None:
        """Suggest one more point before the models decide."""
        point = self.space.validate(params)
        if rules := self.space.broken(point):
            raise InputError(f"`initial_points` must satisfy the space's constraints; {point} breaks {rules[0]!r}.")
        with self._lock:
            self._history = replace(self._history, initial_points=(*self.initial_points, point))

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
            known = self._history.without(number)
            trial = Trial(known.next_number if number is None else number, checked, *outcome)
            self._history = replace(known, trials=(*known.trials, trial), numbered=known.next_number + (number is None))
            return trial

    def correct(self, number: int, objective: Any = _KEPT, *, reason: str | None = None, **constraints: Any) -> Trial:
        """Correct the result of the trial with this number; what is not given stays as it was.

        The arguments are those of `tell`. If something is wrong, an `InputError` is raised and nothing is changed.
        """
        with self._lock:
            before = self._finished(number)
            seen = {name: VIOLATED if value is None else value for name, value in before.constraints.items()}
            cost = objective if objective is not _KEPT else CRASHED if before.crashed else before.objective
            if reason is None:
                reason = before.reason if before.crashed and cost is CRASHED else ""
            outcome = check_outcome(cost, seen | constraints, self.constraints, reason)
            after = replace(before, **outcome._asdict())
            trials = tuple(after if one is before else one for one in self.trials)
            self._history = replace(self._history, trials=trials)
            return after

    def remove(self, number: int) -> Trial:
        """Remove a finished trial, as if it had never been told; the others keep their numbers."""
        with self._lock:
            removed = self._finished(number)
            self._history = replace(self._history, trials=tuple(one for one in self.trials if one is not removed))
            return removed

    def forget(self, params: Mapping[str, Any]) -> None:
        """Withdraw a suggestion that will not be tried."""
        with self._lock:
            self._history = self._history.without(self._still_out(params))

    def fail(self, params: Mapping[str, Any], error: str) -> None:
        """Record that the program failed on a suggestion: neither a crash nor a result, and not suggested again."""
        with self._lock:
            errors = {**self._history.errors, self._still_out(params): str(error)}
            self._history = replace(self._history, errors=errors)

    def _finished(self, number: int) -> Trial:
        """The trial with a number."""
        numbers, wanted = [trial.number for trial in self.trials], native(number)
        if isinstance(wanted, bool) or wanted not in numbers:
            there = f"{min(numbers)} to {max(numbers)}" if numbers else "none"
            raise InputError(f"`number` must be that of a finished trial; got {number!r}, there are: {there}.")
        return self.trials[numbers.index(wanted)]

    def _still_out(self, params: Mapping[str, Any]) -> int:
        """The number of a suggestion that is out."""
        number = self._number_of(params, dict(params))
        if number is None:
            raise InputError(f"`params` must be a suggestion that is still out; got {dict(params)}.")
        return number

    def _number_of(self, params: Mapping[str, Any], checked: Mapping[str, Any]) -> int | None:
        """Which pending suggestion these params are; None if they were never asked for."""
        number = getattr(params, "number", None)
        for one in self.pending:
            if number in (None, one.number) and (one is params or one == checked):
                return one.number
        if number is not None:
            raise InputError(f"`params` must be a suggestion that is still out; got number {number}, told already.")
        return None
