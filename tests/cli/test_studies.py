"""Commands on a study."""

import csv
import json
import sqlite3
from pathlib import Path

import pytest

from crashbo.console.desk import Desk, Offer
from crashbo.store.storage import find_place
from crashbo.store.study import open_study
from tests.cli.conftest import Call


def test_new_says_what_it_made(call: Call) -> None:
    made = call(
        *("new", "--float", "kp", "-1", "10", "--log", "kd", "1e-3", "1", "--int", "order", 1, 8),
        *("--choice", "filter", "none,butter", "--constraint", "reach", "--constraint", "temp=80"),
        *("--maximize", "--seed", 3, "--unit", "kp=N/m", "--unit", "objective=m", "--study", "arm"),
    )
    assert made.code == 0, made.err
    assert "Study 'arm' in crashbo.db: maximize objective [m]" in made.out
    assert "kp [N/m]: -1 to 10" in made.out
    assert "order: integers, 1 to 8" in made.out
    assert "filter: one of none, butter" in made.out
    assert "reach must stay below a limit to be learned" in made.out
    assert "temp must stay below 80" in made.out
    whole = call("export", "--json").json  # the only study there needs no name
    assert whole["study"] == "arm"
    assert whole["seed"] == 3
    assert whole["constraints"] == {"reach": None, "temp": 80.0}
    assert whole["parameters"]["kd"] == {"type": "float", "low": 1e-3, "high": 1.0, "log": True, "step": None}


def test_new_reads_yaml_and_options_together(call: Call, tmp_path: Path) -> None:
    (tmp_path / "space.yaml").write_text(
        "parameters:\n"
        "  kp: {low: 0, high: 10, unit: N/m}\n"
        "  kd: {low: 1e-3, high: 1, log: true}\n"
        "  filter: [on, off]\n"
        "constraints:\n  reach:\n  temp: 80\n"
        "direction: maximize\n"
    )
    made = call("new", "--space", "space.yaml", "--int", "order", 1, 8, "--constraint", "force", "--json").json
    assert list(made["parameters"]) == ["kp", "kd", "filter", "order"]
    assert made["parameters"]["filter"]["choices"] == ["on", "off"]  # words, not truth values
    assert made["constraints"] == {"reach": None, "temp": 80, "force": None}
    assert made["direction"] == "maximize"
    assert made["units"] == {"kp": "N/m"}


def test_new_keeps_the_risk_that_may_be_taken(call: Call, tmp_path: Path) -> None:
    space = tmp_path / "space.yaml"
    space.write_text("parameters: {kp: [0, 10]}\noptions: {risk: 0.5, samples: 5}\n")
    made = call("new", "--space", str(space), "--risk", 0.1, "--crash-budget", 3, "--json").json
    assert made["options"] == {"risk": 0.1, "samples": 5, "crash_budget": 3}
    assert call("ask").code == 0


