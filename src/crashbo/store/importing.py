"""Trials from files: a CSV table, or the JSON that `crashbo export` writes."""

import csv
import io
import json
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial

from crashbo.adapters.optuna.codec import Record, read_one
from crashbo.errors import InputError
from crashbo.problem.outcome import labelled
from crashbo.store import recording
from crashbo.store.study import Study
from crashbo.store.transfer import RESERVED, as_it_was, column_names
from crashbo.store.values import parse_constraints, parse_outcome, parse_params

_STATUSES = ("", "finished", "crashed")
_WITHOUT_OUTCOME = ("pending", "ignored", "transient", "deleted", "skipped", "pruned")


@dataclass(frozen=True)
class Imported:
    """What an import did.

    Attributes:
        numbers: of the trials that were added.
        known: trials that the study has already.
        skipped: trials without an outcome.
        ignored: names of columns that are neither parameters nor constraints.
    """

    numbers: tuple[int, ...]
    known: int
    skipped: int
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Row:
    """One trial of a file, not checked yet.

    Attributes:
        where: in the file, for people.
        params: as texts (CSV) or values (JSON).
        objective: as text or value; an empty text or None where there is none.
        constraints: as texts or values.
        status: as in an export; empty if not said.
        reason: in words.
    """

    where: str
    params: Mapping[str, Any]
    objective: Any
    constraints: Mapping[str, Any]
    status: str
    reason: str


def import_file(study: Study, path: Path, *, again: bool = False) -> Imported:
    """Add the trials of a file: of a CSV table, or of the JSON that `crashbo export` writes.

    A table has a column for each parameter, `objective`, and one for each constraint; an objective that is empty, NaN
    or infinite is a crash. `status` and `reason` are understood, `number` and columns of other names are ignored. The
    file is checked as a whole before anything is written, and a database gets all of it or nothing. Trials that the
    study has already are left out, so that a second import adds only what is new.

    Args:
        study: to add to.
        path: of the file; JSON if it ends in .json.
        again: add trials that the study has already too.

    Raises:
        InputError: that names the line or trial; then nothing is written.
    """
    rows, ignored = (_json_rows if path.suffix == ".json" else _csv_rows)(study, path, _read(path))
    told = [row for row in rows if row.status not in _WITHOUT_OUTCOME]
    trials = [_trial(study, row) for row in told]
    there = Counter() if again else Counter(_key(_of_record(one)) for one in study.records() if one.status in _STATUSES)
    new = []
    for trial in trials:
        key = _key(_of_trial(study, trial))
        if there[key]:
            there[key] -= 1
        else:
            new.append(trial)
    numbers = recording.store_all(study, new)
    return Imported(tuple(numbers), len(trials) - len(new), len(rows) - len(trials), tuple(ignored))


