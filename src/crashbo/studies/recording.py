"""Record what came of a trial: told, crashed, transient, corrected, deleted."""

from collections.abc import Collection, Mapping
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from crashbo.errors import InputError
from crashbo.integrations.optuna import records
from crashbo.integrations.optuna.internals import add_trial, live_trial
from crashbo.integrations.optuna.records import CONSTRAINT, CRASH, Record
from crashbo.integrations.optuna.space import distribution_of
from crashbo.outcome import CRASHED, VIOLATED, check_outcome
from crashbo.studies.storage import StudyError
from crashbo.studies.study import Study


def tell(study: Study, number: int, objective: float, constraints: Mapping[str, Any] | None = None) -> None:
    """Record the cost of a trial that was asked for.

    Args:
        study: of the trial.
        number: of the trial.
        objective: its cost.
        constraints: value or `crashbo.VIOLATED` for every constraint of the study.

    Raises:
        InputError: and nothing is written.
    """
    values = dict(constraints or {})
    cost, _ = check_outcome(objective, values, study.definition.constraints)
    trial = _running(study, number)
    with study.guarded():
        records.report(trial, **values)
        _finish(study, trial, TrialState.COMPLETE, cost)


def crash(study: Study, number: int, reason: str = "", constraints: Mapping[str, Any] | None = None) -> None:
    """Record that a trial crashed, with what was seen before."""
    values = dict(constraints or {})
    check_outcome(CRASHED, values, study.definition.constraints)
    trial = _running(study, number)
    with study.guarded():
        records.report_crash(trial, reason, **values)
        _finish(study, trial, TrialState.FAIL)


def transient(study: Study, number: int, reason: str = "") -> None:
    """Record that a trial failed for a reason that teaches nothing: its params are offered again."""
    trial = _running(study, number, complete=False)
    with study.guarded():
        records.report_transient(trial, reason)
        _finish(study, trial, TrialState.FAIL)


def add(
    study: Study,
    params: Mapping[str, Any],
    objective: float | None,
    constraints: Mapping[str, Any] | None = None,
    reason: str = "",
) -> int:
    """Record a trial that was never asked for, in one step.

    Args:
        study: to add to.
        params: what was tried.
        objective: its cost, None if it crashed.
        constraints: value or `crashbo.VIOLATED`; all of them unless it crashed.
        reason: of a crash.

    Returns:
        The number of the new trial.
    """
    return store(study, make_trial(study, params, objective, constraints, reason))


def store(study: Study, trial: FrozenTrial) -> int:
    """Store a whole trial in one step and return its number."""
    with study.guarded():
        return add_trial(study.inner, trial).number


def make_trial(
    study: Study,
    params: Mapping[str, Any],
    objective: float | None,
    constraints: Mapping[str, Any] | None = None,
    reason: str = "",
) -> FrozenTrial:
    """Check a whole trial and return it, ready to be stored."""
    checked = study.definition.space.validate(params)
    outcome = CRASHED if objective is None else objective
    cost, seen = check_outcome(outcome, dict(constraints or {}), study.definition.constraints)
    marks: dict[str, Any] = {CONSTRAINT + name: "violated" if one is None else one for name, one in seen.items()}
    if cost is None:
        marks[CRASH] = reason
    state = TrialState.FAIL if cost is None else TrialState.COMPLETE
    distributions = {name: distribution_of(one) for name, one in study.definition.space.items()}
    return optuna.trial.create_trial(
        state=state, value=cost, params=checked, distributions=distributions, user_attrs=marks
    )


def correct(
    study: Study,
    number: int,
    *,
    status: str,
    objective: float | None = None,
    constraints: Mapping[str, Any] | None = None,
    clear: Collection[str] = (),
    reason: str | None = None,
) -> Record:
    """Correct a finished trial; what was recorded before is kept. See `records.correct` for the statuses.

    Args:
        study: of the trial.
        number: of the trial.
        status: what it is to be.
        objective: its cost, for "finished" only.
        constraints: those that are not given stay as they were.
        clear: constraints whose values are taken back: they were never seen. Only a crashed trial may lack one.
        reason: in words; None: that of a crash which stays one is kept.

    Raises:
        InputError: and nothing is written.
    """
    if not study.trial(number).state.is_finished():
        raise InputError(f"`number` must be a finished trial; got {number}, which is not. Use `tell` or `crash`.")
    before = next(record for record in study.records() if record.number == number)
    values: dict[str, Any] = {
        name: VIOLATED if value is None else value
        for name, value in before.constraints.items()
        if name in study.definition.constraint_names
    }
    values = _cleared(study, number, values, clear, constraints or {}) | dict(constraints or {})
    if status in ("deleted", "restored") and (status == "deleted") == before.deleted:
        state = "is deleted already" if before.deleted else "is not deleted"
        raise InputError(f"`number` must be a trial that can be {status}; {number} {state}.")
    if status in ("finished", "crashed"):
        check_outcome(CRASHED if objective is None else objective, values, study.definition.constraints)
    if reason is None:
        reason = before.reason if status == before.status == "crashed" else ""
    with study.guarded():
        return records.correct(
            study.inner, number, status=status, objective=objective, constraints=values, reason=reason
        )


def _cleared(
    study: Study, number: int, seen: Mapping[str, Any], clear: Collection[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Constraint values without those that are taken back."""
    for name in clear:
        if name not in study.definition.constraint_names:
            known = ", ".join(study.definition.constraint_names) or "none"
            raise InputError(f"`clear` must name constraints of the study; got {name!r}, it has: {known}.")
        if name in given:
            raise InputError(f"`{name}` must be either cleared or given a value; got both.")
        if name not in seen:
            raise InputError(f"`clear` must name constraints with a value; got {name!r}, trial {number} has none.")
    return {name: value for name, value in seen.items() if name not in clear}


def history(study: Study, number: int) -> list[dict[str, Any]]:
    """Every correction of a trial, oldest first."""
    study.trial(number)
    with study.guarded():
        return records.corrections(study.inner).get(number, [])


def _running(study: Study, number: int, complete: bool = True) -> optuna.Trial:
    """The trial, if it is running and, unless `complete` is off, has all its params."""
    found = study.trial(number)
    if found.state.is_finished():
        raise InputError(
            f"`number` must be a trial under way; got {number}, which is finished. "
            f"Change it with `crashbo correct {number}`."
        )
    missing = [name for name in study.definition.space if name not in found.params]
    if found.state != TrialState.RUNNING or (complete and missing):
        raise InputError(f"`number` must be a trial under way; got {number}, which has no params yet.")
    with study.guarded():
        return live_trial(study.inner, found)


def _finish(study: Study, trial: optuna.Trial, state: TrialState, value: float | None = None) -> None:
    try:
        study.inner.tell(trial, value, state=state)
    except ValueError as error:  # all else has been checked
        raise StudyError(f"Trial {trial.number} has been finished by another process meanwhile.") from error