def test_an_export_is_a_space_file(arm: Call) -> None:
    arm("export", "study.json")
    again = arm("new", "--space", "study.json", "--study", "copy", "--json").json
    first = arm("export", "--json", "--study", "crashbo").json
    assert {key: again[key] for key in first if key not in ("study", "trials")} == {
        key: first[key] for key in first if key not in ("study", "trials")
    }


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "must have a parameter"),
        (("--float", "kp", "5", "1"), "`kp` must be a valid parameter. `low` must not exceed `high`"),
        (("--float", "kp", "a", "1"), "`kp` must be a finite number; got 'a'"),
        (("--log", "kp", "0", "1"), "must be positive on a log scale"),
        (("--int", "kp", "0.5", "2"), "must be an integer"),
        (("--float", "kp", "0", "1", "--int", "kp", "0", "1"), "`kp` must be given once"),
        (("--float", "kp", "0", "1", "--constraint", "kp"), "`kp` must name either a parameter or a constraint"),
        (("--float", "objective", "0", "1"), "`objective` must not be the name of a parameter"),
        (("--float", "kp", "0", "1", "--constraint", "a b"), "must be an identifier"),
        (("--float", "kp", "0", "1", "--constraint", "g=x"), "`g` must be a finite number"),
        (("--float", "kp", "0", "1", "--unit", "kd=m"), "`units` must name"),
        (("--space", "nowhere.yaml"), "nowhere.yaml, which does not exist"),
    ],
)
def test_new_refuses(call: Call, tmp_path: Path, args: tuple[str, ...], words: str) -> None:
    ran = call("new", *args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("crashbo: ")
    assert ran.err.count("\n") == 1
    assert words in ran.err
    assert not (tmp_path / "crashbo.db").exists()


def test_too_few_values_are_a_usage_error(call: Call) -> None:
    ran = call("new", "--float", "kp", "0")
    assert ran.code == 2
    assert "--float takes NAME LOW HIGH" in ran.err


def test_new_does_not_touch_a_study_that_is_there(arm: Call) -> None:
    before = arm("export", "--json").out
    ran = arm("new", "--float", "x", 0, 1)
    assert ran.code == 2
    assert "There is a study 'crashbo' in crashbo.db already" in ran.err
    assert arm("export", "--json").out == before


def test_ask_prints_params_and_why(arm: Call) -> None:
    ran = arm("ask")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Trial 0\n  kp = ")
    assert " N/m\n" in ran.out
    assert "Why: an initial point" in ran.out
    assert "crashbo tell 0 COST reach=..." in ran.out


def test_several_are_asked_together(arm: Call) -> None:
    found = arm("ask", "--n", 3, "--json").json
    assert [one["number"] for one in found] == [0, 1, 2]
    assert len({one["params"]["kp"] for one in found}) == 3


def test_the_model_suggests_and_gives_the_best_guess(call: Call) -> None:
    call("new", "--float", "x", 0, 1, "--constraint", "reach=2", "--unit", "objective=m")
    for x, words in ((0.1, ("0.4", "reach=1")), (0.3, ("0.1", "reach=1.2")), (0.6, ("0.2", "reach=1.5"))):
        assert call("tell", "--params", f"x={x}", *words).code == 0
    assert call("crash", "--params", "x=0.95", "--reason", "fell").code == 0
    asked = call("ask", "--json").json
    assert asked["success_probability"] > 0.5
    assert "likely to succeed" in asked["why"]
    assert asked["thresholds"]["reach"] == 2.0
    best = call("best", "--json").json
    assert 0.2 < best["params"]["x"] < 0.6
    assert best["success_probability"] > 0.9
    assert best["best_trial"]["number"] == 1
    words = call("best").out
    assert "Best guess:\n  x = " in words
    assert "reach 2\n" in words
    assert "Crashes are " in words  # and how sure that is
    assert "Best trial: 1, 0.1 m" in words
    table = call("status").out
    assert "3 finished, 1 crashed, 1 under way" in table
    assert "fell" in table
    assert "Best guess" in table
    told = call("status", "--json").json
    assert told["counts"] == {"finished": 3, "crashed": 1, "pending": 1, "pruned": 0, "ignored": 0, "failed": 1}
    assert told["best_trial"] == 1
    assert told["learned_thresholds"] == {"reach": 2.0}
    assert told["limits"] == {"reach": {"value": 2.0, "deviation": 0.0, "range": None}}
    assert told["relation"]["high"] + told["relation"]["unrelated"] + told["relation"]["low"] > 0.9


def test_status_without_trials_or_model(arm: Call) -> None:
    assert "0 finished, 0 crashed, 0 under way" in arm("status").out
    arm("tell", "--params", "kp=1", "kd=0.1", 0.5, "reach=1")
    arm("tell", "--params", "kp=2", "kd=0.1", 0.7, "reach=violated")
    table = arm("status", "--no-model", "--last", 1).out
    assert "violated" in table
    assert "0.7" in table
    assert "0.5" not in table
    assert "Best guess" not in table


def test_what_was_skipped_in_the_console_is_called_so(arm: Call, tmp_path: Path) -> None:
    offer = Offer("", "", 0, {"kp": 3.0, "kd": 0.1})
    Desk(open_study(find_place())).skip(offer)
    arm("ask")
    arm("crash", 1, "--transient")
    arm("ask")
    arm("crash", 2)
    arm("delete", 2)
    table = arm("status", "--no-model").out
    assert "0 finished, 0 crashed, 0 under way, 1 transient, 1 skipped, 1 deleted" in table
    assert [line.split()[1] for line in table.splitlines()[4:7]] == ["skipped", "transient", "deleted"]
    assert arm("show", 0).out.startswith("Trial 0: skipped\n  kp = 3 N/m\n")
    whole = arm("status", "--no-model", "--json").json["trials"]
    assert [one["skipped"] for one in whole] == [True, False, False]
    assert {one["status"] for one in whole} == {"ignored"}
    arm("export", "trials.csv")
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["skipped", "transient", "deleted"]
    assert arm("import", "trials.csv").out == "Imported 0 trials. 3 have no outcome.\n"


def test_best_needs_a_trial(arm: Call) -> None:
    ran = arm("best")
    assert ran.code == 2
    assert "must have a trial that is told" in ran.err


def test_show_tells_the_history(arm: Call) -> None:
    arm("ask")
    arm("tell", 0, 0.5, "reach=1")
    arm("correct", 0, 0.7, "--reason", "wrong gauge")
    words = arm("show", 0).out
    assert words.startswith("Trial 0: finished, 0.7 (wrong gauge)\n  kp = ")
    assert "Why: an initial point" in words
    assert ": finished 0.7, reach 1 (wrong gauge)" in words
    assert "Recorded first" in words
    assert ": finished 0.5, reach 1\n" in words  # the original is there for ever
    whole = arm("show", 0, "--json").json
    assert whole["objective"] == 0.7
    assert whole["recorded_first"]["objective"] == 0.5
    assert [one["status"] for one in whole["corrections"]] == ["finished"]


def test_csv_goes_out_and_in_again(arm: Call, tmp_path: Path) -> None:
    arm("tell", "--params", "kp=1", "kd=0.1", 0.1 + 0.2, "reach=1.5")
    arm("crash", "--params", "kp=2", "kd=0.1", "--reason", "fell, twice", "reach=violated")
    arm("ask")
    assert arm("export", "trials.csv").out == "Wrote trials.csv.\n"
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text().splitlines()))
    assert [row["status"] for row in rows] == ["finished", "crashed", "pending"]
    assert rows[0]["objective"] == "0.30000000000000004"
    assert (rows[1]["reach"], rows[1]["reason"]) == ("violated", "fell, twice")
    first = arm("export").out
    arm("export", "study.json")
    arm("new", "--space", "study.json", "--study", "copy")
    done = arm("import", "trials.csv", "--study", "copy")
    assert done.out == "Imported 2 trials. 1 have no outcome.\n"
    assert arm("export", "--study", "copy").out.splitlines() == first.splitlines()[:3]
    again = arm("import", "trials.csv", "--study", "copy", "--json").json
    assert again == {"numbers": [], "known": 2, "skipped": 1, "ignored": []}
    assert arm("import", "trials.csv", "--study", "copy", "--again", "--json").json["numbers"] == [2, 3]


