"""Who works on a trial, and whether that process is still there.

A trial that `crashbo ask` or `crashbo run` makes carries the user attribute "crashbo:worker": the machine, the process
and a count that a running worker raises every few seconds. A machine is known by a number that its system draws at
every start, not by its name, which cloned robots share. A process of this machine can be looked up; one of another
is given up once its count has stood still for two minutes of our own clock. No clocks are compared.
"""

import functools
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.codec import SUGGESTION
from crashbo.adapters.optuna.internals import set_user_attribute
from crashbo.adapters.optuna.transactions import new_key
from crashbo.errors import CrashBOError
from crashbo.store import recording
from crashbo.store.patience import patience_of
from crashbo.store.storage import StudyError
from crashbo.store.study import Study

WORKER = "crashbo:worker"
TOKEN = "CRASHBO_WORKER"  # the variable by which the programs of a worker are known, whatever they start
BEAT_SECONDS = 15.0
_STILL_SECONDS = 120.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def worker_mark(kind: str) -> dict[str, Any]:
    """Return the mark of this process: `kind` is "ask" for one that ends before its trial, "run" for one that stays."""
    return {
        "kind": kind,
        "host": socket.gethostname(),
        "machine": this_machine(),
        "pid": os.getpid(),
        "started": _started(os.getpid()),
        "token": new_key(),
        "beat": 0,
    }


@functools.cache
def this_machine() -> str:
    """This machine since it was started, or this container on it: inside, process numbers mean something.

    Empty where the system does not tell: then only a count that stands still shows that a worker is gone.
    """
    try:
        return f"{_BOOT.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return _boot_of_a_mac() if sys.platform == "darwin" else ""


def _boot_of_a_mac() -> str:
    try:
        words = ["sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


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
    return not _is_zombie(pid) and (started is None or _started(pid) == started)


def _is_zombie(pid: int) -> bool:
    """Whether a process has ended, and only its parent has not taken notice yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in ("Z", "X")
    except (OSError, IndexError):
        return False


def is_gone(worker: Mapping[str, Any]) -> bool | None:
    """Whether a worker has ended; None if it is on another machine."""
    if not this_machine() or worker.get("machine") != this_machine():
        return None
    return not _alive(worker["pid"], worker["started"])


def has_suggestion(study: Study, trial: FrozenTrial) -> bool:
    """Whether it is known what a running trial tries."""
    return SUGGESTION in trial.system_attrs or has_params(study, trial)


def has_params(study: Study, trial: FrozenTrial) -> bool:
    known = {*trial.params, *study.definition.defaults} if trial.params else set()
    return all(name in known for name in study.definition.space)


def under_way(study: Study) -> list[FrozenTrial]:
    """All running trials."""
    with study.guarded():
        return study.inner.get_trials(deepcopy=False, states=(TrialState.RUNNING,))


@dataclass
class Watch:
    """Finds trials whose worker is gone.

    Attributes:
        still_seconds: how long the count of a worker on another machine may stand still.
        seen: by trial number, the last count and when it was first seen.
        outages: of the database that were known then: nobody could count while it was away.
    """

    still_seconds: float = _STILL_SECONDS
    seen: dict[int, tuple[int, float]] = field(default_factory=dict)
    outages: int = 0

    def lost(self, study: Study, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Those of the running trials whose worker is gone, and that nobody else will finish."""
        now = patience_of(study.inner).outages
        if now != self.outages:
            self.outages = now
            self.seen.clear()
        return [trial for trial in trials if self._is_lost(study, trial)]

    def _is_lost(self, study: Study, trial: FrozenTrial) -> bool:
        worker = mark_of(trial)
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
            worker = mark_of(trial) or {}
            if is_gone(worker):
                end_programs(worker)
            try:
                recording.transient(study, trial.number, "its worker was lost")
            except CrashBOError:
                continue  # another process was faster
            released.append(trial.number)
        return released


def mark_of(trial: FrozenTrial) -> dict[str, Any] | None:
    """The mark of a trial's worker; None without one, or if it makes no sense."""
    found = trial.user_attrs.get(WORKER)
    kinds = {"kind": str, "pid": int, "beat": int}
    if not isinstance(found, dict) or any(not isinstance(found.get(key), kind) for key, kind in kinds.items()):
        return None
    return {"started": None, **found}


def end_programs(worker: Mapping[str, Any]) -> None:
    """Kill the programs that a lost worker of this machine left behind.

    The one whose number it wrote down, with its group; and all that carry its token, in case it died before it could
    write anything down, or a program left its group.
    """
    child = worker.get("child") or {}
    if child.get("started") is not None and _alive(child["pid"], child["started"]):
        _kill(os.killpg, child["pid"])
    if worker.get("token"):
        for pid in _carrying(f"{TOKEN}={worker['token']}".encode()):
            _kill(os.kill, pid)


def _carrying(variable: bytes) -> list[int]:
    """The processes that have a variable in their environment, as far as we may look."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if variable in entry.read_bytes().split(b"\0"):
                found.append(int(entry.parent.name))
        except OSError:
            continue
    return found


def _kill(how: Any, pid: int) -> None:
    try:
        how(pid, signal.SIGKILL)
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
