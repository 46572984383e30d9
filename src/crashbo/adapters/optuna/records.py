"""How outcomes are written on Optuna trials and read back.

On a trial, as user attributes: "crash" (reason), "transient" (reason), "constraint:<name>" (a number or
"violated"), "crashbo:told_by" (who said so), "crashbo:skipped" (on a pruned trial: nobody ran it). They are written by
`reporting` and `crashbo.store.recording`; what `correcting` adds to the study counts instead. What the words mean is
in docs/glossary.md.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.internals import all_trials, study_attributes
from crashbo.adapters.optuna.pruning import Curve, curve_of, estimate
from crashbo.adapters.optuna.transactions import CONSTRAINT, CRASH, TRANSIENT
from crashbo.errors import InputError
from crashbo.problem.outcome import (
    LARGEST,
    VIOLATED,
    Constraint,
    Outcome,
    Trial,
    check_outcome,
    is_number,
    why_no_cost,
)

Status: TypeAlias = Literal["finished", "crashed", "pending", "pruned", "ignored"]
Learn: TypeAlias = bool | Callable[[FrozenTrial], bool]

CORRECTION = "crashbo:correction:"
TOLD_BY = "crashbo:told_by"
SKIPPED = "crashbo:skipped"
DEFAULTS = "crashbo:defaults"  # of a study: values of parameters in trials that were begun before there were those
SUGGESTION, RETRY_OF = "crashbo:suggestion", "crashbo:retry_of"  # system attributes, written by the sampler
VIOLATED_MARK = "violated"
_LAST = 2**63 - 1  # the step of a value that came without one
PRUNED_CHOICES = ("estimate", "value", "crash", "ignore")


@dataclass(frozen=True)
class Record:
    """One trial of a study as CrashBO sees it.

    Attributes:
        number: number of the trial.
        params: what is or was tried; for a running trial, what has been suggested so far.
        distributions: distributions of the params.
        status: "finished" (with a cost), "crashed", "pending" (running), "pruned" (stopped early) or "ignored".
        objective: the cost, in the study's own direction; None unless finished.
        estimate: for a pruned trial, the estimate of its final cost; None if unknown.
        constraints: reported values by name; None means violated.
        reason: reason of a crash or a transient failure, in words.
        limits: Optuna's own constraints by name, which hold up to 0.
        transient: whether it failed for a reason unrelated to its params, which are then tried again.
        deleted: whether it was deleted by a correction.
        skipped: whether it was suggested but never run.
        retry_of: the transient trial that this one repeats.
        suggestion: all params that the sampler suggested, whether used yet or not, in Optuna's internal representation.
    """

    number: int
    params: Mapping[str, Any]
    distributions: Mapping[str, BaseDistribution]
    status: Status
    objective: float | None = None
    estimate: float | None = None
    constraints: Mapping[str, float | None] = field(default_factory=dict)
    reason: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    transient: bool = False
    deleted: bool = False
    skipped: bool = False
    retry_of: int | None = None
    suggestion: Mapping[str, float] = field(default_factory=dict)

    def failed_under(self, constraints: Sequence[Constraint]) -> bool:
        """Whether it crashed or violated a limit, including known limits and Optuna's own constraints."""
        broken = any(value > 0 for value in self.limits.values())
        told = Trial(self.number, self.params, self.objective, self.constraints)
        return self.status == "crashed" or (self.status == "finished" and (broken or told.failed_under(constraints)))

    @property
    def teaches(self) -> bool:
        """Whether the model learns from it: it has a cost, an estimate of one, or a crash."""
        return self.status in ("finished", "crashed") or (self.status == "pruned" and self.estimate is not None)

    @property
    def word(self) -> str:
        """The status; for an ignored trial the reason: "deleted", "skipped" or "transient"."""
        reasons = {"deleted": self.deleted, "skipped": self.skipped, "transient": self.transient}
        return next((name for name, holds in reasons.items() if holds), self.status)


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
        changes = _corrections_in(attributes)
        retried = {number for one in trials for number in one.system_attrs.get("retry_history", [])}
        records = [self._record(one, changes.get(one.number, ()), one.number in retried) for one in trials]
        defaults = attributes.get(DEFAULTS)
        if defaults:
            records = [_filled(record, defaults) for record in records]
        if any(record.status == "pruned" for record in records):
            maximize = self.study.direction == StudyDirection.MAXIMIZE
            records = _judged(records, {trial.number: _curve(trial) for trial in trials}, self._pruned, maximize)
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


def _curve(trial: FrozenTrial) -> Curve:
    """The values it reported that a model can take; of a pruned trial at least the one it ended with."""
    reported = _reported(trial)
    return curve_of(reported, (step for step, value in reported.items() if _usable(value)))


def corrections(study: optuna.Study) -> dict[int, list[dict[str, Any]]]:
    """All corrections ever made, oldest first, by trial number.

    Raises:
        InputError: if something else stands where they should.
    """
    return _corrections_in(study_attributes(study))


def _corrections_in(attributes: Mapping[str, Any]) -> dict[int, list[dict[str, Any]]]:
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


def read_one(
    trial: FrozenTrial, history: Sequence[Mapping[str, Any]], learn_from: Learn = True, pruned: str = "ignore"
) -> Record:
    """Return one trial with its corrections; what a pruned one says takes the others, see `read`."""
    record = _uncorrected(trial, learn_from, pruned)
    deleted = False
    for entry in history if trial.state.is_finished() else ():
        deleted = entry["status"] == "deleted"
        if entry["status"] in ("finished", "crashed", "transient"):
            record = _corrected(record, entry)
    return replace(record, status="ignored", transient=False, deleted=True) if deleted else record


