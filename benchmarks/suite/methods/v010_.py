"""CrashBO 0.1.0, from its wheel in an environment of its own (`make v010`)."""

import atexit
import itertools
import json
import subprocess
import weakref
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.suite.problem import Problem
from crashbo.errors import InputError

VERSION = "0.1.0"
PYTHON = Path(__file__).parents[3] / ".venv-v010" / "bin" / "python"
_numbers = itertools.count()


class V010:
    """`crashbo.Optimizer` of version 0.1.0 with its defaults, in a worker process that all runs here share.

    Times of a suggestion are measured in the worker.
    """

    workers, own_start = 1, False

    def __init__(self, problem: Problem, seed: int) -> None:
        self.success_probability: float | None = None
        self.ask_times: tuple[float, float] | None = None
        self._worker, self._run = _worker(), next(_numbers)
        found = self._send("start", space=problem.space.to_json(), seed=seed)
        if found["version"] != VERSION:
            raise InputError(f"`.venv-v010` must hold crashbo {VERSION}; got {found['version']}. Run `make v010`.")
        weakref.finalize(self, _drop, self._worker, self._run)

    def ask(self) -> dict[str, Any]:
        reply = self._send("ask")
        self.success_probability, self.ask_times = reply["success_probability"], (reply["times"][0], reply["times"][1])
        return dict(reply["params"])

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._send("tell", params=dict(params), cost=cost)

    def _send(self, action: str, **more: Any) -> dict[str, Any]:
        return _request(self._worker, {"action": action, "run": self._run} | more)


def _worker() -> "subprocess.Popen[str]":
    """Return the worker of this process, a fresh one if the last one ended."""
    if _start_worker().poll() is not None:
        _start_worker.cache_clear()
    return _start_worker()


@cache
def _start_worker() -> "subprocess.Popen[str]":
    """Start a worker; isolated (-I), so that neither PYTHONPATH nor a folder adds another crashbo."""
    script = Path(__file__).with_name("v010_worker.py")
    worker = subprocess.Popen(
        [str(PYTHON), "-I", str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    atexit.register(_end_worker, worker)
    return worker


def _end_worker(worker: "subprocess.Popen[str]") -> None:
    """Close the pipes, at which the worker ends."""
    worker.communicate()


def _request(worker: "subprocess.Popen[str]", request: dict[str, Any]) -> dict[str, Any]:
    assert worker.stdin is not None
    assert worker.stdout is not None
    worker.stdin.write(json.dumps(request) + "\n")
    worker.stdin.flush()
    line = worker.stdout.readline()
    if not line:
        raise RuntimeError(f"the worker of crashbo {VERSION} ended with exit status {worker.wait()}")
    reply: dict[str, Any] = json.loads(line)
    if "error" in reply:
        raise RuntimeError(f"crashbo {VERSION} failed:\n{reply['error']}")
    return reply


def _drop(worker: "subprocess.Popen[str]", run: int) -> None:
    if worker.poll() is None:
        _request(worker, {"action": "drop", "run": run})
