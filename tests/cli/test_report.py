"""`crashbo report`: a study as one HTML file."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from crashbo.cli import app

RUNNER = CliRunner()


@pytest.fixture
def storage(tmp_path: Path) -> str:
    file = str(tmp_path / "tune.db")
    at = ["--storage", file]
    assert RUNNER.invoke(app, ["new", "--float", "kp", "0", "10", "--unit", "kp=N/m", *at]).exit_code == 0
    for x, cost in ((1, 4.0), (5, 1.0), (7, 2.0)):
        assert RUNNER.invoke(app, ["tell", "--params", f"kp={x}", str(cost), *at]).exit_code == 0
    RUNNER.invoke(app, ["ask", *at])
    assert RUNNER.invoke(app, ["crash", "3", "--reason", "fell <b>", *at]).exit_code == 0
    return file


def test_the_report_tells_the_trials_with_their_reasons(storage: str, tmp_path: Path) -> None:
    out = tmp_path / "out" / "page.html"
    found = RUNNER.invoke(app, ["report", storage, "--out", str(out), "--title", "My robot"])
    assert found.exit_code == 0, found.output
    page = out.read_text()
    assert "My robot" in page
    assert "fell &lt;b&gt;" in page
    assert "N/m" in page


def test_the_report_as_json_says_where_it_is(storage: str, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    found = RUNNER.invoke(app, ["report", "--storage", storage, "--out", str(out), "--json"])
    assert json.loads(found.stdout) == {"report": str(out), "trials": 4}


def test_a_study_without_trials_is_refused(tmp_path: Path) -> None:
    file = str(tmp_path / "new.db")
    RUNNER.invoke(app, ["new", "--float", "kp", "0", "10", "--storage", file])
    found = RUNNER.invoke(app, ["report", file, "--out", str(tmp_path / "page.html")])
    assert found.exit_code != 0
    assert not (tmp_path / "page.html").exists()
