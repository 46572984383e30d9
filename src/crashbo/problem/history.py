"""A problem and what has happened so far, frozen: all that a strategy decides from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array, Bools
from crashbo.problem.options import Options
from crashbo.problem.outcome import CRASHED, Constraint, Failure, Outcome, Trial, check_outcome
from crashbo.problem.parameters import native
from crashbo.problem.problem import OBJECTIVE as OBJECTIVE
from crashbo.problem.problem import Direction, Problem
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Reason, Suggestion

UNCHANGED: Any = object()
"""Stands for an objective that a correction leaves as it was."""


@dataclass(frozen=True)
class History:
    """A problem and all that has happened. Equal histories give equal suggestions.

    Attributes:
        problem: what is to be found.
        trials: finished ones, in the order told.
        pending: suggestions under way.
        asked: how many suggestions were made.
        initial_points: params to suggest first.
        errors: in words, by the number of the pending suggestion that ended in an error of the program itself.
        numbered: how many numbers were given; a trial has that of its suggestion.
    """

    problem: Problem
    trials: tuple[Trial, ...] = ()
    pending: tuple[Suggestion, ...] = ()
    asked: int = 0
    initial_points: tuple[Mapping[str, Any], ...] = ()
    errors: Mapping[int, str] = field(default_factory=dict)
    numbered: int = 0

    # --- of the problem ----------------------------------------------------------------------

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
        """Direction of the objective."""
        return self.problem.direction

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised."""
        return self.problem.sign

    @property
    def seed(self) -> int:
        """Seed of everything random."""
        return self.problem.seed

    @property
    def options(self) -> Options:
        """How to search."""
        return self.problem.options

    # --- what is known -----------------------------------------------------------------------

    @property
    def next_number(self) -> int:
        """The number of the next suggestion, or of a trial that was not suggested: one that nothing else has."""
        told, out = [trial.number for trial in self.trials], [one.number for one in self.pending]
        return max(self.numbered, 1 + max(told + out, default=-1))

    @property
    def next_given(self) -> dict[str, Any] | None:
        """The first of the user's initial points that is neither out nor told."""
        seen = [dict(one) for one in self.pending] + [dict(trial.params) for trial in self.trials]
        for point in self.initial_points:
            if dict(point) not in seen:
                return dict(point)
            seen.remove(dict(point))
        return None

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Suggestions on which the program failed with an error."""
        out = {one.number: dict(one) for one in self.pending}
        return tuple(Failure(out[number], words) for number, words in self.errors.items())

    @cached_property
    def points(self) -> Array:
        """`n x d`, where the trials were made, in the unit cube."""
        return self.space.encode_valid([trial.params for trial in self.trials])

    @cached_property
    def pending_points(self) -> Array:
        """`m x d`, trials under way."""
        return self.space.encode_valid(self.pending)

    @cached_property
    def failed(self) -> Bools:
        """`n`, whether each trial crashed or violated a limit, known or not."""
        return np.array([trial.failed_under(self.constraints) for trial in self.trials], dtype=bool)

    @cached_property
    def costs(self) -> list[float | None]:
        """`n`, minimised; None where there is none."""
        return [None if trial.objective is None else self.sign * trial.objective for trial in self.trials]

    @property
    def best_trial(self) -> Trial | None:
        """The best trial that did not fail; None without one."""
        held = [trial for trial, failed in zip(self.trials, self.failed, strict=True) if not failed]
        return min(held, key=lambda trial: self.sign * (trial.objective or 0.0), default=None)

    def generator(self, *purpose: int) -> np.random.Generator:
        """A source of randomness for this suggestion."""
        return np.random.default_rng([self.seed, self.asked, *purpose])

    def trial(self, number: int) -> Trial:
        """The finished trial with a number; an `InputError` if there is none."""
        numbers, wanted = [trial.number for trial in self.trials], native(number)
        if isinstance(wanted, bool) or wanted not in numbers:
            there = f"{min(numbers)} to {max(numbers)}" if numbers else "none"
            raise InputError(f"`number` must be that of a finished trial; got {number!r}, there are: {there}.")
        return self.trials[numbers.index(wanted)]

    def number_out(self, params: Mapping[str, Any]) -> int:
        """The number of a suggestion that is still out; an `InputError` if these params are none."""
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

    # --- what follows from it ----------------------------------------------------------------

    def first(self, count: int) -> "History":
        """The first trials alone, nothing under way."""
        return replace(self, trials=self.trials[:count], pending=(), asked=0)

    def suggested(self, params: Mapping[str, Any], why: Reason) -> "History":
        """With one more suggestion, the last of `pending`."""
        made = Suggestion(params, self.next_number, why)
        return replace(self, pending=(*self.pending, made), asked=self.asked + 1, numbered=made.number + 1)

    def with_pending(self, params: Sequence[Mapping[str, Any]]) -> "History":
        """With more points under way, which were not asked for."""
        first = self.next_number
        more = [Suggestion(self.space.validate(one), first + i, Reason("given")) for i, one in enumerate(params)]
        return replace(self, pending=(*self.pending, *more))

    def with_initial_point(self, params: Mapping[str, Any]) -> "History":
        """With one more point to suggest before the models decide."""
        point = self.space.validate(params)
        if rules := self.space.broken(point):
            raise InputError(f"`initial_points` must satisfy the space's constraints; {point} breaks {rules[0]!r}.")
        return replace(self, initial_points=(*self.initial_points, point))

    def without(self, number: int | None) -> "History":
        """With a suggestion no longer pending."""
        pending = tuple(one for one in self.pending if one.number != number)
        return replace(self, pending=pending, errors={n: words for n, words in self.errors.items() if n != number})

    def with_error(self, number: int, error: str) -> "History":
        """With a pending suggestion on which the program failed."""
        return replace(self, errors={**self.errors, number: error})

    def told(self, params: Mapping[str, Any], outcome: Outcome) -> "History":
        """With one more trial, the last of `trials`; its params are checked here, its outcome has been."""
        checked = self.space.validate(params)
        number = self._number_of(params, checked)
        known = self.without(number)
        trial = Trial(known.next_number if number is None else number, checked, **vars(outcome))
        return replace(known, trials=(*known.trials, trial), numbered=known.next_number + (number is None))

    def corrected(
        self,
        number: int,
        objective: Any = UNCHANGED,
        constraints: Mapping[str, Any] | None = None,
        reason: str | None = None,
    ) -> "History":
        """With another outcome of a finished trial; what is not given stays as it was."""
        before = self.trial(number)
        kept = CRASHED if before.objective is None else before.objective
        cost = kept if objective is UNCHANGED else objective
        if reason is None:
            reason = before.reason if before.crashed and cost is CRASHED else ""
        outcome = check_outcome(cost, {**before.constraints, **(constraints or {})}, self.constraints, reason)
        after = replace(before, **vars(outcome))
        return replace(self, trials=tuple(after if one is before else one for one in self.trials))

    def without_trial(self, number: int) -> "History":
        """As if a trial had never been told; the others keep their numbers."""
        removed = self.trial(number)
        return replace(self, trials=tuple(one for one in self.trials if one is not removed))