BAD_FILES = [
    ("", "is empty"),
    ("kp,objective\n1,2\n", "lacks ['kd']"),
    ("kp,kd,objective,wind\n1,1,2,3\n", "Line 2: `reach` must be told with the objective"),
    ("kp,kp,kd,objective\n1,1,1,2\n", "has 'kp' twice"),
    ("kp,kd,objective,reach\n1,0.1,0.5,1\n1,0.1\n", "line 3"),
    ("kp,kd,objective,reach\n1,0.1,0.5,1\n11,0.1,0.5,1\n", "Line 3: `kp` must lie in [0.0, 10.0]; got 11.0"),
    ("kp,kd,objective,reach\n1,0.1,much,1\n", "Line 2: `objective` must be a number"),
    ("kp,kd,objective,reach\n1,0.1,0.5,\n", "Line 2: `reach` must be told with the objective"),
    ("kp,kd,objective,reach,status\n1,0.1,0.5,1,crashed\n", "Line 2: `objective` must be there if finished"),
    ("kp,kd,objective,reach,status\n1,0.1,0.5,1,odd\n", "Line 2: `status` must be one of"),
]


def test_a_bad_csv_imports_nothing(arm: Call, tmp_path: Path) -> None:
    for text, words in BAD_FILES:
        (tmp_path / "trials.csv").write_text(text)
        ran = arm("import", "trials.csv")
        assert ran.code == 2, text
        assert words in ran.err, text
    assert arm("status", "--json", "--no-model").json["trials"] == []


def test_export_wants_a_known_ending(arm: Call) -> None:
    ran = arm("export", "trials.xlsx")
    assert ran.code == 2
    assert "must end in .csv or .json" in ran.err


