"""Examples run, with small budgets."""

import json
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples import EXAMPLES, small_copy

# Need a service, or a host with tests of its own: tests/adapters, tests/store, tests/research/problems, and below.
ELSEWHERE = {"ax_client.py", "ray_tune.py", "ray_workers.py", "postgres_workers.py", "circuit.py", "walking_ant.py"}
FLYBACK = EXAMPLES / "flyback"


@pytest.mark.parametrize("name", sorted({path.name for path in EXAMPLES.glob("*.py")} - ELSEWHERE))
@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive")
def test_examples_run(
    name: str, capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for needed in re.findall(r"^(?:import|from) (\w+)", (EXAMPLES / name).read_text(), re.M):
        pytest.importorskip(needed, reason=f"{name} needs it")
    if name == "robot_and_people.py":
        pytest.importorskip("uvicorn", reason="needs the extra console")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_path(str(small_copy(name, tmp_path)), run_name="__main__")
    assert "Best guess" in capfd.readouterr().out


def test_every_tutorial_is_an_example() -> None:
    site = (EXAMPLES.parent / "docs" / "site" / "notebooks.py").read_text()
    named = re.findall(r'"(\w+)"', "".join(re.findall(r"^(?:LIGHT|HEAVY) = \((.*)\)$", site, re.M)))
    assert len(named) >= 7
    assert all((EXAMPLES / f"{name}.py").exists() for name in named)


needs_ngspice = pytest.mark.skipif(shutil.which("ngspice") is None, reason="no ngspice: apt-get install ngspice")


@needs_ngspice
def test_the_circuit_has_a_cost_or_a_crash() -> None:
    def simulate(*values: str) -> tuple[int, dict[str, float | str]]:
        done = subprocess.run([str(FLYBACK / "simulate.sh"), *values], capture_output=True, text=True, timeout=120)
        return done.returncode, json.loads(done.stdout)

    code, said = simulate("5e-5", "2.5", "0.45")
    assert code == 0
    assert 0 < said["objective"] < 50
    assert 12 < said["drain"] < 200
    code, said = simulate("1.3e-5", "4.1", "0.89")  # currents beyond what the integration can follow
    assert code == 1
    assert said["crash"] in ("timestep too small", "energy from nowhere", "takes too long")


@needs_ngspice
def test_the_circuit_is_tuned_by_the_command_of_its_space(tmp_path: Path) -> None:
    shutil.copytree(FLYBACK, tmp_path / "flyback")
    first = (FLYBACK / "space.yaml").read_text().splitlines()[0]
    command = first.removeprefix("# crashbo ").replace("--trials 40", "--trials 4").split()
    done = subprocess.run(
        [sys.executable, "-m", "crashbo", *command],
        capture_output=True,
        text=True,
        cwd=tmp_path / "flyback",
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Best guess" in done.stdout
    assert "drain" in done.stdout