def _read(path: Path) -> str:
    if not path.is_file():
        what = "which is a folder" if path.is_dir() else "which does not exist"
        raise InputError(f"`file` must be a CSV or JSON file; got {path}, {what}.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"`file` must be a text file in UTF-8; {path} is not.") from error


# --- a table -----------------------------------------------------------------------------------------


def _csv_rows(study: Study, path: Path, text: str) -> tuple[list[_Row], list[str]]:
    """Lines of a table, and the columns that say nothing, after a check of its head."""
    reader = csv.reader(io.StringIO(text, newline=""))
    lines = [(reader.line_num, [as_it_was(cell).strip() for cell in line]) for line in reader]
    if not lines:
        raise InputError(f"`file` must have a line of names first; {path} is empty.")
    head = lines[0][1]
    params, constraints = column_names(study.definition)
    _check_head(path, head, [*params.values(), "objective"], list(constraints.values()))
    wrong = [line for line, cells in lines if any(cells) and len(cells) != len(head)]
    if wrong:
        raise InputError(f"`file` must have {len(head)} columns; line {wrong[0]} of {path} has not.")
    found = [(line, dict(zip(head, cells, strict=True))) for line, cells in lines[1:] if any(cells)]
    rows = [
        _Row(
            f"Line {line}",
            {name: cells[column] for name, column in params.items()},
            cells["objective"],
            {name: cells[column] for name, column in constraints.items() if cells.get(column)},
            cells.get("status", ""),
            cells.get("reason", ""),
        )
        for line, cells in found
    ]
    return rows, [name for name in head if name not in {*params.values(), *constraints.values(), *RESERVED}]


def _check_head(path: Path, head: Sequence[str], needed: Sequence[str], others: Sequence[str]) -> None:
    missing = [name for name in needed if name not in head]
    twice = [name for name in (*needed, *others, *RESERVED) if head.count(name) > 1]
    if missing or twice:
        what = f"lacks {missing}" if missing else f"has {twice[0]!r} twice"
        names = ", ".join([*needed, *others])
        raise InputError(f"`file` must have the columns {names}, once each; {path} {what}.")


# --- an export ---------------------------------------------------------------------------------------


def _json_rows(study: Study, path: Path, text: str) -> tuple[list[_Row], list[str]]:
    """Trials of an export as JSON, and the names in them that say nothing."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(f"`file` must be JSON; line {error.lineno} of {path}: {error.msg}.") from error
    trials = data.get("trials") if isinstance(data, dict) else data
    if not isinstance(trials, list) or not all(isinstance(one, dict) for one in trials):
        raise InputError(f"`file` must be what `crashbo export FILE.json` writes; {path} has no list of trials.")
    definition, rows = study.definition, []
    ignored: dict[str, None] = {}
    for index, one in enumerate(trials):
        where = f"Trial {one.get('number', index)}"
        params, seen = one.get("params"), one.get("constraints") or {}
        if not isinstance(params, dict) or not isinstance(seen, dict) or "objective" not in one:
            raise InputError(f"{where}: `params` and `objective` must be there. Nothing was imported.")
        for names, known in ((params, definition.space), (seen, definition.constraint_names)):
            ignored |= {str(name): None for name in names if name not in known}
        rows.append(
            _Row(
                where,
                {name: params[name] for name in definition.space if name in params},
                one["objective"],
                {name: seen[name] for name in definition.constraint_names if name in seen},
                _status(one),
                str(one.get("reason") or ""),
            )
        )
    return rows, list(ignored)


def _status(trial: Mapping[str, Any]) -> str:
    words = [word for word in ("deleted", "skipped", "transient") if trial.get(word)]
    return words[0] if words else str(trial.get("status") or "")


# --- one trial -----------------------------------------------------------------------------------------


def _trial(study: Study, row: _Row) -> FrozenTrial:
    """Check one trial as a whole."""
    try:
        if row.status not in _STATUSES:
            allowed = [*_STATUSES[1:], *_WITHOUT_OUTCOME]
            raise InputError(f"`status` must be one of {allowed} or empty; got {row.status!r}.")
        empty = row.objective in ("", None)
        if (row.status == "finished" and empty) or (row.status == "crashed" and not empty):
            raise InputError(f"`objective` must be there if finished, and empty if crashed; got {row.objective!r}.")
        return recording.make_trial(study, _params(study, row), _cost(row), _constraints(study, row), row.reason)
    except InputError as error:
        raise InputError(f"{row.where}: {error} Nothing was imported.") from error


def _cost(row: _Row) -> Any:
    """The cost, not checked yet; None if there is none."""
    if row.objective in ("", None):
        return None
    text = isinstance(row.objective, str)
    return parse_outcome("objective", row.objective, "Leave it empty for a crash.") if text else row.objective


def _params(study: Study, row: _Row) -> Mapping[str, Any]:
    if all(isinstance(value, str) for value in row.params.values()):
        return parse_params(study.definition, row.params)
    return study.definition.space.validate(row.params)


def _constraints(study: Study, row: _Row) -> dict[str, Any]:
    texts = {name: value for name, value in row.constraints.items() if isinstance(value, str)}
    return {**labelled(row.constraints), **parse_constraints(study.definition, texts)}


# --- what the study has already ------------------------------------------------------------------------


def _of_record(record: Record) -> tuple[Mapping[str, Any], float | None, Mapping[str, Any], str]:
    return record.params, record.objective, record.constraints, record.reason if record.status == "crashed" else ""


def _of_trial(study: Study, trial: FrozenTrial) -> tuple[Mapping[str, Any], float | None, Mapping[str, Any], str]:
    params = {name: study.translation.shown(name, value) for name, value in trial.params.items()}
    return _of_record(replace(read_one(trial, ()), params=params))


def _key(parts: tuple[Mapping[str, Any], float | None, Mapping[str, Any], str]) -> Hashable:
    """What makes two trials the same: params and outcome."""
    params, cost, seen, reason = parts
    return _sorted(params.items()), cost, _sorted(seen.items()), reason


def _sorted(pairs: Iterable[tuple[str, Any]]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, repr(value)) for name, value in pairs))
