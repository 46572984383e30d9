"""A command line in a folder of its own."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from crashbo.cli import main


@dataclass(frozen=True)
class Ran:
    """What a command left: exit code and output."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Call = Callable[..., Ran]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Call:
    """Call `crashbo ARGS` in an empty folder, as the installed command does but without a new process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CRASHBO_STORAGE", raising=False)
    monkeypatch.delenv("CRASHBO_STUDY", raising=False)

    def run(*args: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["crashbo", *map(str, args)])
        capsys.readouterr()
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0
        return Ran(code, *capsys.readouterr())

    return run


@pytest.fixture
def arm(call: Call) -> Call:
    """The same with a study: two parameters, one constraint."""
    made = call("new", "--float", "kp", 0, 10, "--log", "kd", 1e-3, 1, "--constraint", "reach", "--unit", "kp=N/m")
    assert made.code == 0, made.err
    return call
