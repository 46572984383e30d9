"""Commands that record what came of a trial."""

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call

FORBIDDEN = ("torch", "botorch", "gpytorch", "matplotlib", "scipy", "alembic")
FORBIDDEN_WHEN_ASKING = ("torch", "matplotlib", "plotly", "pandas", "alembic", "scipy.stats", "rich")


def trials(call: Call) -> list[dict[str, object]]:
    found: list[dict[str, object]] = call("export", "--json").json["trials"]
    return found


def test_tell_records_cost_and_constraints(arm: Call) -> None:
    arm("ask")
    ran = arm("tell", 0, -0.73, "reach=11.2")
    assert (ran.code, ran.out) == (0, "Trial 0: -0.73, reach = 11.2.\n")
    one = trials(arm)[0]
    assert (one["status"], one["objective"], one["constraints"]) == ("finished", -0.73, {"reach": 11.2})


def test_a_violated_constraint(arm: Call) -> None:
    arm("ask")
    said = arm("tell", 0, "-1e-3", "reach=violated", "--json").json
    assert said == {"number": 0, "status": "finished", "objective": -1e-3, "constraints": {"reach": "violated"}}
    assert trials(arm)[0]["constraints"] == {"reach": "violated"}


def test_crash_keeps_reason_and_partial_values(arm: Call) -> None:
    arm("ask")
    ran = arm("crash", 0, "--reason", "fell over", "reach=11.2")
    assert ran.out == "Trial 0: crashed, reach = 11.2 (fell over).\n"
    one = trials(arm)[0]
    assert (one["status"], one["reason"], one["constraints"]) == ("crashed", "fell over", {"reach": 11.2})


def test_a_transient_failure_is_offered_again(arm: Call) -> None:
    first = arm("ask", "--json").json
    assert arm("crash", 0, "--transient", "--reason", "power cut").code == 0
    one = trials(arm)[0]
    assert (one["status"], one["transient"], one["reason"]) == ("ignored", True, "power cut")
    again = arm("ask", "--json").json
    assert again["params"] == first["params"]
    assert "another try of trial 0" in again["why"]
    assert arm("ask", "--json").json["params"] != first["params"]


def test_points_that_were_never_asked_for(call: Call) -> None:
    call("new", "--float", "kp", 0, 10, "--int", "order", 1, 8, "--choice", "filter", "none,butter")
    assert call("tell", "--params", "kp=1.5", "order=3", "filter=butter", -2).out == "Trial 0: -2.\n"
    assert call("crash", "--params", "kp=9", "order=8", "filter=none", "--reason", "fell").code == 0
    found = trials(call)
    assert found[0]["params"] == {"kp": 1.5, "order": 3, "filter": "butter"}
    assert (found[1]["status"], found[1]["reason"]) == ("crashed", "fell")


