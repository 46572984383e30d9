"""Who works on a trial, and whether that process is still there.

A trial that `crashbo ask` or `crashbo run` makes carries the user attribute "crashbo:worker": the host, the process
and a count that a running worker raises every few seconds. A process of this host can be looked up; one of another
host is given up once its count has stood still for two minutes of our own clock. No clocks are compared.
"""

import os
import signal
import socket
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from crashbo.errors import CrashBOError
from crashbo.integrations.optuna.internals import set_user_attribute
from crashbo.integrations.optuna.records import SUGGESTION
from crashbo.studies import recording
from crashbo.studies.storage import StudyError
from crashbo.studies.study import Study

WORKER = "crashbo:worker"
BEAT_SECONDS = 15.0
_STILL_SECONDS = 120.0


def me(kind: str) -> dict[str, Any]:
    """Return the mark of this process: `kind` is "ask" for one that ends before its trial, "run" for one that stays."""
    return {"kind": kind, "host": _host(), "pid": os.getpid(), "started": _started(os.getpid()), "beat": 0}


def _host() -> str:
    """This machine, or this container on it: process numbers mean something only inside."""
    try:
        inside = os.readlink("/proc/self/ns/pid")
    except OSError:
        inside = ""
    return f"{socket.gethostname()} {inside}".strip()


def _started(pid: int) -> int | None:
    """When a process began, in the system's ticks; None if there is no telling."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return None


def _alive(pid: int, started: int | None) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return started is None or _started(pid) == started


def is_gone(worker: Mapping[str, Any]) -> bool | None:
    """Whether a worker has ended; None if it is on another host."""
    if worker.get("host") != _host():
        return None
    return not _alive(worker["pid"], worker["started"])


def has_suggestion(study: Study, trial: FrozenTrial) -> bool:
    """Whether it is known what a running trial tries."""
    return SUGGESTION in trial.system_attrs or has_params(study, trial)


def has_params(study: Study, trial: FrozenTrial) -> bool:
    return all(name in trial.params for name in study.definition.space)


def under_way(study: Study) -> list[FrozenTrial]:
    """All running trials."""
    with study.guarded():
        return study.inner.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


@dataclass
class Watch:
    """Finds trials whose worker is gone.

    Attributes:
        still_seconds: how long the count of a worker on another host may stand still.
        seen: by trial number, the last count and when it was first seen.
    """

    still_seconds: float = _STILL_SECONDS
    seen: dict[int, tuple[int, float]] = field(default_factory=dict)

    def lost(self, study: Study, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Those of the running trials whose worker is gone, and that nobody else will finish."""
        return [trial for trial in trials if self._is_lost(study, trial)]

    def _is_lost(self, study: Study, trial: FrozenTrial) -> bool:
        worker = trial.user_attrs.get(WORKER)
        if worker is None or (worker["kind"] == "ask" and has_params(study, trial)):
            return False  # someone has the params and will tell
        gone = is_gone(worker)
        return self._stands_still(trial.number, worker["beat"]) if gone is None else gone

    def _stands_still(self, number: int, beat: int) -> bool:
        now = time.monotonic()
        if self.seen.get(number, (None, now))[0] != beat:
            self.seen[number] = (beat, now)
        return now - self.seen[number][1] > self.still_seconds

    def release(self, study: Study, trials: Sequence[FrozenTrial] | None = None) -> list[int]:
        """Mark lost trials as transient, so that their params are offered again; end what they left running.

        Args:
            study: to look at.
            trials: that are running, if they have just been read.
        """
        released = []
        for trial in self.lost(study, under_way(study) if trials is None else trials):
            worker = trial.user_attrs[WORKER]
            if worker.get("child") and is_gone(worker):
                _end_child(worker["child"])
            try:
                recording.transient(study, trial.number, "its worker was lost")
            except CrashBOError:
                continue  # another process was faster
            released.append(trial.number)
        return released


def _end_child(child: Mapping[str, Any]) -> None:
    """Kill the program a lost worker left behind, if it is surely the same process."""
    if child["started"] is None or not _alive(child["pid"], child["started"]):
        return
    try:
        os.killpg(child["pid"], signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def child_mark(pid: int) -> dict[str, Any]:
    """Return the mark of a program that a worker started."""
    return {"pid": pid, "started": _started(pid)}


def put_mark(study: Study, number: int, worker: Mapping[str, Any]) -> None:
    """Write a worker's mark on its trial, unless the trial is finished."""
    try:
        trial = study.trial(number)
        with study.guarded():
            if not trial.state.is_finished():
                set_user_attribute(study.inner, trial, WORKER, dict(worker))
    except StudyError:
        return  # the next beat may get through
