"""The command line as such, and the commands of the paper."""

import json
import subprocess
import sys
from dataclasses import replace
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
    result = RUNNER.invoke(app, ["reproduce", "all-crash", "--plots", str(tmp_path)])
    assert result.exit_code != 0
    assert "--plots" in str(result.exception)


def test_the_four_cases_leave_a_picture_and_words(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ["reproduce", "cases", "--plots", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    assert "Case 1: the cost is its own limit. 5 trials, 1 failed." in result.output
    assert (tmp_path / "new" / "cases.png").read_bytes().startswith(b"\x89PNG")


def test_a_folder_for_pictures_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    result = RUNNER.invoke(app, ["reproduce", "robot5d", "--plots", str(blocked / "new")])
    assert isinstance(result.exception, OSError)


def test_the_statistical_comparison_runs_every_simulation(tmp_path: Path, monkeypatch) -> None:
    from crashbo.reproduce import simulations

    for name, one in simulations.SIMULATIONS.items():
        monkeypatch.setitem(simulations.SIMULATIONS, name, replace(one, evaluations=2))
    monkeypatch.setattr(simulations, "side_by_side", lambda jobs: (job[0](*job[1], **job[2]) for job in jobs))
    command = ["reproduce", "statistics", "--runs", "1", "--hyperparameters", "fixed", "--plots", str(tmp_path)]
    result = RUNNER.invoke(app, [*command, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert list(found["simulations"]) == ["sim1", "case2", "sim2", "case4"]
    assert found["pictures"] == [str(tmp_path / "statistics.png")]
    assert (tmp_path / "statistics.png").read_bytes().startswith(b"\x89PNG")


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
