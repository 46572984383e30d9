"""Studies for tests, and the command line in processes of their own."""

import contextlib
import os
import sys
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

from crashbo.store.files import make_definition
from crashbo.store.storage import find_place
from crashbo.store.study import Study, create_study
from tests.processes import processes

QUASI_RANDOM = {"initial": 1000}  # no model: suggestions cost nothing


def make_study(folder: Path, **changes: Any) -> Study:
    """A study of one parameter in a SQLite file, without a model unless told otherwise."""
    arguments: dict[str, Any] = {"parameters": {"x": [0.0, 1.0]}, "options": QUASI_RANDOM} | changes
    return create_study(find_place(str(folder / "crashbo.db")), make_definition(**arguments))


def start_cli(folder: Path, *args: object) -> ForkServerProcess:
    """Start `crashbo ARGS` in a folder; its output goes to `cli.out`."""
    process = processes().Process(target=_run_cli, args=(str(folder), [str(arg) for arg in args]))
    process.start()
    return process


def _run_cli(folder: str, args: list[str]) -> None:
    os.chdir(folder)
    from crashbo.cli import main

    sys.argv = ["crashbo", *args]
    with Path("cli.out").open("a") as out, contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        main()
