"""Commands on studies as a whole, and points to try first."""

import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.cli.conftest import Call

SMALL = ("--float", "x", 0, 1)


class Person:
    """A terminal with somebody at it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a person is asked; each question is answered with no."""
    asked: list[str] = []

    def confirm(question: str, *, abort: bool) -> None:
        asked.append(question)
        raise typer.Abort

    monkeypatch.setattr(sys, "stdin", Person())
    monkeypatch.setattr(typer, "confirm", confirm)
    return asked


class TestFirstPoints:
    def test_they_are_suggested_first_in_their_order(self, call: Call) -> None:
        made = call(
            "new", "--float", "kp", 0, 10, "--log", "kd", 1e-3, 1, "--try", "kp=3", "kd=0.5", "--try", "kd=1", "kp=2"
        )
        assert made.code == 0, made.err
        assert "  first: kp = 3, kd = 0.5\n" in made.out
        first, second, third = (call("ask", "--json").json for _ in range(3))
        assert [first["params"], second["params"]] == [{"kp": 3.0, "kd": 0.5}, {"kp": 2.0, "kd": 1.0}]
        assert first["why"] == "a point you gave"
        assert third["why"] == "an initial point"
        assert [one["number"] for one in (first, second, third)] == [0, 1, 2]
        assert call("tell", 0, 1.5).out == "Trial 0: 1.5.\n"

    def test_they_may_come_before_other_options(self, call: Call) -> None:
        made = call("new", "--try", "x=0.25", "--maximize", *SMALL, "--json").json
        assert made["queued"] == [0]
        assert made["direction"] == "maximize"

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("x=2",), "`x` must lie in [0.0, 1.0]; got 2.0"),
            (("x=a",), "`x` must be a finite number; got 'a'"),
            (("y=1",), "must have exactly the names ['x']"),
            (("x=1", "x=0"), "`x` must be given once"),
            ((), "Option '--try' requires an argument."),
        ],
    )
    def test_a_wrong_one_makes_no_study(self, call: Call, tmp_path: Path, words: Any, message: str) -> None:
        made = call("new", *SMALL, "--try", *words)
        assert made.code == 2
        assert message in made.err
        assert len(made.err.splitlines()) == 1
        assert not (tmp_path / "crashbo.db").exists()


def test_then_tell_suits_the_direction(call: Call) -> None:
    call("new", *SMALL, "--study", "less")
    call("new", *SMALL, "--study", "more", "--maximize")
    assert "Then: crashbo tell 0 COST," in call("ask", "--study", "less").out
    assert "Then: crashbo tell 0 VALUE," in call("ask", "--study", "more").out


class TestSkip:
    def test_the_next_suggestion_is_another(self, call: Call) -> None:
        call("new", "--space", _space(), "--json")
        for value in (0.1, 0.5, 0.9):
            call("tell", "--params", f"x={value}", (value - 0.4) ** 2)
        first = call("ask", "--json").json
        skipped = call("skip", first["number"], "--reason", "too far", "--by", "Ada")
        assert skipped.out == f"Trial {first['number']}: skipped (too far).\n"
        second = call("ask", "--json").json
        assert abs(first["params"]["x"] - second["params"]["x"]) > 1e-3
        shown = call("show", first["number"], "--json").json
        assert (shown["skipped"], shown["status"], shown["reason"]) == (True, "ignored", "too far")
        assert "3 finished, 0 crashed, 1 under way, 1 skipped" in call("status", "--no-model").out

    def test_only_a_trial_under_way_can_be_skipped(self, call: Call) -> None:
        call("new", *SMALL)
        call("tell", "--params", "x=0.5", 1)
        assert "`number` must be a trial under way; got 0, which is finished." in call("skip", 0).err
        assert "`number` must be a trial of the study 'crashbo'; got 7." in call("skip", 7).err

    def test_with_the_same_key_it_is_stored_once(self, call: Call) -> None:
        call("new", *SMALL)
        call("ask")
        assert call("skip", 0, "--key", "k").code == 0
        assert call("skip", 0, "--key", "k").code == 0
        assert call("skip", 0).code == 2


def _space() -> str:
    Path("space.yaml").write_text("parameters: {x: [0, 1]}\noptions: {initial: 2, raw: 64}\n")
    return "space.yaml"


