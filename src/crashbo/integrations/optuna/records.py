"""How outcomes are written on Optuna trials and read back.

On a trial, as user attributes: "crash" (reason), "transient" (reason), "constraint:<name>" (a number or
"violated"), "crashbo:told_by" (who said so), "crashbo:skipped" (on a pruned trial: nobody ran it). A finished trial
cannot be changed in Optuna, so corrections are user attributes of the study, "crashbo:correction:<number>", a list of
entries that is only ever added to.
"""

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, TypeVar

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.errors import InputError
from crashbo.integrations.optuna.internals import study_attributes, study_id, trial_id
from crashbo.integrations.optuna.transactions import CONSTRAINT, CRASH, TRANSIENT, Ending, new_key, writer
from crashbo.outcome import (
    CRASHED,
    LARGEST,
    VIOLATED,
    Constraint,
    Crash,
    Outcome,
    Trial,
    check_outcome,
    is_number,
    why_no_cost,
)

Status: TypeAlias = Literal["finished", "crashed", "pending", "ignored"]
Learn: TypeAlias = bool | Callable[[FrozenTrial], bool]
R = TypeVar("R")

CORRECTION = "crashbo:correction:"
TOLD_BY = "crashbo:told_by"
SKIPPED = "crashbo:skipped"
SUGGESTION, RETRY_OF = "crashbo:suggestion", "crashbo:retry_of"  # system attributes, written by the sampler
_VIOLATED = "violated"
PRUNED_CHOICES = ("ignore", "crash", "value")
CORRECTIONS = ("finished", "crashed", "transient", "deleted", "restored")


class OutdatedError(InputError):
    """A correction was made for an older version of a trial than there is."""


@dataclass(frozen=True)
class Record:
    """One trial of a study as CrashBO sees it.

    Attributes:
        number: of the trial.
        params: what is or was tried; of a running trial as far as suggested.
        distributions: of those params.
        status: "finished" (a cost), "crashed", "pending" (running, with params) or "ignored".
        objective: the cost in the study's own direction; None unless finished.
        constraints: reported value by name, None where violated.
        reason: of a crash or a transient failure, in words.
        limits: Optuna's own constraints by name, feasible up to 0.
        transient: failed for a reason that teaches nothing; its params are worth another try.
        deleted: by a correction.
        skipped: suggested, but nobody ran it.
        retry_of: the transient trial this one tries again.
        suggestion: all params the sampler suggested, asked for yet or not, in Optuna's internal numbers.
    """

    number: int
    params: Mapping[str, Any]
    distributions: Mapping[str, BaseDistribution]
    status: Status
    objective: float | None = None
    constraints: Mapping[str, float | None] = field(default_factory=dict)
    reason: str = ""
    limits: Mapping[str, float] = field(default_factory=dict)
    transient: bool = False
    deleted: bool = False
    skipped: bool = False
    retry_of: int | None = None
    suggestion: Mapping[str, float] = field(default_factory=dict)

    def failed_under(self, constraints: Sequence[Constraint]) -> bool:
        """Whether it crashed or broke a limit, a known one or Optuna's own included."""
        broken = any(value > 0 for value in self.limits.values())
        told = Trial(self.number, self.params, self.objective, self.constraints)
        return self.status == "crashed" or (self.status == "finished" and (broken or told.failed_under(constraints)))

    @property
    def word(self) -> str:
        """The status for people; of an ignored trial why: "deleted", "skipped" or "transient"."""
        reasons = {"deleted": self.deleted, "skipped": self.skipped, "transient": self.transient}
        return next((name for name, holds in reasons.items() if holds), self.status)


# --- writing, on a running trial ---------------------------------------------------------------


def report(trial: optuna.Trial, **values: Any) -> None:
    """Write constraint values, or `crashbo.VIOLATED`, on a running trial: `report(trial, reach=11.2)`.

    Raises:
        InputError: if a name or value is not one; then nothing is written.
    """
    for name, value in _checked(CRASHED, values).constraints.items():
        trial.set_user_attr(f"{CONSTRAINT}{name}", _VIOLATED if value is None else value)


def report_crash(trial: optuna.Trial, reason: str = "", **values: Any) -> None:
    """Write why a running trial crashed, and what was seen before, ahead of telling Optuna that it failed."""
    trial.set_user_attr(CRASH, str(reason))
    report(trial, **values)


def report_transient(trial: optuna.Trial, reason: str = "") -> None:
    """Mark a failure that says nothing about the params: not learned from, and offered again."""
    trial.set_user_attr(TRANSIENT, str(reason))


