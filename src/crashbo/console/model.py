"""The console's end of the computing process: starts it, asks it, and starts it again if it dies."""

import contextlib
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from typing import Any, Protocol

from crashbo.errors import CrashBOError
from crashbo.store.storage import Place

_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds before a process that died is started again


class ModelError(CrashBOError, RuntimeError):
    """The model cannot answer; the message says why."""


class Model(Protocol):
    """What computes: a process, or something simpler in a test."""

    def start(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """Begin; `tell` is called from another thread with everything found."""

    def look(self) -> None:
        """Ask for a new look at the study; returns at once."""

    def ask(self, kind: str, **details: Any) -> "Future[dict[str, Any]]":
        """Ask a question; returns at once."""

    def stop(self) -> None:
        """End."""


class ModelProcess:
    """Computes in a process of its own, so that neither pages nor writes ever wait for it."""

    def __init__(self, place: Place, command: list[str] | None = None) -> None:
        self._place = place
        self._command = command or [sys.executable, "-m", "crashbo.console.worker"]
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._asked = 0
        self._pause = _FIRST_PAUSE
        self._stopped = threading.Event()
        self._tell: Callable[[dict[str, Any]], None] = lambda said: None

    def start(self, tell: Callable[[dict[str, Any]], None]) -> None:
        """Start the process; everything it finds goes to `tell`."""
        self._tell = tell
        threading.Thread(target=self._run, name="crashbo-model", daemon=True).start()

    def look(self) -> None:
        """Ask for a new look at the study."""
        self._send({"kind": "look"})

    def ask(self, kind: str, **details: Any) -> "Future[dict[str, Any]]":
        """Ask a question; the future fails with a ModelError if there is no answer."""
        future: Future[dict[str, Any]] = Future()
        with self._lock:
            self._asked += 1
            number = self._asked
            self._waiting[number] = future
        if not self._send({"kind": kind, "id": number, **details}):
            self._resolve(number, {"problem": "The model is being started. Try again in a moment."})
        return future

    def stop(self) -> None:
        """End the process."""
        self._stopped.set()
        with self._lock:
            process = self._process
        if process is not None:
            process.kill()
            process.wait(timeout=10)

    # --- the process -----------------------------------------------------------------------------

    def _run(self) -> None:
        """Keep a process going until told to stop."""
        while not self._stopped.is_set():
            began = time.monotonic()
            self._serve()
            if self._stopped.is_set():
                return
            self._fail_all()
            if time.monotonic() - began > _LONGEST_PAUSE:
                self._pause = _FIRST_PAUSE
            self._tell({"kind": "failed", "problem": "The computing process ended unexpectedly; it is started again."})
            self._stopped.wait(self._pause)
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)

    def _serve(self) -> None:
        """Start a process and pass on what it says until it ends."""
        process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, encoding="utf-8"
        )
        place = {"url": self._place.url, "study": self._place.study}  # not an argument: it may hold a password
        with contextlib.suppress(OSError):
            _write(process, place, {"kind": "look"})
        with self._lock:
            self._process = process
        if self._stopped.is_set():
            process.kill()
        with contextlib.suppress(OSError), process:
            for line in process.stdout or ():
                with contextlib.suppress(json.JSONDecodeError):
                    self._hear(json.loads(line))
        with self._lock:
            self._process = None

    def _hear(self, said: dict[str, Any]) -> None:
        if said.get("kind") == "answer":
            self._resolve(said["id"], said)
        else:
            self._tell(said)

    def _send(self, data: dict[str, Any]) -> bool:
        with self._lock:
            if self._process is None:
                return False
            try:
                _write(self._process, data)
            except OSError:  # it has died; whoever reads its output finds out
                return False
        return True

    def _resolve(self, number: int, said: dict[str, Any]) -> None:
        with self._lock:
            future = self._waiting.pop(number, None)
        if future is None:
            return
        with contextlib.suppress(InvalidStateError):  # whoever asked has gone
            if "result" in said:
                future.set_result(said["result"])
            else:
                future.set_exception(ModelError(str(said.get("problem", "The model has no answer."))))

    def _fail_all(self) -> None:
        for number in list(self._waiting):
            self._resolve(number, {"problem": "The computing process ended unexpectedly. Try again in a moment."})


def _write(process: "subprocess.Popen[str]", *messages: dict[str, Any]) -> None:
    if process.stdin is not None:
        process.stdin.write("".join(json.dumps(one) + "\n" for one in messages))
        process.stdin.flush()
