"""`crashbo run`: any program."""

import os
import stat
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Call, Ran
from tests.processes import wait_until

EXAMPLE = Path(__file__).parents[2] / "examples" / "run_any_program"


@pytest.fixture
def tune(call: Call, tmp_path: Path) -> Call:
    """`crashbo run` on a study whose suggestions need no model."""
    (tmp_path / "space.yaml").write_text("parameters: {kp: [0, 10], kd: [0.1, 1]}\noptions: {initial: 1000}\n")

    def run(*args: object) -> Ran:
        return call("run", "--space", "space.yaml", *args)

    return run


def trials(call: Call) -> list[dict[str, object]]:
    found: list[dict[str, object]] = call("export", "--json").json["trials"]
    return found


def test_placeholders_and_the_last_line(tune: Call, call: Call) -> None:
    ran = tune("--trials", 3, "--", "sh", "-c", "echo looking; echo {kp}; echo")
    assert ran.code == 0, ran.err
    assert "3 trials finished, 0 crashed." in ran.out
    assert "Best guess:" in ran.out
    assert ran.err.count("trial ") == 3
    assert all(one["objective"] == one["params"]["kp"] for one in trials(call))  # type: ignore[index]


def test_the_environment_and_a_json_line(tune: Call, call: Call, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(
        "import json, os\n"
        "params = json.loads(os.environ['CRASHBO_PARAMS'])\n"
        "assert float(os.environ['CRASHBO_KP']) == params['kp']\n"
        "assert os.environ['CRASHBO_TRIAL'] in '01'\n"
        "print(json.dumps({'objective': params['kp'], 'reach': None if params['kp'] > 5 else 1, 'seconds': 3}))\n"
        "print('done')\n"
    )
    ran = tune("--constraint", "reach", "--trials", 2, "--json", "--", sys.executable, "program.py")
    assert ran.code == 0, ran.err
    assert ran.json["counts"]["finished"] == 2
    for one in trials(call):
        above = one["params"]["kp"] > 5  # type: ignore[index]
        assert one["constraints"] == {"reach": "violated" if above else 1.0}


def test_every_kind_of_crash_has_its_reason(tune: Call, call: Call, tmp_path: Path) -> None:
    (tmp_path / "program.sh").write_text(
        "case $CRASHBO_TRIAL in\n"
        "0) echo 'line one' >&2; echo 'motor stalled' >&2; exit 3;;\n"
        "1) kill -SEGV $$;;\n"
        "2) sleep 60 & echo $! > child; wait;;\n"
        """3) echo '{"crash": "fell", "reach": 4}';;\n"""
        """4) echo '{"reach": 5}'; exit 1;;\n"""
        "5) echo nan;;\n"
        """6) echo '{"objective": Infinity, "reach": 1}';;\n"""
        "7) echo 0.5 reach=violated;;\n"
        "esac\n"
    )
    options = ("--constraint", "reach", "--trials", 8, "--timeout", 2)
    assert tune(*options, "--", "sh", "program.sh").code == 0
    found = trials(call)
    assert [one["status"] for one in found] == ["crashed"] * 7 + ["finished"]
    assert [one["reason"] for one in found] == [
        "exit code 3: motor stalled",
        "killed by SIGSEGV",
        "timeout after 2 s",
        "fell",
        "exit code 1",
        "cost nan",
        "cost inf",
        "",
    ]
    seen = [one["constraints"] for one in found]
    assert seen == [{}, {}, {}, {"reach": 4.0}, {"reach": 5.0}, {}, {"reach": 1.0}, {"reach": "violated"}]
    child = int((tmp_path / "child").read_text())
    wait_until(lambda: not Path(f"/proc/{child}").exists())  # what a program started ends with it


def test_transient_failures_are_offered_again(tune: Call, call: Call) -> None:
    program = """case $CRASHBO_TRIAL in 0) exit 75;; 1) echo '{"transient": "no link"}';; *) echo {kp};; esac"""
    assert tune("--trials", 3, "--transient-exit", "75,76", "--", "sh", "-c", program).code == 0
    found = trials(call)
    assert [one["status"] for one in found] == ["ignored", "ignored", "finished", "finished", "finished"]
    assert [one["reason"] for one in found[:2]] == ["exit code 75", "no link"]
    assert found[2]["params"] == found[0]["params"]


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("exit 75", "exit code 75"),
        ("echo cost: 3", "the last line of the program's output must be its cost; got 'cost: 3'"),
        ("true", "the program printed nothing"),
        ('echo \'{"objective": "low"}\'', "the cost must be a number; the program said 'low'"),
    ],
)
def test_five_in_a_row_without_an_outcome_end_the_run(tune: Call, call: Call, program: str, words: str) -> None:
    ran = tune("--transient-exit", "75", "--", "sh", "-c", program)
    assert ran.code == 2
    assert f"5 trials in a row had no outcome; the last one: {words}" in ran.err
    assert [one["status"] for one in trials(call)] == ["ignored"] * 5