def _corrected(record: Record, entry: Mapping[str, Any]) -> Record:
    transient = entry["status"] == "transient"
    return replace(
        record,
        status="ignored" if transient else entry["status"],
        objective=entry["objective"],
        estimate=None,
        constraints=_seen(entry["constraints"]),
        reason=entry["reason"],
        transient=transient,
        skipped=False,
    )


def _uncorrected(trial: FrozenTrial, learn_from: Learn, pruned: str) -> Record:
    """What the trial itself says."""
    marks, inner = trial.user_attrs, trial.system_attrs
    status, objective, reason = _outcome(trial, learn_from, pruned)
    prefix = len(CONSTRAINT)
    constraints = {key[prefix:]: value for key, value in marks.items() if key.startswith(CONSTRAINT)}
    return Record(
        number=trial.number,
        params=trial.params,
        distributions=trial.distributions,
        status=status,
        objective=objective,
        constraints=_seen(constraints),
        reason=reason,
        limits=_limits(trial),
        transient=_transient(trial),
        skipped=_skipped(trial),
        retry_of=inner.get(RETRY_OF),
        suggestion=inner.get(SUGGESTION, {}),
    )


def _outcome(trial: FrozenTrial, learn_from: Learn, pruned: str) -> tuple[Status, float | None, str]:
    """Status, objective and reason."""
    marks = trial.user_attrs
    if _skipped(trial):
        return "ignored", None, "" if marks[SKIPPED] == "skipped" else str(marks[SKIPPED])
    if trial.state == TrialState.RUNNING:
        return ("pending" if trial.params or SUGGESTION in trial.system_attrs else "ignored"), None, ""
    if trial.state == TrialState.COMPLETE:
        why = why_no_cost(trial.value)
        return ("finished", trial.value, "") if why is None else ("crashed", None, why)
    if trial.state == TrialState.PRUNED:
        return _pruned(trial, pruned)
    if trial.state == TrialState.FAIL and not _transient(trial):
        counts = learn_from(trial) if callable(learn_from) else learn_from
        return ("crashed" if counts and trial.params else "ignored"), None, str(marks.get(CRASH) or "")
    return "ignored", None, str(marks.get(TRANSIENT) or "")


def _pruned(trial: FrozenTrial, pruned: str) -> tuple[Status, float | None, str]:
    """The same of a trial that was stopped early: by what it reported last, if it did."""
    reported, said = _reported(trial), trial.user_attrs.get(CRASH)
    if not reported:
        return ("crashed" if pruned == "crash" else "pruned"), None, str(said or "pruned without a value")
    step = max(reported)
    where = "" if step == _LAST else f" at step {step}"
    reason = str(said or f"pruned{where}, value {reported[step]:.6g}")
    diverged = not _usable(reported[step]) and pruned != "ignore"
    return ("crashed" if diverged or pruned == "crash" else "pruned"), None, reason


def _reported(trial: FrozenTrial) -> Mapping[int, float]:
    """Values by step; a pruned trial may have a value without a step."""
    if trial.intermediate_values or trial.state != TrialState.PRUNED or trial.value is None:
        return trial.intermediate_values
    return {_LAST: trial.value}


def _transient(trial: FrozenTrial) -> bool:
    """Whether a failure says nothing. With both marks someone confirmed a crash: it must not be offered again."""
    marks = trial.user_attrs
    return trial.state == TrialState.FAIL and marks.get(TRANSIENT) is not None and marks.get(CRASH) is None


def _skipped(trial: FrozenTrial) -> bool:
    return trial.state == TrialState.PRUNED and SKIPPED in trial.user_attrs


def _limits(trial: FrozenTrial) -> dict[str, float]:
    """Optuna's own constraints, cut to what a model can take."""
    found: Mapping[str, float] = trial.constraints
    return {name: min(max(value, -LARGEST), LARGEST) for name, value in found.items() if not math.isnan(value)}


def _seen(values: Mapping[str, Any]) -> dict[str, float | None]:
    """Constraint values as stored; anything that is not one counts as not seen."""
    usable = {name: value for name, value in values.items() if value == VIOLATED_MARK or is_number(value)}
    return {name: float(value) if _usable(value) else None for name, value in usable.items()}


def _usable(value: object) -> bool:
    return is_number(value) and abs(value) <= LARGEST  # type: ignore[arg-type]


def is_violated(value: object) -> bool:
    """Whether a constraint value says that its limit was broken: None, "violated" or `crashbo.VIOLATED`."""
    return value is None or value is VIOLATED or (isinstance(value, str) and value == VIOLATED_MARK)


def marked(constraints: Mapping[str, Any]) -> dict[str, Any]:
    """Constraint values as they are stored and shown: numbers and "violated"."""
    return {name: VIOLATED_MARK if is_violated(value) else value for name, value in constraints.items()}


def labelled(constraints: Mapping[str, Any]) -> dict[str, Any]:
    """Constraint values as they are told: numbers and `crashbo.VIOLATED`."""
    return {name: VIOLATED if is_violated(value) else value for name, value in constraints.items()}


def checked(objective: Any, values: Mapping[str, Any]) -> Outcome:
    """Validate an outcome as `Optimizer.tell` would, None and "violated" standing for `VIOLATED` too."""
    return check_outcome(objective, labelled(values), [Constraint(name) for name in values])
