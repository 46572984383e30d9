"""Every command of an installed CrashBO, in an empty folder: PYTHON .ci/smoke.py [EXTRA ...]

The extras named must work; those that are not named must say what to install. The package must be installed, not found
in a checkout.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import crashbo

EXTRAS = {
    "botorch": "botorch",
    "console": "uvicorn",
    "postgres": "psycopg",
    "ray": "ray",
    "ax": "ax",
    "robot": "numba",
    "mujoco": "mujoco",
}


def call(*words: str, code: int = 0) -> str:
    """Run a command; what it printed."""
    done = subprocess.run([sys.executable, "-m", "crashbo", *words], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, (words, done.returncode, done.stdout, done.stderr)
    return done.stdout + done.stderr


def check_commands() -> None:
    """Run every command there is."""
    done = set()

    def run(*words: str, code: int = 0) -> str:
        done.add(words[0])
        return call(*words, code=code)

    assert crashbo.__version__ in call("--version")
    run("new", "--float", "kp", "0", "10", "--constraint", "reach")
    number = json.loads(run("ask", "--json"))["number"]
    run("tell", str(number), "0.7", "reach=3")
    run("crash", "--params", "kp=9", "--reason", "fell")
    assert "fell" in run("status")
    run("best")
    run("show", "0")
    run("correct", "0", "0.8", "reach=3")
    run("delete", "0")
    run("restore", "0")
    run("skip", str(json.loads(call("ask", "--json"))["number"]))
    run("edit", "--float", "kp", "0", "20")
    run("export", "trials.csv")
    run("import", "trials.csv")
    run("report")
    run("run", "--storage", "other.db", "--float", "x", "0", "1", "--trials", "4", "--", "echo", "{x}")
    run("rename", "arm", "--storage", "other.db")
    assert "arm" in run("list", "--storage", "other.db")
    run("remove", "arm", "--storage", "other.db", "--yes")
    run("demo", "--trials", "5")
    run("reproduce", "example1")
    if importlib.util.find_spec("uvicorn") is None:
        assert "crashbo[console]" in run("console", code=2)
    else:
        done.add("console")
        check_console()
    listed = set(json.loads(subprocess.run([sys.executable, "-c", _NAMES], capture_output=True, text=True).stdout))
    left = listed - done
    for name in left:  # a command that this script does not know yet must at least explain itself
        call(name, "--help")
    assert not left, f"add to .ci/smoke.py: {sorted(left)}"


_NAMES = """
import json, typer
from crashbo.cli import app
print(json.dumps(list(typer.main.get_command(app).commands)))
"""


def check_console() -> None:
    """Start the console and let it say where it is."""
    words = [sys.executable, "-m", "crashbo", "console", "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert "http://127.0.0.1:" in process.stdout.readline()
        process.terminate()


def check_extras(wanted: list[str]) -> None:
    """Import what each extra is for."""
    if "botorch" in wanted:
        import torch

        X = torch.tensor([[0.1], [0.5], [0.9]], dtype=torch.float64)
        model = crashbo.GPCR(X, X, torch.tensor([False, False, True]))
        assert model.success_probability(X)[0].item() > 0.5
    elif importlib.util.find_spec("botorch") is None:
        said = ""
        try:
            crashbo.GPCR  # noqa: B018
        except crashbo.MissingExtraError as error:
            said = str(error)
        assert "crashbo[botorch]" in said
    if "ray" in wanted:
        from crashbo.adapters.ray import CrashBOSearch

        assert CrashBOSearch(metric="cost", mode="min").metric == "cost"
    if "ax" in wanted:
        from crashbo.adapters.ax import configure

        assert callable(configure)
    for extra in wanted:
        assert importlib.util.find_spec(EXTRAS[extra]) is not None, extra


def main() -> None:
    """Check commands and extras of the installed package."""
    wanted = sys.argv[1:]
    place = Path(crashbo.__file__).resolve()
    assert "site-packages" in place.parts, f"not installed, but found at {place}"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        check_extras(wanted)
        check_commands()
        os.chdir("/")
    print(f"crashbo {crashbo.__version__} with {wanted or 'no extras'}: every command runs")


if __name__ == "__main__":
    main()