def test_the_same_command_goes_on(tune: Call, call: Call) -> None:
    command = ("--", "echo", "{kp}")
    tune("--trials", 2, *command)
    before = trials(call)
    assert tune("--trials", 2, *command).err == ""
    assert trials(call) == before
    tune("--trials", 4, *command)
    assert [one["number"] for one in trials(call)] == [0, 1, 2, 3]
    assert trials(call)[:2] == before
    assert call("run", "--trials", 5, *command).code == 0  # the study knows its space
    ran = tune("--seed", 7, "--trials", 6, *command)
    assert ran.code == 2
    assert "the seed is 0, not 7" in ran.err
    assert len(trials(call)) == 5


def test_a_trial_that_was_asked_for_and_never_told_does_not_count(tune: Call, call: Call) -> None:
    assert call("new", "--space", "space.yaml").code == 0
    assert call("ask").code == 0
    ran = tune("--trials", 2, "--", "echo", "{kp}")
    assert "2 trials finished, 0 crashed." in ran.out
    again = tune("--trials", 2, "--", "echo", "{kp}")
    assert "2 trials finished, 0 crashed." in again.out


def test_several_workers_at_the_same_time(tune: Call, call: Call, tmp_path: Path) -> None:
    program = "echo + >> log; until [ $(wc -l < log) -ge 3 ]; do sleep 0.02; done; echo {kp}"  # three meet
    assert tune("--trials", 9, "--workers", 3, "--timeout", 60, "--", "sh", "-c", program).code == 0
    assert len((tmp_path / "log").read_text().split()) == 9
    found = trials(call)
    assert [one["status"] for one in found].count("finished") == 9
    assert len({one["params"]["kp"] for one in found if one["status"] == "finished"}) == 9  # type: ignore[index]


def test_logs_are_kept(tune: Call, tmp_path: Path) -> None:
    tune("--trials", 1, "--logs", "logs", "--", "sh", "-c", "echo careful >&2; echo {kp}")
    assert (tmp_path / "logs" / "trial-0000.err").read_text() == "careful\n"
    assert float((tmp_path / "logs" / "trial-0000.out").read_text()) >= 0


def test_mistakes_make_no_study(tune: Call, call: Call, tmp_path: Path) -> None:
    cases = [
        (("--", "no-such-program"), "`command` must be a program that can be found; got 'no-such-program'"),
        (("--", "echo", "{kq}"), "`{kq}` must be a parameter, one of kp, kd"),
        (("--transient-exit", "0", "--", "echo", "1"), "must be exit codes from 1 to 255"),
        (("--transient-exit", "x", "--", "echo", "1"), "must be exit codes from 1 to 255"),
    ]
    for args, words in cases:
        ran = tune(*args)
        assert ran.code == 2, args
        assert words in ran.err, args
        assert not (tmp_path / "crashbo.db").exists(), args
    assert "There is no file crashbo.db" in call("run", "--", "echo", "1").err
    assert call("run").code == 2


def test_a_program_that_cannot_be_started_ends_the_run(tune: Call, call: Call, tmp_path: Path) -> None:
    script = tmp_path / "broken"
    script.write_bytes(b"\x7fELF nonsense")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    ran = tune("--", "./broken")
    assert ran.code == 2
    assert "`command` must be a program that can be started; got './broken'" in ran.err
    assert [one["status"] for one in trials(call)] == ["ignored"]


def test_literal_braces(tune: Call, tmp_path: Path) -> None:
    tune("--trials", 1, "--", "sh", "-c", "echo '{{kp}} {} {1} {trial}' > said; echo {kp}")
    assert (tmp_path / "said").read_text() == "{kp} {} {1} 0\n"


@pytest.mark.skipif(os.name != "posix", reason="a shell script")
def test_the_example_finds_its_minimum(call: Call) -> None:
    ran = call(
        "run",
        "--space",
        EXAMPLE / "space.yaml",
        "--trials",
        14,
        "--json",
        "--",
        EXAMPLE / "simulate.sh",
        "{kp}",
        "{kd}",
    )
    assert ran.code == 0, ran.err
    assert ran.json["counts"]["crashed"] <= 6
    assert abs(ran.json["best"]["params"]["kp"] - 6.0) < 0.5
    assert "crashed (oscillates)" in ran.err
