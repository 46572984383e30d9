"""Trials from and to files: CSV for spreadsheets, JSON with everything."""

import csv
import io
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from crashbo.errors import InputError
from crashbo.integrations.optuna.records import Record, corrections, first_recorded
from crashbo.integrations.optuna.transactions import CONSTRAINT, CRASH
from crashbo.studies import recording
from crashbo.studies.files import to_file
from crashbo.studies.study import Study
from crashbo.studies.values import parse_constraints, parse_params, parse_value, show

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_OTHERS = ("number", "status", "objective", "reason")
_STATUSES = ("", "finished", "crashed")
_WITHOUT_OUTCOME = ("pending", "ignored", "transient", "deleted", "skipped")


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes:
        numbers: of the trials that were added.
        known: rows that the study has already.
        skipped: rows without an outcome.
    """

    numbers: tuple[int, ...]
    known: int
    skipped: int


def import_csv(study: Study, path: Path, *, again: bool = False) -> Imported:
    """Add the trials of a CSV file: a column for each parameter, `objective`, and one for each constraint.

    An empty objective is a crash; `status` and `reason` columns are understood, `number` is ignored. The file is
    checked as a whole before anything is written. Rows that the study has already are left out, so that a
    second import adds only what is new.

    Args:
        study: to add to.
        path: of the file.
        again: add rows that the study has already too.

    Raises:
        InputError: that names the line; then nothing is written.
    """
    rows = _read_rows(study, path)
    trials = [(line, _trial(study, line, row)) for line, row in rows if row.get("status", "") not in _WITHOUT_OUTCOME]
    there = Counter() if again else Counter(_key(_of_record(one)) for one in study.records() if one.status in _STATUSES)
    numbers, known = [], 0
    for _, trial in trials:
        key = _key(_of_trial(trial))
        if there[key]:
            there[key] -= 1
            known += 1
            continue
        with study.guarded():
            numbers.append(recording.store(study, trial))
    return Imported(tuple(numbers), known, len(rows) - len(trials))


def _read_rows(study: Study, path: Path) -> list[tuple[int, dict[str, str]]]:
    """Lines of a file with their numbers, after a check of its head."""
    if not path.is_file():
        raise InputError(f"`file` must be a CSV file; got {path}, which does not exist.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`file` must be a text file in UTF-8; {path} is not.") from error
    reader = csv.reader(io.StringIO(text, newline=""))
    lines = [(reader.line_num, [_as_it_was(cell).strip() for cell in line]) for line in reader]
    if not lines:
        raise InputError(f"`file` must have a line of names first; {path} is empty.")
    head = lines[0][1]
    _check_head(study, path, head)
    wrong = [line for line, cells in lines if any(cells) and len(cells) != len(head)]
    if wrong:
        raise InputError(f"`file` must have {len(head)} columns; line {wrong[0]} of {path} has not.")
    return [(line, dict(zip(head, cells, strict=True))) for line, cells in lines[1:] if any(cells)]


def _check_head(study: Study, path: Path, head: list[str]) -> None:
    definition = study.definition
    known = {*definition.space, *definition.constraint_names, *_OTHERS}
    missing = [name for name in (*definition.space, "objective") if name not in head]
    unknown = [name for name in head if name not in known]
    twice = [name for name in head if head.count(name) > 1]
    if missing or unknown or twice:
        what = f"lacks {missing}" if missing else f"has {unknown} besides" if unknown else f"has {twice[0]!r} twice"
        names = ", ".join([*definition.space, "objective", *definition.constraint_names])
        raise InputError(f"`file` must have the columns {names}, once each; {path} {what}.")


def _trial(study: Study, line: int, row: Mapping[str, str]) -> FrozenTrial:
    """Check one row as a whole."""
    definition = study.definition
    try:
        status = row.get("status", "")
        if status not in _STATUSES:
            raise InputError(f"`status` must be one of {[*_STATUSES[1:], *_WITHOUT_OUTCOME]} or empty; got {status!r}.")
        if (status == "finished" and not row["objective"]) or (status == "crashed" and row["objective"]):
            raise InputError(f"`objective` must be there if finished, and empty if crashed; got {row['objective']!r}.")
        params = parse_params(definition, {name: row[name] for name in definition.space})
        seen = {name: row[name] for name in definition.constraint_names if row.get(name)}
        cost = parse_value("objective", row["objective"]) if row["objective"] else None
        constraints = parse_constraints(definition, seen)
        return recording.make_trial(study, params, cost, constraints, row.get("reason", ""))
    except InputError as error:
        raise InputError(f"Line {line}: {error} Nothing was imported.") from error


def _of_record(record: Record) -> tuple[Mapping[str, Any], float | None, Mapping[str, Any], str]:
    return record.params, record.objective, record.constraints, record.reason if record.status == "crashed" else ""


def _of_trial(trial: FrozenTrial) -> tuple[Mapping[str, Any], float | None, Mapping[str, Any], str]:
    marks = {key: value for key, value in trial.user_attrs.items() if key.startswith(CONSTRAINT)}
    seen = {key.removeprefix(CONSTRAINT): None if value == "violated" else value for key, value in marks.items()}
    cost = trial.value if trial.state == TrialState.COMPLETE else None
    return trial.params, cost, seen, trial.user_attrs.get(CRASH, "")


def _key(parts: tuple[Mapping[str, Any], float | None, Mapping[str, Any], str]) -> Hashable:
    """What makes two trials the same: params and outcome."""
    params, cost, seen, reason = parts
    return _sorted(params.items()), cost, _sorted(seen.items()), reason


def _sorted(pairs: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in pairs))


def columns(study: Study) -> list[str]:
    """The head of an exported CSV file."""
    return ["number", "status", *study.definition.space, "objective", *study.definition.constraint_names, "reason"]


def export_csv(study: Study, *, raw: bool = False) -> str:
    """Return all trials as CSV, which `import_csv` reads back; corrections are applied.

    Args:
        study: to export.
        raw: leave texts as they are; else a ' goes before those that a spreadsheet would take for a formula.
    """
    text = io.StringIO()
    writer = csv.DictWriter(text, columns(study), lineterminator="\n")
    writer.writeheader()
    for record in study.records():
        row: dict[str, Any] = {"number": record.number, "status": record.word, "reason": record.reason}
        row |= {name: show(record.params[name]) for name in study.definition.space if name in record.params}
        row["objective"] = "" if record.objective is None else repr(record.objective)
        row |= {
            name: "violated" if value is None else repr(value)
            for name, value in record.constraints.items()
            if name in study.definition.constraint_names
        }
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


def _as_it_was(cell: str) -> str:
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
        "trials": [
            trial_json(study, record, trials[record.number], changes.get(record.number, [])) for record in found
        ],
    }


def trial_json(
    study: Study, record: Record, trial: FrozenTrial, changes: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return one trial as plain JSON."""
    beliefs = ("why", "mode", "success_probability", "thresholds", "deviations", "relation")
    found = {key: trial.user_attrs.get(f"crashbo:{key}") for key in beliefs}
    order = [name for name in study.definition.space if name in record.params]
    return {
        "number": record.number,
        "status": record.status,
        "params": {name: record.params[name] for name in order},
        "objective": record.objective,
        "constraints": {
            name: "violated" if value is None else value for name, value in sorted(record.constraints.items())
        },
        "reason": record.reason,
        "transient": record.transient,
        "deleted": record.deleted,
        "skipped": record.skipped,
        "retry_of": record.retry_of,
        **{key: value for key, value in found.items() if value is not None},
        **({"recorded_first": first_recorded(trial)} if changes else {}),
        "corrections": [{key: value for key, value in one.items() if key != "key"} for one in changes],
    }
