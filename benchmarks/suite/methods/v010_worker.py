"""Serve an installed CrashBO over pipes: one JSON object per line in, one out. Run by `v010_.py` in its environment.

A script of its own that imports nothing of the suite: the suite's CrashBO is another version.
"""

import json
import os
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import crashbo
from crashbo import CRASHED, Optimizer, Space

if not Path(crashbo.__file__).resolve().is_relative_to(Path(sys.prefix).resolve()):
    raise ImportError(f"crashbo must come from this environment, {sys.prefix}; got {crashbo.__file__}.")


def start(runs: dict[int, Optimizer], request: dict[str, Any]) -> dict[str, Any]:
    """Make an optimizer with default options."""
    runs[request["run"]] = Optimizer(Space.from_json(request["space"]), seed=request["seed"])
    return {"file": crashbo.__file__, "version": crashbo.__version__}


def ask(runs: dict[int, Optimizer], request: dict[str, Any]) -> dict[str, Any]:
    """Return a suggestion and the time it took, on the clock and of the processor."""
    begin, cpu = time.perf_counter(), time.process_time()
    suggestion = runs[request["run"]].ask()
    times = [time.perf_counter() - begin, time.process_time() - cpu]
    return {"params": dict(suggestion), "success_probability": suggestion.why.success_probability, "times": times}


def tell(runs: dict[int, Optimizer], request: dict[str, Any]) -> dict[str, Any]:
    """Learn a cost, or a crash if it is null."""
    cost = request["cost"]
    runs[request["run"]].tell(request["params"], CRASHED if cost is None else cost)
    return {}


def drop(runs: dict[int, Optimizer], request: dict[str, Any]) -> dict[str, Any]:
    """Forget a run."""
    runs.pop(request["run"], None)
    return {}


def main() -> None:
    """Answer until the other side is gone."""
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not get between the replies
    runs: dict[int, Optimizer] = {}
    actions = {"start": start, "ask": ask, "tell": tell, "drop": drop}
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = actions[request["action"]](runs, request)
        except Exception:
            reply = {"error": traceback.format_exc()}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