class TestShelf:
    def test_all_studies_are_listed(self, call: Call) -> None:
        call("new", *SMALL, "--study", "arm")
        call("new", *SMALL, "--study", "leg", "--maximize")
        call("ask", "--study", "leg")
        words = call("list").out
        assert "crashbo.db: 2 studies" in words
        assert "  arm: minimize, 0 trials\n" in words
        assert "  leg: maximize, 1 trials, 1 under way, the last began 20" in words
        assert [one["name"] for one in call("list", "--json").json] == ["arm", "leg"]

    def test_without_a_file_there_is_nothing_to_list_and_none_is_made(self, call: Call, tmp_path: Path) -> None:
        assert "There is no file crashbo.db." in call("list").err
        assert list(tmp_path.iterdir()) == []

    def test_a_study_gets_another_name_and_keeps_its_trials(self, call: Call) -> None:
        call("new", *SMALL)
        call("tell", "--params", "x=0.5", 1)
        assert call("rename", "arm").out == "Study 'crashbo' is called 'arm' now.\n"
        assert call("status", "--study", "arm", "--json", "--no-model").json["counts"]["finished"] == 1
        assert call("status", "--study", "crashbo").code == 2

    def test_a_name_that_is_taken_is_refused(self, call: Call) -> None:
        for name in ("arm", "leg"):
            call("new", *SMALL, "--study", name)
        assert "There is a study 'leg' in crashbo.db already." in call("rename", "leg", "--study", "arm").err
        assert "`name` must not be empty." in call("rename", " ", "--study", "arm").err
        assert call("rename", "arm", "--study", "arm").code == 0

    def test_a_journal_keeps_its_names(self, call: Call) -> None:
        call("new", *SMALL, "--storage", "a.journal")
        assert (
            "`storage` must be a database to rename a study in it" in call("rename", "b", "--storage", "a.journal").err
        )

    def test_removing_asks_first(self, call: Call, answers: list[str]) -> None:
        call("new", *SMALL)
        call("ask")
        stopped = call("remove")
        assert (stopped.code, stopped.err) == (1, "crashbo: stopped; nothing was written.\n")
        assert answers == ["Remove the study 'crashbo' in crashbo.db with its 1 trials, 1 of them under way, for ever?"]
        assert len(call("list", "--json").json) == 1
        assert call("remove", "--yes").out == "Removed 'crashbo' with 1 trials.\n"
        assert call("list", "--json").json == []

    def test_without_anybody_to_ask_it_is_refused(self, call: Call) -> None:
        call("new", *SMALL)
        assert "There is nobody to ask: say --yes if that is meant." in call("remove").err
        assert "There is no study 'arm'" in call("remove", "arm", "--yes").err
        assert len(call("list", "--json").json) == 1


class TestAnotherApplication:
    @pytest.fixture
    def foreign(self, tmp_path: Path) -> Path:
        path = tmp_path / "shop.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE orders (id INTEGER)")
        connection.commit()
        connection.close()
        return path

    def test_new_asks_before_it_puts_tables_there(self, call: Call, foreign: Path, answers: list[str]) -> None:
        stopped = call("new", *SMALL, "--storage", foreign.name)
        assert stopped.code == 1
        assert answers == ["shop.db is the database of another application (orders). Put the study into it?"]
        connection = sqlite3.connect(foreign)
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("orders",)]
        connection.close()

    def test_nobody_to_ask_means_no(self, call: Call, foreign: Path) -> None:
        assert "There is nobody to ask: say --yes" in call("new", *SMALL, "--storage", foreign.name).err
        assert call("new", *SMALL, "--storage", foreign.name, "--yes").code == 0
        assert call("new", *SMALL, "--storage", foreign.name, "--study", "more").code == 0  # Optuna's tables are there


