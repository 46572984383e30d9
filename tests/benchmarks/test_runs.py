"""Runs of the suite: rows, resuming, kills, failures, workers."""

import math

import pytest
from benchmarks.suite import jobs as jobs_module
from benchmarks.suite.jobs import FAILURES, left_to_do, list_jobs, run_jobs
from benchmarks.suite.problems import problems
from benchmarks.suite.records import FILE, append_run, only_writer, read_rows
from benchmarks.suite.runs import run_one

from crashbo.errors import InputError

KEYS = list_jobs(["corners", "disks"], ["random", "sobol"], [0, 1])


def test_rows_of_a_run():
    rows = run_one(("corners", "random", 3))
    problem = problems()["corners"]
    assert [row.trial for row in rows] == list(range(1, problem.budget + 1))
    best = math.inf
    for row in rows:
        assert row.crashed == (row.value is None)
        best = min(best, math.inf if row.value is None else row.value)
        assert row.best == best
        assert row.regret == best - problem.optimum
        assert (row.ask_seconds is None) == (row.trial <= problem.initial)
    assert any(row.crashed for row in rows)


def test_all_methods_start_with_the_same_design():
    a, b = run_one(("corners", "random", 3), 4), run_one(("corners", "tpe-failed", 3), 4)
    assert [row.value for row in a] == [row.value for row in b]


def test_runs_are_kept_and_skipped(tmp_path):
    done = []
    assert run_jobs(tmp_path, KEYS[:3], report=lambda one: done.append(one.key)) == 0
    assert done == KEYS[:3]
    assert run_jobs(tmp_path, KEYS, report=lambda one: done.append(one.key)) == 0
    assert done == KEYS
    before = (tmp_path / FILE).read_bytes()
    run_jobs(tmp_path, KEYS, report=lambda one: done.append(one.key))
    assert done == KEYS
    assert (tmp_path / FILE).read_bytes() == before
    assert {row.key for row in read_rows(tmp_path)} == set(KEYS)


def test_rows_survive_the_file(tmp_path):
    rows = run_one(("machine", "random", 0))
    append_run(tmp_path, rows)
    assert read_rows(tmp_path) == rows


@pytest.mark.parametrize("cut", [1, 200, 1500])
def test_kill_while_writing_costs_one_run(tmp_path, cut):
    run_jobs(tmp_path, KEYS[:2])
    path = tmp_path / FILE
    path.write_bytes(path.read_bytes()[:-cut])
    assert left_to_do(tmp_path, KEYS[:2]) == [KEYS[1]]
    run_jobs(tmp_path, KEYS[:2])
    found = read_rows(tmp_path)
    assert [row.key for row in found].count(KEYS[1]) == problems()["corners"].budget
    assert len(found) == len({(row.key, row.trial) for row in found}) == 2 * problems()["corners"].budget


def test_short_runs_are_done_again_in_full(tmp_path):
    run_jobs(tmp_path, KEYS[:1], trials=6)
    assert len(read_rows(tmp_path)) == 6
    assert left_to_do(tmp_path, KEYS[:1], 6) == []
    run_jobs(tmp_path, KEYS[:1])
    assert len(read_rows(tmp_path)) == problems()["corners"].budget


def test_failed_run_is_logged_and_tried_again(tmp_path, monkeypatch):
    def broken(key, trials):
        if key == KEYS[0]:
            raise ZeroDivisionError("oops")
        return run_one(key, trials)

    monkeypatch.setattr(jobs_module, "run_one", broken)
    assert run_jobs(tmp_path, KEYS[:2]) == 1
    assert "ZeroDivisionError: oops" in (tmp_path / FAILURES).read_text()
    assert left_to_do(tmp_path, KEYS[:2]) == KEYS[:1]


def test_two_writers_are_refused(tmp_path):
    with only_writer(tmp_path), pytest.raises(InputError, match="`out` must be a folder no other run writes to"):
        run_jobs(tmp_path, KEYS[:1])


def test_foreign_file_is_refused(tmp_path):
    (tmp_path / FILE).write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match="`out` must hold results of this suite"):
        read_rows(tmp_path)


def test_several_processes_give_the_same_rows(tmp_path):
    failed = run_jobs(tmp_path, KEYS[:2], workers=2, trials=8)
    assert not failed, (tmp_path / FAILURES).read_text()
    values = {key: [row.value for row in read_rows(tmp_path) if row.key == key] for key in KEYS[:2]}
    assert values == {key: [row.value for row in run_one(key, 8)] for key in KEYS[:2]}


def test_workers_hold_several_trials_at_a_time(monkeypatch):
    most, out = [0], []

    class Fake:
        workers, own_start, success_probability, ask_times = 4, False, 0.5, None

        def ask(self):
            out.append(len(out))
            params = {"x1": 0.5, "x2": 0.5}
            most[0] = max(most[0], len(out) - told[0])
            return params

        def tell(self, params, cost):
            told[0] += bool(out)

    told = [0]
    monkeypatch.setattr("benchmarks.suite.runs.make_method", lambda *_: Fake())
    rows = run_one(("corners", "crashbo-4workers", 0), 14)
    assert len(rows) == 14
    assert most[0] == 4
    assert len(out) == 10
