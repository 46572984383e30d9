"""Correct trials that have ended, and give up those whose worker is gone.

A finished trial cannot be changed in Optuna, so corrections are user attributes of the study,
"crashbo:correction:<number>", a list of entries that is only ever added to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.codec import CORRECTION, TOLD_BY, Record, checked, read_one
from crashbo.adapters.optuna.internals import study_id, trial_id
from crashbo.adapters.optuna.transactions import TRANSIENT, Ending, new_key, writer
from crashbo.errors import InputError
from crashbo.problem.outcome import CRASHED, labelled

CORRECTIONS = ("finished", "crashed", "transient", "deleted", "restored")


class OutdatedError(InputError):
    """A correction was made for an older version of a trial than there is."""


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
    """Correct a finished trial. Earlier entries are kept; the last correction counts.

    Args:
        study: the study that has the trial.
        number: number of the trial.
        status: "finished" (with `objective`), "crashed", "transient", "deleted", or "restored" after "deleted".
        objective: the cost, for "finished" only.
        constraints: values or `crashbo.VIOLATED`; None: unchanged.
        reason: the reason, in words.

    Returns:
        The corrected trial.

    Raises:
        InputError: if something is wrong; then nothing is written.
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
        before = read_one(found, history)
        return _entry(make(before), before, mine)

    history = writer(study).add_entry(study_id(study), f"{CORRECTION}{number}", change)
    return read_one(found, history)


def _entry(wanted: Correction, before: Record, key: str) -> dict[str, Any]:
    """A correction as it is stored."""
    outcome = checked(CRASHED if wanted.objective is None else wanted.objective, wanted.constraints or {})
    seen = before.constraints if wanted.constraints is None else outcome.constraints
    entry: dict[str, Any] = {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "status": outcome.status if wanted.status == "finished" else wanted.status,
        "objective": outcome.objective,
        "constraints": labelled(seen),
        "reason": str(wanted.reason or outcome.reason),
        "key": key,
    }
    return entry | ({"by": wanted.by} if wanted.by else {})


def lost_worker(study: optuna.Study, trial: FrozenTrial) -> None:
    """Record that a trial failed only because its worker was lost.

    For `RDBStorage(..., heartbeat_interval=60, heartbeat_stale_trial_callback=lost_worker)`.
    """
    correct(study, trial.number, status="transient", reason="lost worker")


def release_running(study: optuna.Study, reason: str = "lost worker") -> list[int]:
    """Mark all running trials as transient failures, so that their params are offered again.

    Use it after a worker was killed, when no other worker is alive. With heartbeats, use `lost_worker`.

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


def first_recorded(trial: FrozenTrial) -> dict[str, Any]:
    """What was recorded when a trial ended, in the shape of a correction."""
    marks = trial.user_attrs
    record = read_one(trial, ())
    ended = trial.datetime_complete
    entry = {
        "time": None if ended is None else ended.astimezone(UTC).isoformat(timespec="seconds"),
        "status": record.word,
        "objective": record.objective,
        "constraints": labelled(record.constraints),
        "reason": record.reason,
    }
    return entry | ({"by": str(marks[TOLD_BY])} if marks.get(TOLD_BY) else {})
