"""Run any program as a trial: how it gets its params, and what its ending means."""

import contextlib
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal

from crashbo.errors import InputError
from crashbo.store.asking import Asked
from crashbo.store.definition import Definition
from crashbo.store.outputs import Said, read_output
from crashbo.store.values import show
from crashbo.store.workers import TOKEN

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}|\{([^\W\d]\w*)\}")
_RESERVED = ("PARAMS", "TRIAL", "STUDY", "STORAGE")
_TAIL = 65_536  # bytes at the end of an output that are looked at
_GRACE = 3.0  # seconds between asking a program to end and ending it


@dataclass(frozen=True)
class Program:
    """A command line with placeholders.

    Attributes:
        words: of the command; `{name}` stands for a parameter, `{trial}` for the number, `{{name}}` for itself.
        timeout: seconds after which it has crashed; None: it may take its time.
        transient_exits: exit codes that say nothing about the params.
        logs: folder that keeps the output of every trial; None: nothing is kept.
    """

    words: tuple[str, ...]
    timeout: float | None = None
    transient_exits: frozenset[int] = frozenset()
    logs: Path | None = None


@dataclass(frozen=True)
class Ending:
    """What came of a program.

    Attributes:
        status: "unreadable" if it ended well but said no cost.
        objective: its cost, None unless finished.
        constraints: value or `crashbo.VIOLATED`.
        reason: in words, unless finished.
    """

    status: Literal["finished", "crashed", "transient", "unreadable"]
    objective: float | None = None
    constraints: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""

    @property
    def counts(self) -> bool:
        """Whether it says something about the params."""
        return self.status in ("finished", "crashed")


def fill(words: Sequence[str], definition: Definition, params: Mapping[str, Any], number: int) -> list[str]:
    """Return the command with its placeholders filled in.

    Raises:
        InputError: if a placeholder is no parameter.
    """
    values = {"trial": str(number)} | {name: show(value) for name, value in params.items()}

    def value(match: re.Match[str]) -> str:
        if match[1]:
            return f"{{{match[1]}}}"
        if match[2] not in values:
            known = ", ".join(definition.space)
            raise InputError(f"`{{{match[2]}}}` must be a parameter, one of {known}. Write {{{match[0]}}} for itself.")
        return values[match[2]]

    return [_PLACEHOLDER.sub(value, word) for word in words]


def environment(params: Mapping[str, Any], number: int) -> dict[str, str]:
    """Return the variables a program finds its params in."""
    names = {name: re.sub(r"\W", "_", name).upper() for name in params}
    own = {f"CRASHBO_{upper}": show(params[name]) for name, upper in names.items() if upper not in _RESERVED}
    return own | {"CRASHBO_PARAMS": json.dumps(dict(params)), "CRASHBO_TRIAL": str(number)}


def execute(
    program: Program,
    definition: Definition,
    asked: Asked,
    *,
    stop: threading.Event,
    started: Callable[[int], None] = lambda pid: None,
) -> Ending:
    """Run a program to its end.

    Args:
        program: to run, in a process group of its own.
        definition: of the study.
        asked: the trial.
        stop: ends the program when set; the trial is transient then.
        started: called with the process number.
    """
    words = fill(program.words, definition, asked.params, asked.number)
    with _output(program, asked.number, "out") as out, _output(program, asked.number, "err") as err:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=os.environ | environment(asked.params, asked.number) | {TOKEN: str(asked.worker.get("token", ""))},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise InputError(f"`command` must be a program that can be started; got {words[0]!r}: {error}.") from error
        started(process.pid)
        why = _wait(process, program.timeout, stop)
        return _ending(program, definition, process.returncode, why, read_output(definition, _tail(out)), _tail(err))


def _output(program: Program, number: int, kind: str) -> IO[bytes]:
    if program.logs is None:
        return tempfile.TemporaryFile()
    program.logs.mkdir(parents=True, exist_ok=True)
    return (program.logs / f"trial-{number:04d}.{kind}").open("w+b")


def _tail(handle: IO[bytes]) -> str:
    size = handle.seek(0, os.SEEK_END)
    handle.seek(max(0, size - _TAIL))
    return handle.read().decode("utf-8", errors="replace")


def _wait(process: "subprocess.Popen[bytes]", timeout: float | None, stop: threading.Event) -> str:
    """Wait for the end; return why it was ended, "" if it ended by itself."""
    begin = time.monotonic()
    try:
        while not stop.is_set():
            left = float("inf") if timeout is None else timeout - (time.monotonic() - begin)
            if left <= 0:
                end_group(process)
                return "timeout"
            try:
                process.wait(min(0.2, left))
                return ""
            except subprocess.TimeoutExpired:
                continue
        if process.poll() is not None:
            return ""
        end_group(process)
        return "interrupted"
    except BaseException:
        end_group(process)
        raise


def end_group(process: "subprocess.Popen[bytes]") -> None:
    """End a program and all it started: ask first, then make sure."""
    _signal(process, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE)
    _signal(process, signal.SIGKILL)
    process.wait()


def _signal(process: "subprocess.Popen[bytes]", number: signal.Signals) -> None:
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _ending(program: Program, definition: Definition, code: int, why: str, said: Said, errors: str) -> Ending:
    """What an exit code and an output mean together."""
    if why == "interrupted":
        return Ending("transient", reason="interrupted")
    if why == "timeout":
        return Ending("crashed", None, said.constraints, f"timeout after {program.timeout:g} s")
    if code in program.transient_exits or (said.transient is not None and code >= 0):
        return Ending("transient", reason=said.transient or _exit(code, errors))
    if code != 0:
        return Ending("crashed", None, said.constraints, said.crash or _exit(code, errors))
    if said.crash is not None:
        return Ending("crashed", None, said.constraints, said.crash)
    missing = [name for name in definition.constraint_names if name not in said.constraints]
    if said.problem or missing:
        return Ending("unreadable", reason=said.problem or f"the program did not say `{missing[0]}`")
    return Ending("finished", said.objective, said.constraints)


def _exit(code: int, errors: str) -> str:
    """An exit in words, with the last line of what the program complained about."""
    try:
        what = f"killed by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    except ValueError:
        what = f"killed by signal {-code}"
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return f"{what}: {lines[-1][:200]}" if lines else what
