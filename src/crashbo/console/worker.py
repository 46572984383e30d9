"""The process that computes: reads requests as JSON lines from its input, writes what it finds as JSON lines.

It only reads the study. It ends when its input does, so it never outlives the console.
"""

import json
import math
import os
import queue
import sys
import threading
from collections.abc import Iterator
from typing import Any, TextIO

from crashbo.errors import CrashBOError


def main() -> None:
    """Serve the console that started this process."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints goes to the terminal, not into the protocol
    inbox: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
    first = sys.stdin.readline()
    if not first:
        return
    threading.Thread(target=_listen, args=(sys.stdin, inbox), daemon=True).start()
    serve(_thinker(json.loads(first)), inbox, out)


def _listen(source: TextIO, inbox: "queue.SimpleQueue[dict[str, Any]]") -> None:
    for line in source:
        inbox.put(json.loads(line))
    os._exit(0)  # the console is gone, and so is the need to finish


def _thinker(place: dict[str, str]) -> Any:
    from crashbo.console.snapshot import Reader
    from crashbo.console.thinking import Thinker
    from crashbo.store.storage import Place
    from crashbo.store.study import open_study

    study = open_study(Place(place["url"], place["study"]))
    return Thinker(study, Reader(study))


def serve(thinker: Any, inbox: "queue.SimpleQueue[dict[str, Any]]", out: TextIO) -> None:
    """Answer for ever: questions first, between the steps of a look; a new look replaces an old one after its offer."""
    looking: Iterator[dict[str, Any]] | None = None
    wanted = False
    while True:
        while not inbox.empty() or (looking is None and not wanted):
            task = inbox.get()
            if task["kind"] == "stop":
                return
            if task["kind"] == "look":
                wanted = True
            else:
                _send(out, {"kind": "answer", "id": task["id"], **_answer(thinker, task)})
        if looking is None:
            looking, wanted = thinker.look(), False
        said = _step(looking)
        if said is not None:
            _send(out, said)
        if said is None or said["kind"] == "failed" or (wanted and said["kind"] not in ("model",)):
            looking = None


def _step(looking: Iterator[dict[str, Any]]) -> dict[str, Any] | None:
    try:
        return next(looking, None)
    except Exception as error:  # whatever it is, results must still be recorded
        return {"kind": "failed", "problem": _words(error)}


def _answer(thinker: Any, task: dict[str, Any]) -> dict[str, Any]:
    try:
        if task["kind"] == "predict":
            return {"result": thinker.predict(task["params"])}
        return {"result": thinker.picture(task["x"], task["y"], task["at"], acquisition=task["acquisition"])}
    except Exception as error:
        return {"problem": _words(error)}


def _words(error: Exception) -> str:
    """One line for people."""
    text = " ".join(str(error).split())
    return text if isinstance(error, CrashBOError) else f"The model failed ({type(error).__name__}: {text[:300]})."


def _send(out: TextIO, data: dict[str, Any]) -> None:
    out.write(json.dumps(_finite(data)) + "\n")
    out.flush()


def _finite(data: Any) -> Any:
    """The same with null for NaN and infinity, which JSON lacks."""
    if isinstance(data, dict):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


if __name__ == "__main__":
    main()