MISTAKES: list[tuple[tuple[object, ...], str]] = [
    (("tell", 7, 0.5, "reach=1"), "must be a trial of the study 'crashbo'; got 7"),
    (("tell", 1, 0.5, "reach=1"), "got 1, which is finished. Change it with `crashbo correct 1`"),
    (("tell", 0, 0.5), "`reach` must be told with the objective"),
    (("tell", 0, 0.5, "reach=1", "wind=3"), "`wind` must be a constraint of the study; it has: reach"),
    (("tell", 0, 0.5, "reach=1", "reach=2"), "`reach` must be given once"),
    (("tell", 0, 0.5, "reach=high"), "`reach` must be a number; got 'high'"),
    (("tell", 0, "much", "reach=1"), "`VALUE` must be a number; got 'much'. For a failed trial use"),
    (("tell", 0, "--jsno", "reach=1"), "No such option: --jsno. See `crashbo tell --help`."),
    (("tell", 0, 0.5, "--reach=3"), "No such option: --reach. See `crashbo tell --help`."),
    (("crash", 0, "--reson", "fell"), "No such option: --reson. See `crashbo crash --help`."),
    (("correct", "-x"), "No such option: -x. See `crashbo correct --help`."),
    (("tell", 0, "reach=1"), "`arguments` must be NUMBER VALUE; got 0"),
    (("tell", "one", 0.5, "reach=1"), "`NUMBER` must be the number of a trial; got 'one'"),
    (("tell", -1, 0.5, "reach=1"), "`NUMBER` must be the number of a trial; got '-1'"),
    (("tell", 0, 0.5, "kp=1", "reach=1"), "`kp` must come with --params"),
    (("tell", "--params", "kp=1", 0.5, "reach=1"), "Add ['kd']"),
    (("tell", "--params", "kp=11", "kd=0.1", 0.5, "reach=1"), "`kp` must lie in [0.0, 10.0]; got 11"),
    (("tell", "--params", "kp=a", "kd=0.1", 0.5, "reach=1"), "`kp` must be a finite number; got 'a'"),
    (("tell", "--params", "kp=1", "kd=0.1", "kq=1", 0.5, "reach=1"), "`kq` must be a constraint"),
    (("crash", 1), "got 1, which is finished"),
    (("crash", 7), "got 7"),
    (("crash", 0, "wind=1"), "`wind` must be a constraint"),
    (("crash", 0, "reach=far"), "`reach` must be a number"),
    (("crash", 0, 0.5), "`arguments` must be NUMBER; got 0 0.5"),
    (("crash", 0, "--transient", "reach=1"), "`--transient` must come with a trial's number only"),
    (("correct", 0, 0.5), "must be a finished trial; got 0, which is not"),
    (("correct", 7, 0.5), "got 7"),
    (("correct", 1), "`correct` must get a NUMBER and one of"),
    (("correct", 1, 0.5, "--crashed"), "`correct` must get a NUMBER and one of"),
    (("correct", 1, "much"), "`VALUE` must be a number"),
    (("correct", 1, 0.5, "wind=1"), "`wind` must be a constraint"),
    (("correct", 1, 0.5, "--clear", "reach"), "`reach` must be told with the objective"),
    (("correct", 1, "--crashed", "--clear", "wind"), "`clear` must name constraints of the study; got 'wind'"),
    (("correct", 1, "--crashed", "--clear", "reach", "reach=2"), "`reach` must be either cleared or given a value"),
    (("delete", 0), "must be a finished trial"),
    (("restore", 1), "must be a trial that can be restored; 1 is not deleted"),
    (("show", 7), "got 7"),
]


def test_a_mistake_is_one_line_and_writes_nothing(arm: Call) -> None:
    arm("ask", "--n", 2)
    arm("tell", 1, 0.4, "reach=2")
    before = arm("export", "--json").out
    for args, words in MISTAKES:
        ran = arm(*args)
        assert (ran.code, ran.out) == (2, ""), args
        assert ran.err.startswith("crashbo: "), args
        assert ran.err.count("\n") == 1, args
        assert words in ran.err, args
    assert arm("export", "--json").out == before


def test_a_cost_that_is_none_is_a_crash_and_said_to_be(arm: Call) -> None:
    arm("ask", "--n", 2)
    assert arm("tell", 0, "nan", "reach=1").out == "Trial 0: crashed, reach = 1 (cost nan).\n"
    said = arm("tell", 1, "1e200", "reach=inf", "--json").json
    assert (said["status"], said["objective"], said["reason"]) == ("crashed", None, "cost beyond 1e100")
    assert [one["constraints"] for one in trials(arm)] == [{"reach": 1.0}, {"reach": "violated"}]
    assert arm("correct", 0, 0.5).out == "Trial 0: corrected to 0.5.\n"
    assert arm("correct", 0, "inf").out == "Trial 0: corrected to crashed (cost inf).\n"
    assert trials(arm)[0]["status"] == "crashed"


