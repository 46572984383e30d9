"""The command line as such, and the commands of the paper."""

import json
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from crashbo.cli import app

RUNNER = CliRunner()


def test_help_does_not_import_torch() -> None:
    code = (
        "import sys; sys.argv = ['crashbo', '--help']\n"
        "from crashbo.cli import app\n"
        "try:\n    app()\nexcept SystemExit:\n    pass\n"
        "assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_example1_leaves_pictures_and_words(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["reproduce", "example1", "--plots", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "crash above a cost of 2.028" in result.output
    for name in ("example1.png", "example1-predictive.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_example1_as_json() -> None:
    result = RUNNER.invoke(app, ["reproduce", "example1", "--json"])
    numbers = json.loads(result.stdout)
    assert abs(numbers["threshold"] - 2.0284) < 0.003
    assert numbers["converged"]
    assert numbers["pictures"] == []


def test_pictures_of_an_experiment_without_any_are_refused_before_it_runs(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["reproduce", "robot5d", "--plots", str(tmp_path)])
    assert result.exit_code != 0
    assert "--plots" in str(result.exception)


def test_unknown_experiment_is_refused() -> None:
    result = RUNNER.invoke(app, ["reproduce", "nonsense"])
    assert result.exit_code == 2


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    run = subprocess.run(
        [sys.executable, "-c", "from crashbo.cli import main; main()", "demo", "--folder", str(blocked)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.startswith("crashbo: ")
    assert "Traceback" not in run.stderr


def test_version() -> None:
    assert RUNNER.invoke(app, ["--version"]).output.startswith("crashbo 0.")