@pytest.mark.parametrize("command", [("ask",), ("status",), ("best",), ("tell", 0, 1), ("export",), ("show", 0)])
def test_a_missing_file_is_not_made(call: Call, tmp_path: Path, command: tuple[object, ...]) -> None:
    ran = call(*command)
    assert ran.code == 2
    assert "There is no file crashbo.db. Make a study with `crashbo new`" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_missing_study_is_named_with_those_there(arm: Call) -> None:
    ran = arm("ask", "--study", "leg")
    assert ran.code == 2
    assert "There is no study 'leg' in crashbo.db. It has: crashbo." in ran.err


def test_several_studies_want_a_name(call: Call) -> None:
    for name in ("a", "b"):
        call("new", "--float", "x", 0, 1, "--study", name)
    ran = call("status")
    assert ran.code == 2
    assert "There are several studies in crashbo.db. It has: a, b. Say one with --study." in ran.err


def test_of_several_studies_the_one_of_the_usual_name_is_taken(call: Call) -> None:
    for name in ("a", "crashbo"):
        call("new", "--float", "x", 0, 1, "--study", name)
    ran = call("status")
    assert ran.code == 0
    assert "Study 'crashbo' in crashbo.db" in ran.out


def test_a_file_that_is_no_database(call: Call, tmp_path: Path) -> None:
    (tmp_path / "crashbo.db").write_text("kp,kd\n1,2\n" * 200)
    for command in (("status",), ("tell", 0, 1), ("new", "--float", "x", 0, 1)):
        ran = call(*command)
        assert ran.code == 2
        assert "crashbo.db is not an Optuna database" in ran.err
    assert (tmp_path / "crashbo.db").read_text().startswith("kp,kd")


def test_a_study_of_optuna_alone_needs_a_trial(call: Call, tmp_path: Path) -> None:
    import optuna

    optuna.create_study(storage=f"sqlite:///{tmp_path}/crashbo.db", study_name="theirs")
    ran = call("ask")
    assert ran.code == 2
    assert "must have a trial with parameters; 'theirs' has none yet" in ran.err


def test_a_locked_database_is_said_so_and_nothing_is_written(arm: Call, tmp_path: Path) -> None:
    arm("ask")
    before = arm("export").out
    lock = sqlite3.connect(tmp_path / "crashbo.db", isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    impatient = ("--storage", "sqlite:///crashbo.db?timeout=0.1")
    for command in (("tell", 0, 0.5, "reach=1"), ("crash", 0), ("status",)):
        ran = arm(*command, *impatient)
        assert ran.code == 2
        assert "crashbo.db is locked by another process; nothing was written" in ran.err
    lock.execute("ROLLBACK")
    lock.close()
    assert arm("export").out == before
    assert arm("tell", 0, 0.5, "reach=1").code == 0


def test_the_environment_says_where(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CRASHBO_STORAGE", "other.db")
    monkeypatch.setenv("CRASHBO_STUDY", "leg")
    call("new", "--float", "x", 0, 1)
    assert (tmp_path / "other.db").exists()
    assert call("export", "--json").json["study"] == "leg"


def test_a_journal_file_is_a_storage_too(call: Call, tmp_path: Path) -> None:
    where = ("--storage", "study.journal")
    call("new", "--float", "x", 0, 1, *where)
    assert call("ask", *where).code == 0
    assert call("tell", 0, 0.5, *where).code == 0
    assert call("status", "--no-model", "--json", *where).json["counts"]["finished"] == 1
    assert json.loads((tmp_path / "study.journal").read_text().splitlines()[0])


@pytest.mark.parametrize(
    "url", ["postgresql://me:s3cret@localhost:1/db", "postgresql://localhost:1/db?password=s3cret"]
)
def test_a_password_is_never_printed(call: Call, url: str) -> None:
    for command in (("ask",), ("tell", 0, 1), ("new", "--float", "x", 0, 1)):
        ran = call(*command, "--storage", url)
        assert ran.code == 2
        assert "s3cret" not in ran.out + ran.err
        assert "***" in ran.err
        assert ran.err.count("\n") == 1


def test_an_unknown_database_kind(call: Call) -> None:
    ran = call("ask", "--storage", "oracle+nothing://me:s3cret@host/db")
    assert ran.code == 2
    assert "s3cret" not in ran.err