def crashing(objective: Callable[..., R], *, transient: Sequence[type[BaseException]] = ()) -> Callable[..., R]:
    """Wrap an objective so that its failures are recorded before Optuna sees them, then raised again.

    `crashbo.Crash` keeps its reason and partial values; use `study.optimize(..., catch=(crashbo.Crash,))`.

    Args:
        objective: takes an `optuna.Trial` first.
        transient: exceptions that are marked as transient, such as `ConnectionError`; Ctrl-C always is.
    """
    passing: tuple[type[BaseException], ...] = (KeyboardInterrupt, *transient)

    @functools.wraps(objective)
    def recorded(trial: optuna.Trial, *args: Any, **kwargs: Any) -> R:
        try:
            return objective(trial, *args, **kwargs)
        except Crash as crash:
            report_crash(trial, crash.reason, **crash.values)
            raise
        except passing as error:
            report_transient(trial, str(error) or type(error).__name__)
            raise

    return recorded


# --- correcting, afterwards --------------------------------------------------------------------


@dataclass(frozen=True)
class Correction:
    """What a finished trial is to be.

    Attributes:
        status: "finished" (with `objective`), "crashed", "transient", "deleted", or "restored" after "deleted".
        objective: the cost, for "finished" only.
        constraints: values or `crashbo.VIOLATED`; None: as they were.
        reason: in words.
        by: who says so.
    """

    status: str
    objective: float | None = None
    constraints: Mapping[str, Any] | None = None
    reason: str = ""
    by: str = ""

    def __post_init__(self) -> None:
        if self.status not in CORRECTIONS:
            raise InputError(f"`status` must be one of {list(CORRECTIONS)}; got {self.status!r}.")
        if (self.status == "finished") != (self.objective is not None):
            raise InputError(f"`objective` must be given with status 'finished' and only then; got {self.objective!r}.")


def correct(
    study: optuna.Study,
    number: int,
    *,
    status: str,
    objective: float | None = None,
    constraints: Mapping[str, Any] | None = None,
    reason: str = "",
) -> Record:
    """Correct a finished trial; what was recorded before is kept, the last correction counts.

    Args:
        study: that has the trial.
        number: of the trial.
        status: "finished" (with `objective`), "crashed", "transient", "deleted", or "restored" after "deleted".
        objective: the cost, for "finished" only.
        constraints: values or `crashbo.VIOLATED`; None: as they were.
        reason: in words.

    Returns:
        The trial as it is read from now on.

    Raises:
        InputError: and nothing is written.
    """
    wanted = Correction(status, objective, constraints, reason)
    return amend(study, number, lambda before: wanted)


def amend(
    study: optuna.Study,
    number: int,
    make: Callable[[Record], Correction],
    *,
    key: str | None = None,
    version: int | None = None,
) -> Record:
    """Correct a finished trial by what it is now; of corrections made at the same time none is lost.

    Args:
        study: that has the trial.
        number: of the trial.
        make: of the trial as it is read now; called while nobody else can correct it.
        key: of this correction; it is made once, however often it is asked for.
        version: how many corrections whoever makes this one has seen; None: it does not matter.

    Returns:
        The trial as it is read from now on.

    Raises:
        OutdatedError: if there are more corrections than that; nothing is written.
        InputError: and nothing is written.
    """
    found = next((one for one in study.get_trials(deepcopy=False) if one.number == number), None)
    if found is None or not found.state.is_finished():
        what = "there is no such trial" if found is None else f"it is {found.state.name.lower()}"
        raise InputError(f"`number` must be a finished trial; got {number!r}, {what}.")
    mine = key or new_key()

    def change(history: list[dict[str, Any]]) -> dict[str, Any] | None:
        if any(entry.get("key") == mine for entry in history):
            return None  # it has arrived before
        if version is not None and version != len(history):
            raise OutdatedError(f"Trial {number} has been corrected by somebody else meanwhile. Look at it again.")
        before = _read_one(found, history, True, "ignore")
        return _entry(make(before), before, mine)

    history = writer(study).add_entry(study_id(study), f"{CORRECTION}{number}", change)
    return _read_one(found, history, True, "ignore")


def _entry(wanted: Correction, before: Record, key: str) -> dict[str, Any]:
    """A correction as it is stored."""
    cost, seen, why = _checked(CRASHED if wanted.objective is None else wanted.objective, wanted.constraints or {})
    if wanted.constraints is None:
        seen = dict(before.constraints)
    entry: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "status": "crashed" if wanted.status == "finished" and cost is None else wanted.status,
        "objective": cost,
        "constraints": {name: _VIOLATED if value is None else value for name, value in seen.items()},
        "reason": str(wanted.reason or why),
        "key": key,
    }
    return entry | ({"by": wanted.by} if wanted.by else {})


def lost_worker(study: optuna.Study, trial: FrozenTrial) -> None:
    """Record that a trial failed only because its worker was lost.

    For `RDBStorage(..., heartbeat_interval=60, heartbeat_stale_trial_callback=lost_worker)`.
    """
    correct(study, trial.number, status="transient", reason="lost worker")


