"""All trials of a study as CrashBO sees them: read once, with corrections and what pruned trials say."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from crashbo.adapters.optuna.codec import (
    CORRECTION,
    DEFAULTS,
    PRUNED_CHOICES,
    Learn,
    Record,
    curve_in,
    read_one,
)
from crashbo.adapters.optuna.internals import all_trials, study_attributes
from crashbo.adapters.optuna.pruning import Curve, estimate
from crashbo.errors import InputError
from crashbo.problem.outcome import Constraint


def read(study: optuna.Study, *, learn_from: Learn = True, pruned: str = "estimate") -> list[Record]:
    """Return every trial of a study, with corrections applied, in the order of their numbers.

    A cost that is infinite or beyond 1e100 is a crash, as everywhere (see `crashbo.problem.outcome`).

    Args:
        study: the study to read; finished trials come from Optuna's cache.
        learn_from: which failed trials are crashes: all, none, or those for which this function of the
            `FrozenTrial` is true. Trials marked as transient, and those that Optuna itself retries, never are.
        pruned: what a pruned trial counts as: an "estimate" of its cost, its last "value", a "crash", or nothing
            ("ignore"). A pruned trial that reported nothing is a crash, unless ignored or a trial with the same
            params has ended otherwise.
    """
    return Reading(study, learn_from, pruned).read()


class Reading:
    """The records of a study, read again and again: a trial that has ended is converted once; see `read`."""

    def __init__(
        self, study: optuna.Study, learn_from: Learn = True, pruned: str = "estimate", without: int | None = None
    ) -> None:
        """Set up; `without` is the number of a trial to leave out."""
        if len(study.directions) != 1:
            raise InputError(
                f"`study` must have one objective; got {len(study.directions)}. Combine them into one cost."
            )
        if pruned not in PRUNED_CHOICES:
            raise InputError(f"`pruned` must be one of {list(PRUNED_CHOICES)}; got {pruned!r}.")
        self.study, self.without = study, without
        self._learn_from, self._pruned = learn_from, pruned
        self._ended: dict[int, tuple[object, Record]] = {}  # by number: what the record depends on, and the record

    def read(self) -> list[Record]:
        """The records as the study is now, in the order of their numbers."""
        trials = [one for one in all_trials(self.study) if one.number != self.without]
        attributes = study_attributes(self.study)
        changes = corrections_in(attributes)
        retried = {number for one in trials for number in one.system_attrs.get("retry_history", [])}
        records = [self._record(one, changes.get(one.number, ()), one.number in retried) for one in trials]
        defaults = attributes.get(DEFAULTS)
        if defaults:
            records = [_filled(record, defaults) for record in records]
        if any(record.status == "pruned" for record in records):
            maximize = self.study.direction == StudyDirection.MAXIMIZE
            records = _judged(records, {trial.number: curve_in(trial) for trial in trials}, self._pruned, maximize)
        return sorted(records, key=lambda record: record.number)

    def _record(self, trial: FrozenTrial, history: Sequence[Mapping[str, Any]], retried: bool) -> Record:
        basis = (trial.state, len(history), retried)
        before, found = self._ended.get(trial.number, (None, None))
        if found is None or before != basis:
            found = read_one(trial, history, not retried and self._learn_from, self._pruned)
            if trial.state.is_finished():
                self._ended[trial.number] = basis, found
        return found


def _filled(record: Record, defaults: Mapping[str, Any]) -> Record:
    """A record with the parameters that did not exist yet when its trial began."""
    if not record.params or (record.status == "pending" and set(defaults) <= set(record.suggestion)):
        return record
    return replace(record, params={**defaults, **record.params})


def _judged(records: Sequence[Record], curves: Mapping[int, Curve], pruned: str, maximize: bool) -> list[Record]:
    """Records with what their pruned trials say."""
    finished = [(curves[one.number], one.objective) for one in records if one.objective is not None]
    known = [dict(one.params) for one in records if one.status in ("finished", "crashed")]

    def judge(record: Record) -> Record:
        curve = curves[record.number]
        if record.status != "pruned" or pruned == "ignore":
            return record
        if curve.values:
            guess = curve.values[-1] if pruned == "value" else estimate(curve, finished, maximize=maximize)
            return replace(record, estimate=guess)
        repeated = not record.params or dict(record.params) in known
        return record if repeated else replace(record, status="crashed")

    return [judge(record) for record in records]


def corrections(study: optuna.Study) -> dict[int, list[dict[str, Any]]]:
    """All corrections ever made, oldest first, by trial number.

    Raises:
        InputError: if something else stands where they should.
    """
    return corrections_in(study_attributes(study))


def corrections_in(attributes: Mapping[str, Any]) -> dict[int, list[dict[str, Any]]]:
    """The same, from the user attributes of a study."""
    found = {}
    for key, entries in attributes.items():
        if key.startswith(CORRECTION):
            number = key.removeprefix(CORRECTION)
            if not number.isdigit() or not isinstance(entries, list) or not all(map(_is_entry, entries)):
                raise InputError(
                    f"`study` must have corrections that can be read; those of trial {number} are damaged."
                )
            found[int(number)] = entries
    return found


def _is_entry(entry: Any) -> bool:
    """Whether something is a correction as `_entry` makes them."""
    kinds: dict[str, Any] = {"status": str, "objective": (float, int, type(None)), "constraints": dict, "reason": str}
    return isinstance(entry, dict) and all(isinstance(entry.get(key, ...), kind) for key, kind in kinds.items())


def best_trial(study: optuna.Study, constraints: Sequence[Constraint] = ()) -> Record:
    """Return the best trial of a study that succeeded, with corrections applied; works with any sampler.

    Args:
        study: a study with one objective.
        constraints: known limits of values written by `report`. Values labelled as violated, and Optuna's own
            constraints, need not be declared.

    Raises:
        InputError: if no trial has succeeded.
    """
    found = best_of(read(study), constraints, maximize=study.direction == StudyDirection.MAXIMIZE)
    if found is None:
        raise InputError("`study` must have a trial that succeeded; got none.")
    return found


def best_of(records: Sequence[Record], constraints: Sequence[Constraint], *, maximize: bool) -> Record | None:
    """The best finished record that broke no limit; None without any."""
    good = [one for one in records if one.status == "finished" and not one.failed_under(constraints)]
    return min(good, key=lambda one: (-1.0 if maximize else 1.0) * (one.objective or 0.0), default=None)


def worth_another_try(records: Sequence[Record]) -> Record | None:
    """The first transient failure that no trial tries again yet; None if there is none.

    One whose params have crashed in another trial is never tried again.
    """
    claimed = {record.retry_of for record in records}
    crashed = [dict(record.params) for record in records if record.status == "crashed"]
    waiting = (record for record in records if record.transient and record.params and record.number not in claimed)
    return next((record for record in waiting if dict(record.params) not in crashed), None)
