"""The OptunaHub package: its layout, and that it loads and runs as OptunaHub loads it."""

import runpy
from pathlib import Path
from typing import Any

import optuna
import pytest
import yaml

optunahub = pytest.importorskip("optunahub", reason="needs pip install optunahub")
ROOT = Path(__file__).parents[3]
PACKAGE = ROOT / "package" / "samplers" / "crashbo"


def load(package: str = "samplers/crashbo", **_: Any) -> Any:
    return optunahub.load_local_module(package, registry_root=str(ROOT / "package"))


def test_it_loads_and_names_what_it_has() -> None:
    module = load()
    assert "CrashBOSampler" in module.__all__
    assert all(hasattr(module, name) for name in module.__all__)
    study = optuna.create_study(sampler=module.CrashBOSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)


def test_its_example_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    optimize = optuna.Study.optimize
    monkeypatch.setattr(optunahub, "load_module", load)
    monkeypatch.setattr(optuna.Study, "optimize", lambda self, *a, **k: optimize(self, *a, **k | {"n_trials": 6}))
    runpy.run_path(str(PACKAGE / "example.py"), run_name="__main__")
    assert "'x'" in capsys.readouterr().out


def test_its_readme_has_the_front_matter_that_optunahub_reads() -> None:
    _, front, body = (PACKAGE / "README.md").read_text().split("---\n", 2)
    matter = yaml.safe_load(front)
    assert matter.keys() == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert "sampler" in matter["tags"]
    assert [line for line in body.splitlines() if line.startswith("## ")] == [
        "## Abstract",
        "## APIs",
        "## Installation",
        "## Example",
        "## Others",
    ]


def test_it_has_the_files_that_optunahub_asks_for() -> None:
    assert {path.name for path in PACKAGE.iterdir() if path.is_file()} == {
        "LICENSE",
        "README.md",
        "__init__.py",
        "example.py",
        "requirements.txt",
    }
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