def release_running(study: optuna.Study, reason: str = "lost worker") -> list[int]:
    """Give up all running trials as transient failures, so that they are offered again.

    For a study whose worker was killed, when no other worker is alive; with heartbeats use `lost_worker`.

    Returns:
        The numbers of those trials.
    """
    running = study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
    lost = [
        one
        for one in running
        if writer(study).finish(trial_id(one), Ending(TrialState.FAIL, marks={TRANSIENT: reason}))
    ]
    return [trial.number for trial in lost]


def corrections(study: optuna.Study) -> dict[int, list[dict[str, Any]]]:
    """All corrections ever made, oldest first, by trial number.

    Raises:
        InputError: if something else stands where they should.
    """
    found = {}
    for key, entries in study_attributes(study).items():
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


def first_recorded(trial: FrozenTrial) -> dict[str, Any]:
    """What was recorded when a trial ended, in the shape of a correction."""
    marks = trial.user_attrs
    record = _uncorrected(trial, True, "ignore")
    ended = trial.datetime_complete
    entry = {
        "time": None if ended is None else ended.astimezone(UTC).isoformat(timespec="seconds"),
        "status": record.word,
        "objective": record.objective,
        "constraints": {name: _VIOLATED if value is None else value for name, value in record.constraints.items()},
        "reason": record.reason,
    }
    return entry | ({"by": str(marks[TOLD_BY])} if marks.get(TOLD_BY) else {})


# --- reading -----------------------------------------------------------------------------------


def read(study: optuna.Study, *, learn_from: Learn = True, pruned: str = "ignore") -> list[Record]:
    """Return every trial of a study, corrections applied, by number.

    A cost that is infinite or beyond 1e100 is a crash, as everywhere (see `crashbo.outcome`).

    Args:
        study: to read; finished trials come from Optuna's cache.
        learn_from: which failed trials are crashes: all, none, or those for which this function of the
            `FrozenTrial` is true. Those marked transient, and those Optuna retries itself, never are.
        pruned: "ignore" pruned trials, count them as a "crash", or take their last "value" as the cost.
    """
    if len(study.directions) != 1:
        raise InputError(f"`study` must have one objective; got {len(study.directions)}. Combine them into one cost.")
    if pruned not in PRUNED_CHOICES:
        raise InputError(f"`pruned` must be one of {list(PRUNED_CHOICES)}; got {pruned!r}.")
    trials = study.get_trials(deepcopy=False)
    changes = corrections(study)
    retried = {number for one in trials for number in one.system_attrs.get("retry_history", [])}

    def counts(trial: FrozenTrial) -> bool:
        return trial.number not in retried and (learn_from(trial) if callable(learn_from) else learn_from)

    records = [_read_one(trial, changes.get(trial.number, []), counts, pruned) for trial in trials]
    return sorted(records, key=lambda record: record.number)


def worth_another_try(records: Sequence[Record]) -> Record | None:
    """The first transient failure that no trial tries again yet; None if there is none.

    One whose params have crashed in another trial is never tried again.
    """
    claimed = {record.retry_of for record in records}
    crashed = [dict(record.params) for record in records if record.status == "crashed"]
    waiting = (record for record in records if record.transient and record.params and record.number not in claimed)
    return next((record for record in waiting if dict(record.params) not in crashed), None)


def _read_one(trial: FrozenTrial, history: Sequence[Mapping[str, Any]], learn_from: Learn, pruned: str) -> Record:
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
    if trial.state == TrialState.COMPLETE or (trial.state == TrialState.PRUNED and pruned == "value"):
        if trial.value is None:
            return "ignored", None, "pruned without a value"
        why = why_no_cost(trial.value)
        return ("finished", trial.value, "") if why is None else ("crashed", None, why)
    if trial.state == TrialState.PRUNED:
        return ("crashed" if pruned == "crash" else "ignored"), None, str(marks.get(CRASH) or "pruned")
    if trial.state == TrialState.FAIL and not _transient(trial):
        counts = learn_from(trial) if callable(learn_from) else learn_from
        return ("crashed" if counts and trial.params else "ignored"), None, str(marks.get(CRASH) or "")
    return "ignored", None, str(marks.get(TRANSIENT) or "")


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
    usable = {name: value for name, value in values.items() if value == _VIOLATED or is_number(value)}
    return _checked(CRASHED, usable).constraints


def _checked(objective: Any, values: Mapping[str, Any]) -> Outcome:
    """Validate an outcome as `Optimizer.tell` would, None and "violated" standing for `VIOLATED` too."""
    marks = {
        name: VIOLATED if value is None or (isinstance(value, str) and value == _VIOLATED) else value
        for name, value in values.items()
    }
    return check_outcome(objective, marks, [Constraint(name) for name in marks])
