"""Fingerprints of runs: the same for the same code, another for another run."""

import json
import sys
from pathlib import Path

import pytest
from benchmarks import digest


def call(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["digest", "--only", "line-none", *words])
    digest.main()


def test_a_run_again_is_the_same_and_another_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "digest.json"
    call(monkeypatch, "--out", str(file))
    call(monkeypatch, "--against", str(file))
    file.write_text(json.dumps({"line-none-crash": "0" * 16}))
    with pytest.raises(SystemExit, match="1 of 1 runs changed: line-none-crash"):
        call(monkeypatch, "--against", str(file))


def test_both_strategies_and_all_kinds_of_spaces_are_there() -> None:
    runs = digest.runs()
    assert len(runs) >= 24
    assert {str(run.settings.get("strategy", "default")) for run in runs.values()} == {"default", "paper"}
