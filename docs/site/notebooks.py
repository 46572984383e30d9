"""Tutorials: examples in the percent format, executed as notebooks, shown with their outputs.

The source of a tutorial is a script, `examples/NAME.py`, that also runs by itself. Light ones are executed whenever the
site is built. Heavy ones are executed by `make tutorials` and kept as `docs/tutorials/stored/NAME.ipynb` with a digest
of their source; the site is not built from one whose source has changed since.
"""

import argparse
import base64
import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
STORED = ROOT / "docs" / "tutorials" / "stored"
CACHE = ROOT / ".cache" / "tutorials"
LIGHT = ("tune_function", "failing_fits", "robot_and_people")
HEAVY = ("diverging_training", "circuit", "postgres_workers", "ray_workers")
_SECONDS = 600  # a cell may take


class OutdatedError(Exception):
    """The outputs of a tutorial do not belong to its source."""


@dataclass(frozen=True)
class Shown:
    """A tutorial as a page.

    Attributes:
        text: Markdown.
        pictures: content of the files it shows, by name.
        notebook: the whole, with outputs, to download.
    """

    text: str
    pictures: dict[str, bytes]
    notebook: str


def source(name: str) -> Path:
    """The script of a tutorial."""
    return ROOT / "examples" / f"{name}.py"


def read(name: str) -> Any:
    """A tutorial without outputs."""
    return jupytext.read(source(name), fmt="py:percent")


def digest(notebook: Any) -> str:
    """Names the code of a tutorial; words may change without a new run."""
    code = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "code")
    return hashlib.sha256(code.encode()).hexdigest()[:16]


def execute(name: str) -> Any:
    """Run a tutorial in an empty folder; a cell that fails is an error."""
    notebook = read(name)
    with tempfile.TemporaryDirectory() as folder, _surroundings(name):
        for needed in (path for path in (ROOT / "examples").iterdir() if path.is_dir()):
            shutil.copytree(needed, Path(folder) / needed.name)
        client = NotebookClient(
            notebook, timeout=_SECONDS, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        client.execute()
    notebook.metadata = {"crashbo": {"code": digest(notebook)}, "kernelspec": _kernel()}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times: they would differ every time
        if cell.cell_type == "code":  # warnings are not shown, and name folders of this machine
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    return notebook


@contextlib.contextmanager
def _surroundings(name: str) -> Iterator[None]:
    """What a tutorial needs around it: one of them a PostgreSQL server."""
    os.environ |= {"OMP_NUM_THREADS": "1", "NO_COLOR": "1", "COLUMNS": "120"}
    os.environ.pop("FORCE_COLOR", None)
    if name != "postgres_workers":
        yield
        return
    sys.path.insert(0, str(ROOT))
    from tests.store.server import MISSING, find_binaries, running_server

    binaries = find_binaries()
    if binaries is None:
        raise SystemExit(MISSING)
    with running_server(binaries) as server:
        os.environ["CRASHBO_STORAGE"] = server.url
        yield
        del os.environ["CRASHBO_STORAGE"]


def _kernel() -> dict[str, str]:
    return {"display_name": "Python 3", "language": "python", "name": "python3"}


def notebook_of(name: str) -> Any:
    """A tutorial with its outputs: made now, or stored where it is heavy."""
    notebook = read(name)
    path = _cached(name, notebook) if name in LIGHT else STORED / f"{name}.ipynb"
    if not path.exists():
        raise OutdatedError(f"tutorial {name} has no outputs yet; run: make tutorials")
    executed = nbformat.read(path, as_version=4)
    if executed.metadata["crashbo"]["code"] != digest(notebook):
        raise OutdatedError(f"the outputs of tutorial {name} are those of other code; run: make tutorials")
    outputs = iter([cell.outputs for cell in executed.cells if cell.cell_type == "code"])
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = next(outputs)
    notebook.metadata = executed.metadata
    return notebook


def _cached(name: str, notebook: Any) -> Path:
    """A light tutorial, executed again when its code or the library has changed."""
    state = hashlib.sha256(digest(notebook).encode())
    for path in sorted((ROOT / "src").rglob("*.py")):
        state.update(path.read_bytes())
    path = CACHE / f"{name}-{state.hexdigest()[:16]}.ipynb"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(execute(name), path)
    return path


def show(name: str) -> Shown:
    """A tutorial as a page."""
    notebook = notebook_of(name)
    parts: list[str] = []
    pictures: dict[str, bytes] = {}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        printed = "".join(one.text for one in cell.outputs if one.output_type == "stream" and one.name == "stdout")
        parts.append(f"```{{.text .output}}\n{printed.rstrip()}\n```" if printed.strip() else "")
        parts += [_picture(name, one, pictures) for one in cell.outputs if "image/png" in one.get("data", {})]
    where = f"[the script](../sources/examples/{name}.md), [the notebook with its outputs]({name}.ipynb)"
    parts.append(f"---\n\nTo run it yourself: {where}.")
    return Shown("\n\n".join(part for part in parts if part), pictures, nbformat.writes(notebook))


def _picture(name: str, output: Any, pictures: dict[str, bytes]) -> str:
    """What a cell drew."""
    file = f"{name}-{len(pictures)}.png"
    pictures[file] = base64.b64decode(output.data["image/png"])
    return f"![Drawn by the code above]({file}){{ .output }}"


def main() -> None:
    """Execute tutorials and store their outputs."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("names", nargs="*", default=[], help="All heavy ones if none is named.")
    parser.add_argument("--stale", action="store_true", help="Only those whose source has changed.")
    chosen = parser.parse_args()
    for name in chosen.names or HEAVY:
        if chosen.stale and _is_current(name):
            continue
        STORED.mkdir(parents=True, exist_ok=True)
        nbformat.write(execute(name), STORED / f"{name}.ipynb")
        print(f"{name}: executed")


def _is_current(name: str) -> bool:
    try:
        notebook_of(name)
    except OutdatedError:
        return False
    return True


if __name__ == "__main__":
    main()
