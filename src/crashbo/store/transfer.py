"""Trials to files: CSV for spreadsheets, JSON with everything."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.trial import FrozenTrial

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.correcting import first_recorded
from crashbo.adapters.optuna.records import corrections
from crashbo.problem.outcome import labelled
from crashbo.store.definition import EDITS, Definition
from crashbo.store.files import to_file
from crashbo.store.plain import extra_names
from crashbo.store.study import Study
from crashbo.store.values import show

RESERVED = ("number", "status", "objective", "reason")  # columns that every file has
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def column_names(definition: Definition, extra: Sequence[str] = ()) -> tuple[dict[str, str], dict[str, str]]:
    """What the columns of parameters and of constraints are called: by their names, unless those are taken.

    A parameter called `reason` has the column `param:reason`, a constraint called `status` has `constraint:status`.
    """
    taken = set(RESERVED)
    constraints = {name: _free(name, "constraint", taken) for name in definition.constraint_names}
    return {name: _free(name, "param", taken) for name in (*definition.space, *extra)}, constraints


def _free(name: str, kind: str, taken: set[str]) -> str:
    while name in taken:
        name = f"{kind}:{name}"
    taken.add(name)
    return name


def export_csv(study: Study, *, raw: bool = False) -> str:
    """Return all trials as CSV, which `crashbo import` reads back; corrections are applied.

    Args:
        study: to export.
        raw: leave texts as they are; else a ' goes before those that a spreadsheet would take for a formula.
    """
    found = study.records()
    params, constraints = column_names(study.definition, extra_names(found, study.definition))
    head = ["number", "status", *params.values(), "objective", *constraints.values(), "reason"]
    text = io.StringIO()
    writer = csv.DictWriter(text, head, lineterminator="\n")
    writer.writeheader()
    for record in found:
        row: dict[str, Any] = {"number": record.number, "status": record.word, "reason": record.reason}
        row |= {params[name]: show(value) for name, value in record.params.items()}
        row["objective"] = "" if record.objective is None else repr(record.objective)
        seen = {name: value for name, value in labelled(record.constraints).items() if name in constraints}
        row |= {constraints[name]: value if isinstance(value, str) else repr(value) for name, value in seen.items()}
        writer.writerow(row if raw else {name: _harmless(cell) for name, cell in row.items()})
    return text.getvalue()


def _harmless(cell: Any) -> Any:
    """A cell that a spreadsheet does not carry out."""
    if not isinstance(cell, str) or not cell.lstrip(" \n").startswith((*_FORMULA, "'")):
        return cell
    try:
        float(cell)
    except ValueError:
        return f"'{cell}"
    return cell


def as_it_was(cell: str) -> str:
    """A cell without the ' that `_harmless` put before it."""
    return cell[1:] if cell.startswith("'") and _harmless(cell[1:]) == cell else cell


def export_json(study: Study) -> dict[str, Any]:
    """Return the whole study: definition, trials with beliefs, and every correction."""
    found = study.records()
    with study.guarded():
        trials = {trial.number: trial for trial in study.inner.get_trials(deepcopy=False)}
        changes = corrections(study.inner)
    return {
        "study": study.place.study,
        **to_file(study.definition),
        **({"edits": edits} if (edits := _edits(study)) else {}),
        "trials": [
            trial_json(study, record, trials[record.number], changes.get(record.number, [])) for record in found
        ],
    }


def _edits(study: Study) -> list[dict[str, Any]]:
    """Changes of the definition: when, what, and by whom."""
    with study.guarded():
        found = study.inner.user_attrs.get(EDITS, [])
    return [{name: one[name] for name in ("time", "changes", "by") if name in one} for one in found]


def trial_json(
    study: Study, record: Record, trial: FrozenTrial, changes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return one trial as plain JSON."""
    beliefs = ("why", "mode", "success_probability", "thresholds", "deviations", "relation")
    found = {key: trial.user_attrs.get(f"crashbo:{key}") for key in beliefs}
    order = [name for name in study.definition.space if name in record.params]
    order += [name for name in record.params if name not in study.definition.space]
    return {
        "number": record.number,
        "status": record.status,
        "params": {name: record.params[name] for name in order},
        "objective": record.objective,
        "constraints": dict(sorted(labelled(record.constraints).items())),
        "reason": record.reason,
        "transient": record.transient,
        "deleted": record.deleted,
        "skipped": record.skipped,
        "retry_of": record.retry_of,
        **{key: value for key, value in found.items() if value is not None},
        **({"recorded_first": first_recorded(trial)} if changes else {}),
        "corrections": [{key: value for key, value in one.items() if key != "key"} for one in changes],
    }