def test_corrections_count_and_are_kept(arm: Call) -> None:
    arm("ask")
    arm("tell", 0, 0.4, "reach=2")
    assert arm("correct", 0, -0.6, "--reason", "sign").out == "Trial 0: corrected to -0.6 (sign).\n"
    assert trials(arm)[0]["objective"] == -0.6
    assert trials(arm)[0]["constraints"] == {"reach": 2.0}
    arm("correct", 0, "--crashed", "reach=violated")
    assert (trials(arm)[0]["status"], trials(arm)[0]["constraints"]) == ("crashed", {"reach": "violated"})
    arm("delete", 0, "--reason", "wrong robot")
    assert (trials(arm)[0]["status"], trials(arm)[0]["deleted"]) == ("ignored", True)
    assert arm("delete", 0).code == 2
    assert arm("restore", 0).out == "Trial 0: restored.\n"
    assert trials(arm)[0]["status"] == "crashed"
    history = arm("show", 0, "--json").json["corrections"]
    assert [one["status"] for one in history] == ["finished", "crashed", "deleted", "restored"]
    assert [one["reason"] for one in history] == ["sign", "", "wrong robot", ""]


def test_a_wrong_constraint_value_is_taken_back_and_the_reason_stays(arm: Call) -> None:
    arm("ask")
    arm("crash", 0, "reach=11.2", "--reason", "fell over")
    ran = arm("correct", 0, "--crashed", "--clear", "reach")
    assert ran.out == "Trial 0: corrected to crashed, without reach (fell over).\n"
    one = trials(arm)[0]
    assert (one["status"], one["constraints"], one["reason"]) == ("crashed", {}, "fell over")
    assert arm("correct", 0, "--crashed", "--clear", "reach").code == 2
    said = arm("correct", 0, "--crashed", "reach=3", "--reason", "", "--json").json
    assert (said["cleared"], said["constraints"], said["reason"]) == ([], {"reach": "3"}, "")


def test_a_correction_may_offer_a_trial_again(arm: Call) -> None:
    first = arm("ask", "--json").json
    arm("crash", 0)
    arm("correct", 0, "--transient")
    assert arm("ask", "--json").json["params"] == first["params"]


def light(tmp_path: Path, *args: str, heavy: tuple[str, ...] = FORBIDDEN) -> subprocess.CompletedProcess[str]:
    """Run a command in a process that ends by naming the heavy modules it imported."""
    code = (
        "import sys, json; sys.argv = ['crashbo', *json.loads(sys.argv[1])]\n"
        "from crashbo.cli import main\n"
        f"main_error = None\ntry:\n    main()\nexcept SystemExit as end:\n    main_error = end.code\n"
        f"heavy = [name for name in {heavy} if name in sys.modules]\n"
        "print(heavy, file=sys.stderr)\nsys.exit(main_error)"
    )
    return subprocess.run(
        [sys.executable, "-c", code, json.dumps(args)], cwd=tmp_path, capture_output=True, text=True, check=False
    )


def test_recording_never_imports_torch(arm: Call, tmp_path: Path) -> None:
    arm("ask", "--n", 2)
    for command in (("tell", "0", "0.5", "reach=1"), ("crash", "1", "--transient"), ("correct", "0", "0.6")):
        ran = light(tmp_path, *command)
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr.splitlines()[-1] == "[]"
    assert [one["status"] for one in trials(arm)] == ["finished", "ignored"]


def test_asking_imports_neither_torch_nor_drawing(call: Call, tmp_path: Path) -> None:
    """Most of the time of `crashbo ask` is imports."""
    assert call("new", "--float", "kp", 0, 10).code == 0
    for number in range(12):  # beyond the initial trials: the models are asked
        call("ask")
        call("tell", number, (number - 5) ** 2) if number % 4 else call("crash", number)
    ran = light(tmp_path, "ask", "--json", "--storage", "crashbo.db", heavy=FORBIDDEN_WHEN_ASKING)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout)["why"] != "initial"
    assert ran.stderr.splitlines()[-1] == "[]"


