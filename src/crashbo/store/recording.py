"""Record what came of a trial: told, crashed, transient, corrected, deleted.

Each of these is one transaction (see `crashbo.adapters.optuna.transactions`) and carries a key: with the same key
the same thing is stored once, however often it is asked for.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import optuna
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna import records
from crashbo.adapters.optuna.codec import SKIPPED, TOLD_BY, Record, marks_of
from crashbo.adapters.optuna.correcting import Correction, amend
from crashbo.adapters.optuna.internals import stored_trial, study_id, trial_id
from crashbo.adapters.optuna.transactions import TOLD, TRANSIENT, Ending, new_key, writer
from crashbo.errors import InputError
from crashbo.problem.outcome import CRASHED, Outcome, check_outcome, labelled
from crashbo.store.storage import StudyError
from crashbo.store.study import Study


def tell(
    study: Study,
    number: int,
    objective: float,
    constraints: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    by: str = "",
) -> Outcome:
    """Record the cost of a trial that was asked for; one that is none is a crash, see `crashbo.problem.outcome`.

    Args:
        study: of the trial.
        number: of the trial.
        objective: its cost.
        constraints: value or `crashbo.VIOLATED` for every constraint of the study.
        key: of this result; the same one again changes nothing.
        by: who says so.

    Returns:
        What was recorded.

    Raises:
        InputError: and nothing is written.
    """
    outcome = check_outcome(objective, dict(constraints or {}), study.definition.constraints)
    return _record(study, number, outcome, key, by)


def crash(
    study: Study,
    number: int,
    reason: str = "",
    constraints: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    by: str = "",
) -> None:
    """Record that a trial crashed, with what was seen before."""
    outcome = check_outcome(CRASHED, dict(constraints or {}), study.definition.constraints, reason)
    _record(study, number, outcome, key, by)


def _record(study: Study, number: int, outcome: Outcome, key: str | None, by: str) -> Outcome:
    state = TrialState.FAIL if outcome.objective is None else TrialState.COMPLETE
    _finish(study, number, Ending(state, outcome.objective, _marks(outcome, by), key or new_key()))
    return outcome


def transient(study: Study, number: int, reason: str = "", *, key: str | None = None, by: str = "") -> None:
    """Record that a trial failed for a reason that teaches nothing: its params are offered again."""
    marks = {TRANSIENT: check_text("reason", reason)} | _author(by)
    _finish(study, number, Ending(TrialState.FAIL, None, marks, key or new_key()), complete=False)


def skip(study: Study, number: int, reason: str = "", *, key: str | None = None, by: str = "") -> None:
    """Record that nobody will run a trial that was suggested: nothing is learned, and it is not suggested again."""
    marks = {SKIPPED: check_text("reason", reason) or "skipped"} | _author(by)
    _finish(study, number, Ending(TrialState.PRUNED, None, marks, key or new_key()), complete=False)


def enqueue(study: Study, params: Mapping[str, Any], *, key: str | None = None) -> int:
    """Put a point into the queue: it is suggested before anything else. Returns the number of its trial."""
    study.check_askable()
    point = study.definition.space.validate(params)
    if study.definition.space.broken(point):
        broken = study.definition.space.broken(point)[0]
        raise InputError(f"`params` must satisfy the study's parameter constraints; {point} breaks {broken!r}.")
    given = study.translation.outward(point)
    waiting = optuna.trial.create_trial(state=TrialState.WAITING, system_attrs={"fixed_params": given})
    return store(study, waiting, key)


def check_text(name: str, text: str) -> str:
    """Return a text that a database can hold.

    Raises:
        InputError: if it has bytes that are no characters.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"`{name}` must be a text; got bytes that are no characters, {text!r}.") from error
    return text


def _marks(outcome: Outcome, by: str) -> dict[str, Any]:
    """An outcome, and who says so, as they stand on a trial."""
    check_text("reason", outcome.reason)
    return marks_of(outcome) | _author(by)


def _author(by: str) -> dict[str, Any]:
    return {TOLD_BY: check_text("by", by)} if by else {}


def add(
    study: Study,
    params: Mapping[str, Any],
    objective: float | None,
    constraints: Mapping[str, Any] | None = None,
    reason: str = "",
    *,
    key: str | None = None,
    by: str = "",
) -> int:
    """Record a trial that was never asked for, in one step.

    Args:
        study: to add to.
        params: what was tried.
        objective: its cost, None if it crashed.
        constraints: value or `crashbo.VIOLATED`; all of them unless it crashed.
        reason: of a crash.
        key: of this trial; the same one again makes no other.
        by: who says so.

    Returns:
        The number of the new trial.
    """
    return store(study, make_trial(study, params, objective, constraints, reason, by), key)


def store(study: Study, trial: FrozenTrial, key: str | None = None) -> int:
    """Store a whole trial in one step and return its number; with a key that is there already, that of its trial.

    Raises:
        InputError: if the key was used for other params.
    """
    with study.guarded():
        made = writer(study.inner).create(study_id(study.inner), trial, key or new_key())
        found = stored_trial(study.inner, made)
    if key is not None and found.params != trial.params:
        raise InputError(f"`key` must be used for one trial only; trial {found.number} has it and other params.")
    return found.number


def store_all(study: Study, trials: Sequence[FrozenTrial]) -> list[int]:
    """Store whole trials, on a database all at once or not at all, and return their numbers."""
    with study.guarded():
        return writer(study.inner).create_all(study_id(study.inner), trials, new_key())


