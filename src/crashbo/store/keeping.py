"""Results of programs that cannot be stored at once, kept in files beside the study.

The room for a result is taken before its program starts, by a file of its final size: so the result can be written down
even on a disk that has become full meanwhile. The file goes when the result is in the study. What a run leaves behind
that was killed before, the next one stores.
"""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashbo.problem.durable import sync_folder
from crashbo.problem.outcome import labelled
from crashbo.store.storage import Place
from crashbo.store.workers import is_gone

_SIZE = 4096  # bytes of a file
_REASON = 500  # characters of a reason that are kept


@dataclass(frozen=True)
class Result:
    """What came of a program.

    Attributes:
        number: of the trial.
        key: under which it is stored once.
        status: as of `programs.Ending`.
        objective: its cost, None unless finished.
        constraints: value or `crashbo.VIOLATED`.
        reason: in words.
    """

    number: int
    key: str
    status: str
    objective: float | None = None
    constraints: Mapping[str, Any] | None = None
    reason: str = ""


@dataclass(frozen=True)
class Room:
    """The file for the result of one trial.

    Attributes:
        number: of the trial.
        path: of the file; None if there was no room for it.
        owner: "worker" with its mark, "study" and "storage".
    """

    number: int
    path: Path | None
    owner: Mapping[str, Any]

    def keep(self, result: Result) -> bool:
        """Write a result down, on the disk; whether there was room."""
        if self.path is None:
            return False
        seen = labelled(result.constraints or {})
        data = {**self.owner, **vars(result), "constraints": seen, "reason": result.reason[:_REASON]}
        try:
            with self.path.open("r+b") as handle:
                handle.write(_padded(data))
                handle.flush()
                os.fsync(handle.fileno())
        except OSError:
            return False
        return True

    def discard(self) -> None:
        """Remove the file: the result is in the study, or there is none."""
        if self.path is None:
            return
        try:
            self.path.unlink(missing_ok=True)
            self.path.parent.rmdir()
        except OSError:
            return  # there are others


def folder_of(place: Place) -> Path:
    """Where results are kept: beside a file, or in the current folder for a server."""
    return place.file.with_name(f"{place.file.name}.results") if place.file else Path("crashbo.results")


def make_room(place: Place, number: int, worker: Mapping[str, Any]) -> Room:
    """Take the room for a result, before its program starts."""
    owner = {"study": place.study, "storage": str(place), "worker": dict(worker)}
    name = re.sub(r"\W", "_", place.study)[:50]
    path = folder_of(place) / f"{name}-{number}-{worker['token'][:8]}.json"
    try:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(_padded({**owner, "number": number}))
        sync_folder(path.parent)
    except OSError:
        return Room(number, None, owner)
    return Room(number, path, owner)


def _padded(data: Mapping[str, Any]) -> bytes:
    """A file of one size, whatever is in it."""
    return json.dumps(data).encode().ljust(_SIZE)


def left_behind(place: Place) -> list[tuple[Room, Result | None]]:
    """What workers of this study have kept that do not run on this machine any more; None for one without a result."""
    found = []
    for path in sorted(folder_of(place).glob("*.json")):
        data = _read(path)
        if data is None or (data.get("study"), data.get("storage")) != (place.study, str(place)):
            continue
        if is_gone(data["worker"]) is not False:
            owner = {name: data[name] for name in ("worker", "study", "storage")}
            found.append((Room(data["number"], path, owner), _result(data)))
    return found


def _read(path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None  # not ours, or being written
    if (
        not isinstance(data, dict)
        or not isinstance(data.get("worker"), dict)
        or not isinstance(data.get("number"), int)
    ):
        return None
    return data


def _result(data: Mapping[str, Any]) -> Result | None:
    if "status" not in data:
        return None
    seen = labelled(data["constraints"])
    kept = {name: data[name] for name in ("number", "key", "status", "objective", "reason")}
    return Result(constraints=seen, **kept)
