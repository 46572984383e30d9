"""A study as the page shows it: a row for each trial, and what changed since the last look."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna import records
from crashbo.adapters.optuna.codec import SKIPPED, Record
from crashbo.adapters.optuna.correcting import first_recorded
from crashbo.adapters.optuna.internals import study_attributes
from crashbo.console.words import why
from crashbo.problem.outcome import labelled
from crashbo.problem.parameters import Categorical, Int, Parameter
from crashbo.store.definition import UNITS, Definition, marks_in
from crashbo.store.study import Study, as_defined, best_seen, counts
from crashbo.store.workers import WORKER

BY, EXPECTED = "crashbo:by", "crashbo:expected"  # user attributes of a trial
_ATTEMPTS = 5  # to read a study that others are writing to
_BELIEFS = ("why", "mode", "success_probability", "thresholds", "deviations")


@dataclass(frozen=True)
class Snapshot:
    """A study at one moment.

    Attributes:
        records: every trial, corrections applied, by number.
        rows: the same as JSON for the page.
        basis: a fingerprint of all that suggestions depend on.
        tally: how many trials are finished, crashed, pending and ignored, and how many failed.
    """

    records: tuple[Record, ...]
    rows: tuple[Mapping[str, Any], ...]
    basis: str
    tally: Mapping[str, int]


@dataclass
class Reader:
    """Reads a study again and again, and works only if something has changed.

    Attributes:
        study: to read, with the definition that it had then.
        key: of what was read last.
        last: the snapshot of it.
    """

    study: Study
    key: object = None
    last: Snapshot | None = field(default=None)

    def read(self) -> Snapshot:
        """Return the study as it is now; the same object as before if nothing has changed."""
        for _ in range(_ATTEMPTS):  # trials and attributes are read one after the other: both must be of one moment
            trials, attributes, key = _look(self.study)
            if self.last is not None and key == self.key:
                return self.last
            self.study = as_defined(self.study, attributes)
            found = self.study.records()
            if _look(self.study)[2] == key:
                break
        changes = records.corrections_in(attributes)
        known = {trial.number: trial for trial in trials}
        found = [record for record in found if record.number in known]
        rows = tuple(
            make_row(self.study.definition, record, known[record.number], changes.get(record.number, ()))
            for record in found
        )
        tally = counts(self.study.definition, found)
        self.last, self.key = Snapshot(tuple(found), rows, fingerprint(rows, attributes), tally), key
        return self.last


def _look(study: Study) -> tuple[list[FrozenTrial], dict[str, Any], object]:
    """Trials, the study's user attributes, and a key that changes with trials, corrections and the definition."""
    with study.guarded():
        trials = study.inner.get_trials(deepcopy=False)
        attributes = study_attributes(study.inner)
        said = marks_in(attributes), records.corrections_in(attributes)
    return trials, attributes, (tuple(_key(trial) for trial in trials), json.dumps(said, sort_keys=True))


def _key(trial: FrozenTrial) -> object:
    """Changes when a trial does: a finished one never does."""
    if trial.state.is_finished():
        return trial.number, trial.state
    return trial.number, trial.state, repr((trial.params, trial.user_attrs, trial.system_attrs))


def fingerprint(rows: Sequence[Mapping[str, Any]], attributes: Mapping[str, Any]) -> str:
    """A short text that differs whenever a suggestion might: by trials, or by what the study's attributes define."""
    keys = ("number", "status", "params", "objective", "constraints", "reason")
    definition = {name: value for name, value in marks_in(attributes).items() if name != UNITS}
    text = json.dumps([definition, *([row[key] for key in keys] for row in rows)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def make_row(
    definition: Definition, record: Record, trial: FrozenTrial, changes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """One trial as JSON for the page."""
    marks = trial.user_attrs
    beliefs = {key: marks[f"crashbo:{key}"] for key in _BELIEFS if f"crashbo:{key}" in marks}
    return {
        "number": record.number,
        "status": status_of(record, trial),
        "params": {name: record.params[name] for name in definition.space if name in record.params},
        "objective": record.objective,
        "constraints": dict(sorted(labelled(record.constraints).items())),
        "reason": str(marks[SKIPPED]) if record.skipped else record.reason,
        "by": _by(marks),
        "started": _time(trial.datetime_start),
        "ended": _time(trial.datetime_complete),
        "expected": marks.get(EXPECTED),
        "history": _history(trial, changes),
        "version": len(changes),
        "why": why(beliefs),
        "success_probability": beliefs.get("success_probability"),
        "thresholds": beliefs.get("thresholds") or {},
        "deviations": beliefs.get("deviations") or {},
        "failed": record.failed_under(definition.constraints),
    }


def status_of(record: Record, trial: FrozenTrial) -> str:
    """A word for what became of a trial.

    One of "finished", "crashed", "pending", "starting", "transient", "deleted", "skipped", "pruned", "waiting" and
    "ignored"; docs/glossary.md says what they mean.
    """
    if trial.state == TrialState.WAITING:
        return "waiting"
    if trial.state == TrialState.RUNNING:
        return "pending" if record.status == "pending" and trial.params else "starting"
    return record.word


def _by(marks: Mapping[str, Any]) -> str:
    """Who has a trial: a person's name, or the host of a program."""
    worker = marks.get(WORKER) or {}
    program = f"a program on {str(worker.get('host', '?')).split()[0]}" if worker.get("kind") == "run" else ""
    return str(marks.get(BY) or program)


def _time(moment: Any) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat(timespec="seconds")


def _history(trial: FrozenTrial, changes: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What was recorded first, and every correction; empty for a trial that was never corrected."""
    return [first_recorded(trial), *(dict(one) for one in changes)] if changes else []


# --- the study itself ------------------------------------------------------------------------------


def describe(study: Study) -> dict[str, Any]:
    """What a study is about, as JSON for the page."""
    definition = study.definition
    return {
        "study": study.place.study,
        "direction": definition.direction,
        "units": dict(definition.units),
        "parameters": [{"name": name, **_parameter(one)} for name, one in definition.space.items()],
        "constraints": [{"name": one.name, "threshold": one.threshold} for one in definition.constraints],
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    if isinstance(parameter, Categorical):
        return {"type": "choice", "choices": list(parameter.choices)}
    kind = "int" if isinstance(parameter, Int) else "float"
    bounds = {"low": parameter.low, "high": parameter.high, "log": parameter.log, "step": parameter.step}
    return {"type": kind, **bounds}


def best_trial(study: Study, snapshot: Snapshot) -> int | None:
    """The number of the best measured trial that broke no limit."""
    found = best_seen(study.definition, snapshot.records)
    return None if found is None else found.number


def find_row(rows: Sequence[Mapping[str, Any]], number: int) -> Mapping[str, Any] | None:
    """The row of a trial; None if there is none."""
    return next((row for row in rows if row["number"] == number), None)
