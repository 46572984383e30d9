"""Hostile texts, numbers beyond any study, damaged and newer databases, an output that is full: one line, no more."""

import csv
import json
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call

ESCAPE = "\x1b]0;owned\x07\x1b[2J\u202efell"


def one_line(text: str) -> bool:
    return text.startswith("crashbo: ") and text.count("\n") == 1 and "Traceback" not in text


def test_terminal_escapes_are_shown_as_text(arm: Call) -> None:
    arm("ask")
    said = arm("crash", 0, "--reason", ESCAPE, "--by", "Eve\x1b[1m").out
    arm("correct", 0, "--crashed", "--reason", ESCAPE + "\nTrial 1: finished, 0.0")
    outputs = [said, arm("show", 0).out, arm("status", "--no-model").out, arm("tell", ESCAPE, 1).err]
    for words in outputs:
        assert not any(ord(one) < 32 and one != "\n" for one in words)
        assert "\u202e" not in words
    assert r"\x1b]0;owned\x07\x1b[2J\u202efell" in said
    assert "\nTrial 1" not in outputs[1]
    assert json.loads(arm("show", 0, "--json").out)["recorded_first"]["reason"] == ESCAPE


def test_formulas_are_quoted_in_csv_and_come_back(arm: Call, call: Call, tmp_path: Path) -> None:
    reasons = ["=HYPERLINK(1)", "@SUM(A1)", "-cmd", "'quoted", "fell", "-1.5", "+1+1"]
    for n, reason in enumerate(reasons):
        arm("crash", "--params", f"kp={n}", "kd=0.1", "--reason", reason)
    arm("export", "trials.csv")
    cells = [row["reason"] for row in csv.DictReader((tmp_path / "trials.csv").read_text().splitlines())]
    assert cells == ["'=HYPERLINK(1)", "'@SUM(A1)", "'-cmd", "''quoted", "fell", "-1.5", "'+1+1"]
    raw = [row["reason"] for row in csv.DictReader(arm("export", "--raw").out.splitlines())]
    assert raw == reasons
    call("new", "--float", "kp", 0, 10, "--log", "kd", 1e-3, 1, "--constraint", "reach", "--study", "copy")
    assert call("import", "trials.csv", "--study", "copy").code == 0
    found = call("export", "--json", "--study", "copy").json["trials"]
    assert [one["reason"] for one in found] == reasons


@pytest.mark.parametrize(
    "words",
    [
        ("tell", "99999999999999999999", 1, "reach=1"),
        ("tell", "2147483647", 1, "reach=1"),
        ("tell", "²", 1, "reach=1"),
        ("crash", "99999999999999999999"),
        ("correct", "99999999999999999999", 1),
        ("crash", 0, "--reason", "\udcff"),
        ("show", 2147483647),
    ],
)
def test_what_no_study_can_hold_is_one_line(arm: Call, words: tuple[object, ...]) -> None:
    arm("ask")
    ran = arm(*words)
    assert ran.code == 2
    assert one_line(ran.err), ran.err


@pytest.mark.parametrize("command", ["show", "delete", "restore"])
def test_numbers_beyond_any_database(arm: Call, command: str) -> None:
    ran = arm(command, "99999999999999999999")
    assert ran.code == 2
    assert "Traceback" not in ran.err


DAMAGES = {
    "a reason that is no JSON": "UPDATE trial_user_attributes SET value_json = '{' WHERE key = 'crash'",
    "settings that are no JSON": "UPDATE study_user_attributes SET value_json = 'x' WHERE key = 'crashbo:settings'",
    "settings of another kind": "UPDATE study_user_attributes SET value_json = '3' WHERE key = 'crashbo:settings'",
    "a space of another kind": "UPDATE study_user_attributes SET value_json = '[]' WHERE key = 'crashbo:space'",
    "corrections of another kind": "UPDATE study_user_attributes SET value_json = '[1]' WHERE key LIKE '%correction%'",
    "no space": "DELETE FROM study_user_attributes WHERE key = 'crashbo:space'",
    "a distribution": "UPDATE trial_params SET distribution_json = '{}'",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_study_is_one_line(arm: Call, damage: str, tmp_path: Path) -> None:
    arm("ask")
    arm("crash", 0, "--reason", "fell")
    arm("correct", 0, "--crashed", "--reason", "broke")
    with sqlite3.connect(tmp_path / "crashbo.db") as connection:
        assert connection.execute(DAMAGES[damage]).rowcount > 0
    connection.close()
    for words in (("status", "--no-model"), ("export",), ("ask",), ("best",), ("show", 0)):
        ran = arm(*words)
        assert ran.code == 2, words
        assert one_line(ran.err), ran.err


def test_a_newer_optuna_schema_is_one_line(arm: Call, tmp_path: Path) -> None:
    arm("ask")
    with sqlite3.connect(tmp_path / "crashbo.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = 'v9.9.9.a'")
    connection.close()
    for words in (("status",), ("tell", 0, 1, "reach=1"), ("crash", 0)):
        ran = arm(*words)
        assert ran.code == 2, words
        assert one_line(ran.err), ran.err
        assert "newer version of Optuna" in ran.err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("more", [(), ("--json",)])
def test_a_result_that_cannot_be_printed_is_stored_nevertheless(
    arm: Call, tmp_path: Path, more: tuple[str, ...]
) -> None:
    arm("ask")
    words = [sys.executable, "-c", "from crashbo.cli import main; main()", "tell", "0", "0.5", "reach=1", *more]
    with Path("/dev/full").open("w") as full:
        ran = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert ran.returncode == 0
    assert one_line(ran.stderr)
    assert "It is stored" in ran.stderr
    assert arm("export", "--json").json["trials"][0]["objective"] == 0.5


def test_the_same_key_tells_once(arm: Call) -> None:
    arm("ask")
    for _ in range(2):
        assert arm("tell", 0, 0.5, "reach=1", "--key", "abc").code == 0
    assert arm("tell", 0, 0.5, "reach=1").code == 2
    for _ in range(2):
        assert "Trial 1" in arm("tell", "--params", "kp=1", "kd=0.1", 1, "reach=1", "--key", "xyz").out
