"""The command line as such, and the commands of the paper."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crashbo.cli import app
from crashbo.cli.reproduce import Experiment

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
    assert "crash above a cost of 2.0284" in result.output
    for name in ("example1.png", "example1-predictive.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")


def test_example1_as_json() -> None:
    result = RUNNER.invoke(app, ["reproduce", "example1", "--json"])
    numbers = json.loads(result.stdout)
    assert abs(numbers["threshold"] - 2.0284) < 2e-4
    assert numbers["converged"]
    assert numbers["pictures"] == []


def test_the_four_cases_leave_a_picture_and_words(tmp_path: Path) -> None:
    command = ["reproduce", "cases", "--strategy", "paper", "--plots", str(tmp_path / "new")]
    result = RUNNER.invoke(app, command)
    assert result.exit_code == 0, result.output
    assert (
        "Case 1: the cost is its own limit. 5 trials, 1 failed. Paper's method: limits learned: cost" in result.output
    )
    assert (tmp_path / "new" / "cases-paper.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("example1 --runs 2", "`--runs` must be left out with example1, which takes --plots."),
        ("example1 --strategy paper", "`--strategy` must be left out with example1"),
        ("cases --sampler virtual", "`--sampler` must be left out with cases"),
        ("all-crash --plots x", "`--plots` must be left out with all-crash"),
        ("sim1 --strategy default --sampler virtual", "`--sampler` must be left out with `--strategy default`"),
        ("robot2d --strategy default --hyperparameters fixed", "`--hyperparameters` must be left out"),
        ("sim1 --sampler pathwise --starts 3", "`--starts` must be left out with `--sampler pathwise`"),
    ],
)
def test_options_that_an_experiment_does_not_take_are_refused(words: str, message: str) -> None:
    result = RUNNER.invoke(app, ["reproduce", *words.split()])
    assert message in str(result.exception)


@pytest.mark.parametrize("words", ["sim1 --sampler nonsense", "sim1 --strategy ours", "sim1 --runs 0"])
def test_values_that_an_option_does_not_have_are_refused(words: str) -> None:
    assert RUNNER.invoke(app, ["reproduce", *words.split()]).exit_code == 2


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every experiment with a few trials, in one process."""
    from crashbo.research.reproduce import penalties, robot, simulations

    for name, one in simulations.SIMULATIONS.items():
        monkeypatch.setitem(simulations.SIMULATIONS, name, replace(one, evaluations=3))
    for name, two in robot.ROBOTS.items():
        monkeypatch.setitem(robot.ROBOTS, name, replace(two, evaluations=2))
    for name, tuning in robot.POLES.items():
        monkeypatch.setitem(robot.POLES, name, replace(tuning, settings=replace(tuning.settings, duration=1.0)))
    for module in (simulations, robot, penalties):
        monkeypatch.setattr(module, "side_by_side", lambda jobs: (job[0](*job[1], **job[2]) for job in jobs))


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", [one.value for one in Experiment])
def test_every_experiment_runs(name: str) -> None:
    if name == "robot2d-mujoco":
        pytest.importorskip("mujoco")
    runs = [] if name in ("example1", "cases") else ["--runs", "1"]
    result = RUNNER.invoke(app, ["reproduce", name, *runs, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["name"] == name
    methods = found.get("methods")
    assert methods is None or set(methods) >= {"paper", "default"}


@pytest.mark.usefixtures("short")
def test_no_torch_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "botorch", "gpytorch"):
        monkeypatch.setitem(sys.modules, name, None)
    assert RUNNER.invoke(app, ["reproduce", "sim1", "--runs", "1"]).exit_code == 0


def test_a_folder_for_pictures_that_cannot_be_made_is_refused_before_anything_runs(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.touch()
    result = RUNNER.invoke(app, ["reproduce", "robot5d", "--plots", str(blocked / "new")])
    assert isinstance(result.exception, OSError)


@pytest.mark.usefixtures("short")
def test_the_statistical_comparison_runs_every_simulation(tmp_path: Path) -> None:
    command = ["reproduce", "statistics", "--runs", "1", "--strategy", "paper", "--plots", str(tmp_path), "--json"]
    result = RUNNER.invoke(app, command)
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