def processor_seconds(tmp_path: Path, code: str, *args: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code, *args], cwd=tmp_path, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.mark.slow
def test_tell_costs_little_more_than_its_imports(arm: Call, tmp_path: Path) -> None:
    arm("ask", "--n", 3)
    told, imported = [], []
    for number in range(3):  # in turns, and the least of each: other processes on the machine only ever add
        imported.append(processor_seconds(tmp_path, "import typer, pydantic, optuna, sqlalchemy.orm"))
        run = "from crashbo.cli import main; main()"
        told.append(processor_seconds(tmp_path, run, "tell", str(number), "0.5", "reach=1"))
    assert min(told) < 1.6 * min(imported)


@pytest.mark.slow
def test_tell_takes_less_than_a_second_of_processor_time(arm: Call, tmp_path: Path) -> None:
    arm("ask", "--n", 5)
    run = "from crashbo.cli import main; main()"
    assert min(processor_seconds(tmp_path, run, "tell", str(n), "0.5", "reach=1") for n in range(5)) < 1.0


class TestCorrectingConstraintsAlone:
    @pytest.fixture
    def arm(self, arm: Call) -> Call:
        arm("tell", "--params", "kp=4", "kd=0.5", 1.5, "reach=2")
        arm("crash", "--params", "kp=9", "kd=0.5", "--reason", "fell")
        return arm

    def test_the_cost_stays(self, arm: Call) -> None:
        assert arm("correct", 0, "reach=9").out == "Trial 0: corrected to 1.5, reach = 9.\n"
        shown = arm("show", 0, "--json").json
        assert (shown["status"], shown["objective"], shown["constraints"]) == ("finished", 1.5, {"reach": 9.0})
        assert len(shown["corrections"]) == 1

    def test_a_crash_stays_one_with_its_reason(self, arm: Call) -> None:
        assert arm("correct", 1, "reach=violated").out == "Trial 1: corrected to crashed, reach = violated (fell).\n"
        assert arm("correct", 1, "--clear", "reach").code == 0
        shown = arm("show", 1, "--json").json
        assert (shown["status"], shown["constraints"], shown["reason"]) == ("crashed", {}, "fell")

    def test_a_trial_without_an_outcome_has_nothing_to_keep(self, arm: Call) -> None:
        arm("correct", 0, "--transient")
        assert "must be a finished or crashed trial to correct its constraints alone; 0 is transient" in (
            arm("correct", 0, "reach=9").err
        )

    def test_a_finished_trial_keeps_all_its_constraints(self, arm: Call) -> None:
        assert "`reach` must be told with the objective" in arm("correct", 0, "--clear", "reach").err


class TestExports:
    @pytest.mark.parametrize("name", ["all.csv", "all.json"])
    def test_one_that_fails_leaves_no_file(self, arm: Call, tmp_path: Path, name: str) -> None:
        before = sorted(tmp_path.iterdir())
        assert arm("export", name, "--study", "other").code == 2
        assert "must be a file that can be written" in arm("export", f"nowhere/{name}").err
        assert sorted(tmp_path.iterdir()) == before

    def test_a_full_disk_leaves_the_old_file(self, arm: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def full(handle: int) -> None:
            raise OSError(28, "No space left on device")

        assert arm("export", "all.csv").code == 0
        before = (tmp_path / "all.csv").read_text()
        arm("ask")
        monkeypatch.setattr("os.fsync", full)
        assert arm("export", "all.csv").code == 2
        monkeypatch.undo()
        assert (tmp_path / "all.csv").read_text() == before
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".all")] == []

    def test_a_folder_is_no_file(self, arm: Call, tmp_path: Path) -> None:
        (tmp_path / "all.csv").mkdir()
        assert "`file` must be a file; all.csv is a folder." in arm("export", "all.csv").err
