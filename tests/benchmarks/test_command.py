"""The suite's command."""

import pytest
from benchmarks.suite.__main__ import app, parse_seeds
from typer.testing import CliRunner

from crashbo.errors import InputError


def test_seeds():
    assert parse_seeds("0-3") == [0, 1, 2, 3]
    assert parse_seeds("5,1-2,1") == [5, 1, 2]
    for wrong in ("", "a", "1-b", "-3"):
        with pytest.raises(InputError, match="`seeds` must look like 0-19"):
            parse_seeds(wrong)


def test_run_table_calibration_plots(tmp_path):
    runner = CliRunner()
    folder = ["--out", str(tmp_path)]
    result = runner.invoke(
        app, ["run", "--problems", "corners", "--methods", "random,sobol", "--seeds", "0-1", *folder]
    )
    assert result.exit_code == 0, result.output
    table = runner.invoke(app, ["table", *folder]).output
    assert "### corners, 50 trials" in table
    assert (tmp_path / "table.md").read_text() in table
    assert "| method | error |" in runner.invoke(app, ["calibration", *folder]).output
    assert "overview.png" in runner.invoke(app, ["plots", *folder]).output.replace("\n", "")


def test_mistakes_are_named(tmp_path):
    runner = CliRunner()
    wrong = runner.invoke(app, ["run", "--problems", "nowhere", "--out", str(tmp_path)])
    assert isinstance(wrong.exception, InputError)
    assert "`problems` must be among" in str(wrong.exception)
    empty = runner.invoke(app, ["table", "--out", str(tmp_path)])
    assert "`out` must hold results" in str(empty.exception)


def test_list_names_everything():
    text = CliRunner().invoke(app, ["list"]).output
    assert "michalewicz10" in text
    assert "logei-classifier-floor" in text
