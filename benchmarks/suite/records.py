"""The results on disk: one tidy CSV, a row per trial, a run appended at once."""

import csv
import fcntl
import io
import math
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TypeAlias

from crashbo.errors import InputError

Key: TypeAlias = tuple[str, str, int]
"""Problem, method and seed of a run."""
FILE = "trials.csv"


@dataclass(frozen=True)
class Row:
    """One trial.

    Attributes:
        problem, method, seed: of the run.
        trial: its number, from 1, in the order trials end.
        crashed: whether there was no cost.
        value: its noise-free cost; None if it crashed, infinity if it would crash when repeated.
        best: the lowest value so far; infinity before the first.
        regret: best minus the problem's optimum.
        ask_seconds, ask_cpu_seconds: to suggest it, on the clock and of the processor; None for the shared design.
        success_probability: as the method predicted it; None if it does not.
    """

    problem: str
    method: str
    seed: int
    trial: int
    crashed: bool
    value: float | None
    best: float
    regret: float
    ask_seconds: float | None
    ask_cpu_seconds: float | None
    success_probability: float | None

    @property
    def key(self) -> Key:
        """The run it belongs to."""
        return self.problem, self.method, self.seed


COLUMNS = tuple(field.name for field in fields(Row))


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """Hold the folder, so that two runs do not write into it at a time.

    Raises:
        InputError: if another run writes there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"`out` must be a folder no other run writes to; got {folder}. Wait for it.") from error
        yield


def append_run(folder: Path, rows: Iterable[Row]) -> None:
    """Append a finished run in one write, and have it on disk before returning."""
    path = folder / FILE
    text = _text(rows, header=not path.exists())
    with path.open("a", newline="") as handle:
        handle.write(text)
        handle.flush()
        os.fsync(handle.fileno())


def read_rows(folder: Path) -> list[Row]:
    """Return all whole rows; a last line cut short by a kill is left out."""
    path = folder / FILE
    if not path.exists():
        return []
    with path.open(newline="") as handle:
        lines = [line for line in handle if line.endswith("\n")]
    found = csv.DictReader(lines)
    if lines and tuple(found.fieldnames or ()) != COLUMNS:
        raise InputError(f"`out` must hold results of this suite; {path} has the columns {found.fieldnames}.")
    return [_row(entry) for entry in found]


def drop_runs(folder: Path, keys: Collection[Key]) -> None:
    """Rewrite the file without some runs and without a line cut short, whole or not at all."""
    path = folder / FILE
    if not path.exists():
        return
    text = _text([row for row in read_rows(folder) if row.key not in keys], header=True)
    if text != path.read_text():
        draft = path.with_suffix(".draft")
        draft.write_text(text)
        draft.replace(path)


def count_trials(rows: Iterable[Row]) -> dict[Key, int]:
    """Return how many trials of each run there are; 0 if they are not numbered 1, 2, ... without a gap."""
    numbers: dict[Key, list[int]] = {}
    for row in rows:
        numbers.setdefault(row.key, []).append(row.trial)
    return {key: len(found) * (found == list(range(1, len(found) + 1))) for key, found in numbers.items()}


def _text(rows: Iterable[Row], *, header: bool) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    if header:
        writer.writeheader()
    for row in rows:
        writer.writerow({name: _cell(value) for name, value in asdict(row).items()})
    return buffer.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def _row(entry: dict[str, str]) -> Row:
    def number(name: str) -> float | None:
        return float(entry[name]) if entry[name] else None

    return Row(
        entry["problem"],
        entry["method"],
        int(entry["seed"]),
        int(entry["trial"]),
        entry["crashed"] == "1",
        number("value"),
        _or_infinity(number("best")),
        _or_infinity(number("regret")),
        number("ask_seconds"),
        number("ask_cpu_seconds"),
        number("success_probability"),
    )


def _or_infinity(value: float | None) -> float:
    return math.inf if value is None else value