class TestEdit:
    @pytest.fixture
    def arm(self, arm: Call) -> Call:
        arm("tell", "--params", "kp=4", "kd=0.5", 1, "reach=2")
        arm("crash", "--params", "kp=9", "kd=0.5", "--reason", "fell")
        return arm

    def test_a_range_is_widened_and_the_history_kept(self, arm: Call) -> None:
        words = arm("edit", "--float", "kp", -5, 20, "--by", "Ada").out
        assert "  kp [N/m]: -5 to 20\n" in words
        assert ", by Ada:\n  kp: 0 to 10, now -5 to 20\n" in words
        assert arm("tell", "--params", "kp=15", "kd=0.5", 3, "reach=2").code == 0
        assert [one["params"]["kp"] for one in arm("export", "--json").json["trials"]] == [4.0, 9.0, 15.0]
        whole = arm("edit", "--json").json
        assert whole["parameters"]["kp"]["high"] == 20.0
        assert [one["changes"] for one in whole["edits"]] == [["kp: 0 to 10, now -5 to 20"]]
        assert arm("best", "--json").json["best_trial"]["number"] == 0

    def test_a_parameter_is_added_with_its_value_in_earlier_trials(self, arm: Call) -> None:
        under_way = arm("ask", "--json").json["number"]
        assert arm("edit", "--int", "order", 1, 4, "--was", "order=2").code == 0
        assert arm("tell", under_way, 5, "reach=1").code == 0  # begun before there was an order
        trials = arm("export", "--json").json["trials"]
        assert [one["params"]["order"] for one in trials] == [2, 2, 2]
        assert set(arm("ask", "--json").json["params"]) == {"kp", "kd", "order"}
        assert len(arm("export").out.splitlines()) == 1 + 4
        assert arm("best", "--json").json["params"]["order"] in (1, 2, 3, 4)

    def test_risk_and_budget_change(self, arm: Call) -> None:
        words = arm("edit", "--risk", 0.1, "--crash-budget", 3, "--unit", "kp=", "--unit", "kd=s").out
        assert "risk: not set, now 0.1" in words
        assert "crash budget: not set, now 3" in words
        whole = arm("export", "--json").json
        assert whole["options"] == {"risk": 0.1, "crash_budget": 3}
        assert whole["units"] == {"kd": "s"}
        assert len(whole["edits"]) == 1

    def test_points_to_try_next(self, arm: Call) -> None:
        assert "first: kp = 1, kd = 0.1" in arm("edit", "--try", "kp=1", "kd=0.1").out
        assert arm("ask", "--json").json["params"] == {"kp": 1.0, "kd": 0.1}

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--float", "kp", 0, 8), "`kp` must still hold what was tried: trial 1 has 9."),
            (("--float", "kp", 0, 3), "trial 0 has 4 and 1 more."),
            (("--int", "kp", 0, 20), "`kp` must keep its kind, 0 to 10; got integers, 0 to 20."),
            (("--float", "kd", 0, 20), "`kd` must keep its kind, 0.001 to 1, log scale; got 0 to 20."),
            (("--float", "kx", 0, 1), "`kx` must have a value for the trials so far"),
            (("--float", "kx", 0, 1, "--was", "kx=2"), "`kx` must lie in [0.0, 1.0]"),
            (("--was", "kp=2"), "`kp` must be a new parameter"),
            (("--float", "kp", 0, 10), "`edit` must change something"),
            (("--float", "kp", 0, 20, "--int", "kp", 0, 2), "`kp` must be given once"),
            (("--float", "reach", 0, 1, "--was", "reach=1"), "`reach` must name either a parameter or a constraint"),
        ],
    )
    def test_what_cannot_be_is_refused_and_nothing_is_written(self, arm: Call, words: Any, message: str) -> None:
        before = arm("export", "--json").out
        ended = arm("edit", *words)
        assert ended.code == 2
        assert message in ended.err
        assert len(ended.err.splitlines()) == 1
        assert arm("export", "--json").out == before

    def test_choices_stay(self, call: Call) -> None:
        call("new", "--choice", "filter", "none,butter")
        assert (
            "`filter` must keep its choices, one of none, butter" in call("edit", "--choice", "filter", "none,fir").err
        )


def test_settings_that_differ_are_named(call: Call) -> None:
    call("run", "--float", "x", 0, 1, "--trials", 1, "--risk", 0.1, "--", "echo", "1")
    other = call("run", "--float", "x", 0, 2, "--seed", 3, "--constraint", "reach", "--trials", 1, "--", "echo", "1")
    assert other.code == 2
    for words in ("x is 0 to 1, not 0 to 2", "the seed is 0, not 3", "risk is 0.1, which was not said"):
        assert words in other.err
    assert "it has no the limit of reach" not in other.err
    assert "the limit of reach: none here, not to be learned" in other.err


def test_one_line_for_every_wrong_option(call: Call) -> None:
    for words in (
        ("tel",),
        ("status", "--foo"),
        ("new", "--float", "kp"),
        ("new", "--risk", "7", *SMALL),
        ("show", "x"),
    ):
        ended = call(*words)
        assert ended.code == 2, words
        assert ended.out == ""
        assert len(ended.err.splitlines()) == 1, ended.err
        assert ended.err.startswith("crashbo: ")
        assert "--help`." in ended.err


def test_the_shell_completes_commands(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CRASHBO_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", "crashbo re")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert set(call().out.split()) == {"report", "restore", "rename", "remove", "reproduce"}
    monkeypatch.setenv("_CRASHBO_COMPLETE", "source_bash")
    assert "_CRASHBO_COMPLETE=complete_bash" in call().out
