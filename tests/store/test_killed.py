"""`crashbo run` killed at random moments."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from crashbo.store import recording
from crashbo.store.programs import Program
from crashbo.store.running import Runner
from crashbo.store.storage import find_place
from crashbo.store.study import Study, counts, open_study
from crashbo.store.workers import Watch
from tests.processes import wait_until
from tests.store.helpers import make_study, start_cli

PROGRAM = ("sh", "-c", 'echo "$CRASHBO_TRIAL" >> started; sleep 0.05; echo {x}')


def finished(study: Study) -> dict[int, float | None]:
    return {record.number: record.objective for record in study.records() if record.status == "finished"}


def kill_many(folder: Path, kills: int, seed: int) -> None:
    """Kill runs of one study again and again; then let one go on to the end."""
    study = make_study(folder)
    moments = random.Random(seed)
    before: dict[int, float | None] = {}
    for _ in range(kills):
        begun = len(study.records())
        process = start_cli(folder, "run", "--trials", 10_000, "--workers", 2, "--", *PROGRAM)
        if moments.random() < 0.8:  # else it dies before its first trial, perhaps
            wait_until(lambda begun=begun: len(study.records()) > begun)
        time.sleep(moments.uniform(0.0, 0.3))  # the moment of the kill is what is tested
        process.kill()
        process.join()
        now = finished(study)
        assert before.items() <= now.items()
        before = now
    total = len(before) + 3
    end = start_cli(folder, "run", "--trials", total, "--workers", 2, "--", *PROGRAM)
    end.join(300)
    assert end.exitcode == 0, (folder / "cli.out").read_text()
    check(study, folder, before, total)


def check(study: Study, folder: Path, before: dict[int, float | None], total: int) -> None:
    now = finished(study)
    assert before.items() <= now.items()
    assert len(now) == total
    records = study.records()
    assert counts(study.definition, records)["pending"] == 0
    assert counts(study.definition, records)["crashed"] == 0  # a lost worker is no crash
    assert all(record.objective == record.params["x"] for record in records if record.status == "finished")
    begun = [int(line) for line in (folder / "started").read_text().split()]
    assert len(begun) == len(set(begun))  # no trial was given to two programs
    assert set(now) <= set(begun)
    for line in (folder / "cli.out").read_text().splitlines():
        if line.startswith("trial ") and "transient" not in line:  # what a run said it had, it has
            assert int(line.split()[1].rstrip(":")) in now


def test_nothing_is_lost_when_a_run_is_killed(tmp_path: Path) -> None:
    kill_many(tmp_path, kills=3, seed=0)


@pytest.mark.slow
def test_nothing_is_lost_when_a_run_is_killed_fifty_times(tmp_path: Path) -> None:
    kill_many(tmp_path, kills=50, seed=1)


def test_what_a_killed_run_left_behind_is_ended_and_offered_again(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    process = start_cli(tmp_path, "run", "--", "sh", "-c", "echo $$ > pid; sleep 300 & wait")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    wait_until(lambda: "child" in study.trial(0).user_attrs["crashbo:worker"])
    process.kill()
    process.join()
    child = int((tmp_path / "pid").read_text())
    os.kill(child, 0)  # the program does not know that its parent is gone
    assert Watch().release(study) == [0]
    wait_until(lambda: gone(child))
    [lost] = study.records()
    assert lost.transient
    assert lost.reason == "its worker was lost"
    assert Watch().release(study) == []
    Runner(study, Program(("echo", "{x}")), trials=1).run()
    again = study.records()[-1]
    assert (again.retry_of, again.params) == (0, lost.params)
    assert again.status == "finished"


def gone(pid: int) -> bool:
    """Whether a process has ended; one that nobody waited for counts."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_ctrl_c_leaves_finished_trials_and_a_transient_one(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    program = ("sh", "-c", 'test "$CRASHBO_TRIAL" -lt 2 || sleep 300; echo {x}')
    process = start_cli(tmp_path, "run", "--trials", 10, "--", *program)
    wait_until(lambda: len(study.records()) == 3 and study.records()[2].status == "pending")
    wait_until(lambda: "child" in study.trial(2).user_attrs["crashbo:worker"])
    assert process.pid is not None
    os.kill(process.pid, signal.SIGINT)
    process.join(300)
    assert process.exitcode == 130
    assert "Interrupted; the same command goes on from here. 2 trials finished" in (tmp_path / "cli.out").read_text()
    last = study.records()[2]
    assert (last.status, last.transient, last.reason) == ("ignored", True, "interrupted")
    child = study.trial(2).user_attrs["crashbo:worker"]["child"]["pid"]
    assert gone(child)
    opened = open_study(find_place(str(tmp_path / "crashbo.db")))
    assert counts(opened.definition, opened.records())["finished"] == 2


def test_a_repeated_run_does_not_count_trials_of_lost_workers(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    process = start_cli(tmp_path, "run", "--trials", 1, "--", "sh", "-c", "echo $$ > pid; sleep 300")
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    process.kill()
    process.join()
    end = start_cli(tmp_path, "run", "--trials", 1, "--", "echo", "{x}")
    end.join(300)
    assert end.exitcode == 0, (tmp_path / "cli.out").read_text()
    assert counts(study.definition, study.records()) == {
        "finished": 1,
        "crashed": 0,
        "pending": 0,
        "pruned": 0,
        "ignored": 1,
        "failed": 0,
    }
    wait_until(lambda: gone(int((tmp_path / "pid").read_text())))


def test_a_complete_study_ends_what_a_killed_run_left_behind(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    program = "setsid sh -c 'echo $$ > pid; sleep 300' & wait"  # it leaves the group of its program
    process = start_cli(tmp_path, "run", "--trials", 1, "--", "sh", "-c", program)
    wait_until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text().strip())
    process.kill()
    process.join()
    recording.add(study, {"x": 0.5}, 1.0)
    end = start_cli(tmp_path, "run", "--trials", 1, "--", "false")  # there is nothing to run any more
    end.join(300)
    assert end.exitcode == 0, (tmp_path / "cli.out").read_text()
    assert counts(study.definition, study.records())["pending"] == 0
    wait_until(lambda: gone(int((tmp_path / "pid").read_text())))


def resume_until_done(folder: Path, trials: int, seed: int) -> int:
    """Repeat a run of so many trials until it ends by itself; return how often it was killed."""
    moments = random.Random(seed)
    for kills in range(200):
        process = start_cli(folder, "run", "--trials", trials, "--workers", 2, "--", *PROGRAM)
        process.join(moments.uniform(0.3, 2.5))
        if process.exitcode is not None:
            assert process.exitcode == 0, (folder / "cli.out").read_text()
            return kills
        process.kill()
        process.join()
    raise AssertionError("it was killed before it could do anything")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_run_killed_at_any_moment_ends_with_as_many_trials_as_wanted(tmp_path: Path, seed: int) -> None:
    study = make_study(tmp_path)
    kills = resume_until_done(tmp_path, 12, seed)
    assert kills > 0
    found = counts(study.definition, study.records())
    assert (found["finished"], found["pending"]) == (12, 0)
    token = b"CRASHBO_WORKER="
    for entry in Path("/proc").glob("[0-9]*/environ"):  # no orphan of this study
        try:
            left = token in entry.read_bytes() and Path(os.readlink(entry.with_name("cwd"))) == tmp_path
        except OSError:
            continue
        assert not left