def make_trial(
    study: Study,
    params: Mapping[str, Any],
    objective: float | None,
    constraints: Mapping[str, Any] | None = None,
    reason: str = "",
    by: str = "",
) -> FrozenTrial:
    """Check a whole trial and return it, ready to be stored."""
    study.check_askable()
    checked = study.definition.space.validate(params)
    said = CRASHED if objective is None else objective
    outcome = check_outcome(said, dict(constraints or {}), study.definition.constraints, reason)
    state = TrialState.FAIL if outcome.objective is None else TrialState.COMPLETE
    translation = study.translation
    return optuna.trial.create_trial(
        state=state,
        value=outcome.objective,
        params=translation.outward(checked),
        distributions={name: translation.distributions[name] for name in checked},
        user_attrs=_marks(outcome, by),
    )


def correct(
    study: Study,
    number: int,
    *,
    status: str | None,
    objective: float | None = None,
    constraints: Mapping[str, Any] | None = None,
    clear: Collection[str] = (),
    reason: str | None = None,
    key: str | None = None,
    version: int | None = None,
    by: str = "",
) -> Record:
    """Correct a finished trial; what was recorded before is kept. See `correcting.correct` for the statuses.

    Args:
        study: of the trial.
        number: of the trial.
        status: what it is to be; None: as it is, with its cost.
        objective: its cost, for "finished" only.
        constraints: those that are not given stay as they were.
        clear: constraints whose values are taken back: they were never seen. Only a crashed trial may lack one.
        reason: in words; None: that of a crash which stays one is kept.
        key: of this correction; the same one again changes nothing.
        version: how many corrections whoever makes this one has seen; None: it does not matter.
        by: who says so.

    Raises:
        OutdatedError: if the trial has been corrected meanwhile; nothing is written.
        InputError: and nothing is written.
    """
    if not study.trial(number).state.is_finished():
        raise InputError(f"`number` must be a finished trial; got {number}, which is not. Use `tell` or `crash`.")
    said, given = check_text("by", by), dict(constraints or {})

    def make(before: Record) -> Correction:
        values = _corrected_values(study, number, before, clear, given)
        become = _kept_status(number, before) if status is None else status
        cost = before.objective if status is None else objective
        _check_deletion(number, become, before)
        if become in ("finished", "crashed"):
            check_outcome(CRASHED if cost is None else cost, values, study.definition.constraints)
        kept = before.reason if become == before.status and (status is None or become == "crashed") else ""
        words = kept if reason is None else check_text("reason", reason)
        return Correction(become, cost, values, words, said)

    with study.guarded():
        return amend(study.inner, number, make, key=key, version=version)


def _kept_status(number: int, before: Record) -> str:
    """The status of a trial whose outcome stays, but for its constraints."""
    if before.status not in ("finished", "crashed"):
        raise InputError(
            f"`number` must be a finished or crashed trial to correct its constraints alone; {number} is {before.word}."
        )
    return before.status


def _corrected_values(
    study: Study, number: int, before: Record, clear: Collection[str], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Constraint values after a correction."""
    known = study.definition.constraint_names
    values = {name: value for name, value in labelled(before.constraints).items() if name in known}
    return _cleared(study, number, values, clear, given) | dict(given)


def _check_deletion(number: int, status: str, before: Record) -> None:
    if status in ("deleted", "restored") and (status == "deleted") == before.deleted:
        state = "is deleted already" if before.deleted else "is not deleted"
        raise InputError(f"`number` must be a trial that can be {status}; {number} {state}.")


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


def _finish(study: Study, number: int, ending: Ending, *, complete: bool = True) -> None:
    """End a trial that is under way, in one transaction.

    Args:
        study: of the trial.
        number: of the trial.
        ending: what to write.
        complete: whether it must have all its params.

    Raises:
        InputError: if it is not under way.
        StudyError: if another process was faster.
    """
    found = _under_way(study, number, ending, complete)
    if found is None:
        return
    with study.guarded():
        if not writer(study.inner).finish(trial_id(found), ending):
            raise StudyError(f"Trial {number} has been finished by another process meanwhile.")


def _under_way(study: Study, number: int, ending: Ending, complete: bool) -> FrozenTrial | None:
    """The trial if it can be ended; None if this very ending is stored already."""
    found = study.trial(number)
    if found.state.is_finished():
        if found.user_attrs.get(TOLD) == ending.key:
            _check_same(found, ending)
            return None
        raise InputError(
            f"`number` must be a trial under way; got {number}, which is finished. "
            f"Change it with `crashbo correct {number}`."
        )
    known = {*found.params, *study.definition.defaults}
    missing = [] if not found.params else [name for name in study.definition.space if name not in known]
    if found.state != TrialState.RUNNING or (complete and (missing or not found.params)):
        raise InputError(f"`number` must be a trial under way; got {number}, which has no params yet.")
    return found


def _check_same(found: FrozenTrial, ending: Ending) -> None:
    """Refuse a key that was used for another result of the same trial."""
    stored = (found.state, found.value, {name: found.user_attrs.get(name) for name in ending.marks})
    if stored != (ending.state, ending.value, dict(ending.marks)):
        raise InputError(f"`key` must be used for one result only; trial {found.number} has another one with it.")
