"""The method that runs CrashBO 0.1.0 in its own environment."""

import gc

import pytest
from benchmarks.suite.draws import draw
from benchmarks.suite.methods import installed, make_method, v010_
from benchmarks.suite.problems import problems
from benchmarks.suite.runs import run_one

from crashbo.errors import InputError

NAME = "crashbo-0.1.0"
needs_environment = pytest.mark.skipif(not installed(NAME), reason="`make v010` was not run")


def told(problem, seed):
    """A method that knows the design, one of its trials crashed."""
    method = make_method(NAME, problem, seed)
    for trial, params in enumerate(problem.design(seed)):
        method.tell(params, None if trial == 1 else float(trial))
    return method


@needs_environment
def test_worker_takes_crashbo_from_its_wheel(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "src")
    method = make_method(NAME, problems()["corners"], 0)
    found = method._send("start", space=problems()["corners"].space.to_json(), seed=0)
    assert found["version"] == "0.1.0"
    assert ".venv-v010" in found["file"]
    assert "site-packages" in found["file"]


@needs_environment
def test_runs_side_by_side_do_not_mix():
    problem = problems()["corners"]
    alone = told(problem, 3).ask()
    first, second = told(problem, 3), told(problem, 4)
    other = second.ask()
    assert first.ask() == alone != other
    assert 0 <= first.success_probability <= 1
    assert first.ask_times[0] > 0
    assert first.ask_times[1] > 0


@needs_environment
def test_discrete_draw_and_its_rows():
    number = next(one for one in range(100) if any(not hasattr(p, "low") for p in draw(one).space.values()))
    initial = draw(number).initial
    rows = run_one((f"draw-{number}", NAME, number), initial + 2)
    assert len(rows) == initial + 2
    assert rows[-1].ask_seconds > 0
    assert rows[-1].success_probability is not None


@needs_environment
def test_mistakes_in_the_worker_are_raised_here_and_it_goes_on():
    problem = problems()["corners"]
    method = told(problem, 0)
    with pytest.raises(RuntimeError, match="`params` must have exactly the names"):
        method.tell({"nothing": 1}, 0.0)
    assert problem.space.validate(method.ask())


@needs_environment
def test_finished_runs_are_forgotten_and_a_dead_worker_is_replaced():
    method = told(problems()["corners"], 0)
    worker, run = method._worker, method._run
    del method
    gc.collect()
    with pytest.raises(RuntimeError, match="KeyError"):
        v010_._request(worker, {"action": "ask", "run": run})
    v010_._end_worker(worker)
    assert told(problems()["corners"], 0).ask()


def test_without_its_environment_it_is_refused(monkeypatch, tmp_path):
    monkeypatch.setattr(v010_, "PYTHON", tmp_path / "python")
    with pytest.raises(InputError, match="make v010"):
        make_method(NAME, problems()["corners"], 0)
