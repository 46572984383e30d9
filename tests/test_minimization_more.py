"""Whole optimizations: errors that are crashes, time, several jobs, stopping early, options by name, the result."""

import builtins
import math
import os
import sys
import threading
import time
import types
from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np
import pytest

from crashbo import CRASHED, VIOLATED, Constraint, Crash, InputError, MissingExtraError, Optimizer, Options, minimize
from crashbo.problem.options import OptionKeywords

LINE = {"x": (0.0, 1.0)}
QUASI_RANDOM: dict[str, Any] = {"initial": 1000}  # no model until the end: quick


def bowl(params: dict[str, Any]) -> float:
    return float((params["x"] - 0.3) ** 2)


def dies_above_half(params: dict[str, Any]) -> float:
    if params["x"] > 0.5:
        os._exit(3)
    return bowl(params)


def crashes_above_half(params: dict[str, Any]) -> dict[str, float]:
    if params["x"] > 0.5:
        raise Crash("too far", reach=VIOLATED)
    return {"objective": bowl(params), "reach": 1.0}


def gives_a_lock(params: dict[str, Any]) -> Any:
    return {"objective": threading.Lock()}


# --- exceptions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("catch", [ValueError, (ArithmeticError, ValueError), Exception])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_exceptions_that_are_caught_are_crashes(catch, n_jobs):
    def rollout(params):
        if params["x"] > 0.5:
            raise ValueError("no convergence")
        return bowl(params)

    result = minimize(rollout, LINE, n_trials=6, catch=catch, n_jobs=n_jobs, **QUASI_RANDOM)
    assert 0 < result.n_crashes < 6
    assert {one.reason for one in result.trials if one.crashed} == {"ValueError: no convergence"}
    assert result.errors == ()


def test_what_is_not_caught_ends_it_and_keeps_the_results():
    def rollout(params):
        if params["x"] > 0.5:
            raise KeyError("x")
        return bowl(params)

    for n_jobs in (1, 3):
        with pytest.raises(KeyError) as found:
            minimize(rollout, LINE, n_trials=20, catch=ValueError, n_jobs=n_jobs, **QUASI_RANDOM)
        result = found.value.result
        assert len(result.errors) >= 1
        assert result.stopped == "an error"
        assert all(one.objective is not None for one in result.trials)


@pytest.mark.parametrize("catch", ["ValueError", (ValueError, 3), KeyboardInterrupt, ValueError("x"), [ValueError]])
def test_catch_must_be_exception_classes(catch):
    with pytest.raises(InputError, match="`catch` must be exception classes, as after `except`; got"):
        minimize(bowl, LINE, n_trials=1, catch=catch)


# --- stopping --------------------------------------------------------------------------------------


def test_no_trial_begins_after_the_timeout():
    def slow(params):
        time.sleep(0.15)  # of the 0.4 s that there are
        return bowl(params)

    result = minimize(slow, LINE, n_trials=1000, timeout=0.4, **QUASI_RANDOM)
    assert 2 <= len(result.trials) <= 4
    assert (result.interrupted, result.stopped) == (True, "out of time")
    assert len(minimize(bowl, LINE, n_trials=3, timeout=math.inf, **QUASI_RANDOM).trials) == 3


def test_it_stops_after_so_many_failures():
    limit = [Constraint("heat", 1.0)]

    def rollout(params):
        return CRASHED if params["x"] > 0.8 else {"objective": bowl(params), "heat": 2.0 if params["x"] > 0.4 else 0.0}

    result = minimize(rollout, LINE, n_trials=50, max_failures=3, constraints=limit, **QUASI_RANDOM)
    assert sum(one.failed_under(limit) for one in result.trials) == 3
    assert result.trials[-1].failed_under(limit)
    assert result.stopped == "3 trials failed"


def test_it_stops_without_progress():
    costs = iter([5.0, 4.0, 4.5, 3.0, 3.0, 3.5, 9.0, 1.0])
    result = minimize(lambda _: next(costs), LINE, n_trials=50, patience=3, **QUASI_RANDOM)
    assert [one.objective for one in result.trials] == [5.0, 4.0, 4.5, 3.0, 3.0, 3.5, 9.0]
    assert result.stopped == "no progress in 3 trials"
    assert len(minimize(lambda _: CRASHED, LINE, n_trials=50, patience=4, **QUASI_RANDOM).trials) == 4


def test_a_run_that_ends_is_not_stopped():
    result = minimize(bowl, LINE, n_trials=3, patience=3, max_failures=1, timeout=100, **QUASI_RANDOM)
    assert (result.interrupted, result.stopped) == (False, "")


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"timeout": 0}, "`timeout` must be a number of seconds > 0 or None; got 0"),
        ({"timeout": math.nan}, "`timeout` must be a number of seconds > 0 or None; got nan"),
        ({"timeout": "1h"}, "`timeout` must be a number of seconds > 0 or None; got '1h'"),
        ({"max_failures": 0}, "`max_failures` must be an integer >= 1 or None; got 0"),
        ({"patience": 1.5}, "`patience` must be an integer >= 1 or None; got 1.5"),
        ({"n_jobs": 0}, "`n_jobs` must be an integer >= 1, or -1 for one per core; got 0"),
        ({"n_jobs": True}, "`n_jobs` must be an integer >= 1, or -1 for one per core; got True"),
        ({"risk": 2}, "`risk` must lie above 0 and not above 1; got 2"),
        ({"crash_budget": -1}, "`crash_budget` must be an integer >= 0 or None; got -1"),
        ({"colour": 3}, "`colour` must be an argument of `minimize` or an option"),
        ({"risk": 0.1, "options": Options()}, r"`options` must come alone; got \['risk'\] beside it"),
        ({"options": {"risk": 0.1}}, "`options` must be crashbo.Options or None; got"),
        ({"seed": 1.5}, "`seed` must be an integer >= 0, or None for a new one; got 1.5"),
        ({"seed": True}, "`seed` must be an integer >= 0, or None for a new one; got True"),
    ],
)
def test_bad_keywords_are_refused(named, message):
    with pytest.raises(InputError, match=message):
        minimize(bowl, LINE, n_trials=1, **named)


# --- jobs ------------------------------------------------------------------------------------------


def test_jobs_run_at_the_same_time():
    together = threading.Barrier(3, timeout=30)

    def rollout(params):
        together.wait()
        return bowl(params)

    result = minimize(rollout, LINE, n_trials=6, n_jobs=3, **QUASI_RANDOM)
    assert len(result.trials) == 6
    assert len({one.params["x"] for one in result.trials}) == 6
    assert result.optimizer.pending == ()


def test_one_job_runs_in_the_thread_that_calls():
    threads = set()

    def rollout(params):
        threads.add(threading.current_thread())
        return bowl(params)

    minimize(rollout, LINE, n_trials=2, **QUASI_RANDOM)
    assert threads == {threading.current_thread()}


def test_one_per_core(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    together = threading.Barrier(2, timeout=30)

    def rollout(params):
        together.wait()
        return bowl(params)

    assert len(minimize(rollout, LINE, n_trials=2, n_jobs=-1, **QUASI_RANDOM).trials) == 2


def test_an_interrupt_with_several_jobs_returns_what_is_finished():
    forever = threading.Event()

    def rollout(params):
        if params["x"] > 0.5:
            forever.wait()
        return bowl(params)

    def interrupt(optimizer, trial):
        if len(optimizer.trials) == 2:  # numbers are those of suggestions: either of them may wait for ever
            raise KeyboardInterrupt

    result = minimize(rollout, LINE, n_trials=20, n_jobs=3, callbacks=[interrupt], **QUASI_RANDOM)
    forever.set()
    assert (len(result.trials), result.stopped, result.optimizer.pending) == (2, "interrupted", ())


def test_processes_run_trials_and_may_die():
    limit = ["reach"]
    result = minimize(crashes_above_half, LINE, n_trials=3, n_jobs=2, processes=True, constraints=limit, initial=3)
    assert len(result.trials) == 3
    crashed = [one for one in result.trials if one.params["x"] > 0.5]
    assert crashed
    assert all((one.reason, one.constraints) == ("too far", {"reach": None}) for one in crashed)


def test_a_process_that_dies_is_an_error_or_a_crash():
    points = [{"x": 0.9}]
    with pytest.raises(ChildProcessError, match="the process of the trial ended with exit code 3"):
        minimize(dies_above_half, LINE, n_trials=1, processes=True, initial_points=points)
    caught = minimize(dies_above_half, LINE, n_trials=1, processes=True, initial_points=points, catch=ChildProcessError)
    assert caught.n_crashes == 1


def test_what_cannot_be_sent_to_a_process_is_said():
    with pytest.raises(InputError, match="`rollout` must be a function that another process can import"):
        minimize(lambda params: 0.0, LINE, n_trials=1, processes=True)
    with pytest.raises(TypeError, match="what the trial gave cannot be sent to another process"):
        minimize(gives_a_lock, LINE, n_trials=1, processes=True)


# --- settings by name ------------------------------------------------------------------------------


def test_every_option_is_a_keyword():
    named = {*get_type_hints(OptionKeywords), "risk", "crash_budget"}
    assert named == {one.name for one in fields(Options)} - {"n_trials"}
    result = minimize(bowl, LINE, n_trials=2, risk=0.1, crash_budget=4, delta=0.2, initial=2, raw=32)
    assert result.optimizer.options == Options(risk=0.1, crash_budget=4, delta=0.2, initial=2, raw=32, n_trials=2)


def test_settings_beside_an_optimizer_are_refused():
    optimizer = Optimizer(LINE, options=Options(initial=50))
    assert len(minimize(bowl, optimizer=optimizer, n_trials=2).trials) == 2
    for named in ({"risk": 0.1}, {"options": Options()}, {"constraints": ["g"]}, {"initial_points": [{"x": 0.1}]}):
        with pytest.raises(InputError, match="must be left out with `optimizer`, which has its own settings"):
            minimize(bowl, optimizer=optimizer, n_trials=3, **named)


@pytest.mark.parametrize("seed", [3, np.int64(3), np.uint8(3)])
def test_seeds_may_be_numpy_integers(seed):
    optimizer = Optimizer(LINE, seed=seed)
    assert (optimizer.seed, type(optimizer.seed)) == (3, int)
    assert optimizer.ask() == Optimizer(LINE, seed=3).ask()


def test_no_seed_is_a_new_one_and_resumes(tmp_path):
    first, second = Optimizer(LINE, seed=None), Optimizer(LINE, seed=None)
    assert first.seed != second.seed
    state = tmp_path / "state.json"
    begun = minimize(bowl, LINE, n_trials=2, seed=None, state=state, **QUASI_RANDOM)
    resumed = minimize(bowl, LINE, n_trials=4, seed=None, state=state, **QUASI_RANDOM)
    assert resumed.trials[:2] == begun.trials
    assert resumed.optimizer.seed == begun.optimizer.seed


def test_points_to_try_first_and_numpy_counts():
    result = minimize(bowl, LINE, n_trials=np.int64(2), initial_points=[{"x": 0.9}], **QUASI_RANDOM)
    assert result.trials[0].params == {"x": 0.9}
    assert len(result.trials) == 2


# --- correcting ------------------------------------------------------------------------------------


def filled() -> Optimizer:
    optimizer = Optimizer(LINE, constraints=["reach"])
    optimizer.tell({"x": 0.1}, 1.0, reach=2.0)
    optimizer.tell({"x": 0.2}, CRASHED, reason="fell")
    optimizer.tell({"x": 0.3}, 0.5, reach=VIOLATED)
    return optimizer


def test_a_trial_is_corrected_and_the_rest_stays():
    optimizer = filled()
    assert optimizer.correct(0, 3.0) == optimizer.trials[0]
    assert (optimizer.trials[0].objective, optimizer.trials[0].constraints) == (3.0, {"reach": 2.0})
    optimizer.correct(0, reach=5)
    assert (optimizer.trials[0].objective, optimizer.trials[0].constraints) == (3.0, {"reach": 5.0})
    optimizer.correct(0, math.nan)
    assert (optimizer.trials[0].crashed, optimizer.trials[0].reason) == (True, "cost nan")
    optimizer.correct(1, reach=4.0)
    assert (optimizer.trials[1].reason, optimizer.trials[1].constraints) == ("fell", {"reach": 4.0})
    optimizer.correct(1, reason="slipped")
    assert optimizer.trials[1].reason == "slipped"
    optimizer.correct(np.int64(1), 0.7)
    assert (optimizer.trials[1].objective, optimizer.trials[1].reason) == (0.7, "")


def test_the_models_follow_a_correction():
    optimizer = filled()
    before = optimizer.surrogate().moments(np.array([[0.1]]))[0]
    optimizer.correct(0, 30.0)
    assert optimizer.surrogate().moments(np.array([[0.1]]))[0] > before + 5


def test_a_trial_is_removed_and_the_others_keep_their_numbers(tmp_path):
    optimizer = filled()
    assert optimizer.remove(1).reason == "fell"
    assert [one.number for one in optimizer.trials] == [0, 2]
    assert optimizer.tell({"x": 0.4}, 1.0, reach=1.0).number == 3
    optimizer.save(tmp_path / "state.json")
    assert Optimizer.load(tmp_path / "state.json").trials == optimizer.trials


@pytest.mark.parametrize("number", [3, -1, 1.5, "0", True, None])
def test_a_trial_that_is_not_there_cannot_be_changed(number):
    optimizer = filled()
    for change in (optimizer.correct, optimizer.remove):
        with pytest.raises(InputError, match=r"`number` must be that of a finished trial; got .*, there are: 0 to 2"):
            change(number)
    with pytest.raises(InputError, match="there are: none"):
        Optimizer(LINE).remove(0)


def test_a_bad_correction_changes_nothing():
    optimizer = filled()
    before = optimizer.trials
    with pytest.raises(InputError, match="`reach` must be told with the objective"):
        optimizer.correct(1, 0.5)
    with pytest.raises(InputError, match="`objective` must be a number"):
        optimizer.correct(0, "low")
    assert optimizer.trials == before


# --- the result ------------------------------------------------------------------------------------


def mixed(direction: str = "minimize", n_trials: int = 6) -> Any:
    outcomes = iter([{"objective": 1.0, "heat": 0.0}, CRASHED, {"objective": -9.0, "heat": 2.0}])

    def rollout(params):
        return next(outcomes, {"objective": 0.5 + params["x"], "heat": 0.0})

    limit = [Constraint("heat", 1.0)]
    return minimize(rollout, LINE, n_trials=n_trials, constraints=limit, direction=direction, initial=n_trials)


def test_the_best_trial_is_the_best_that_did_not_fail():
    result = mixed()
    held = [one for one in result.trials if not one.failed_under([Constraint("heat", 1.0)])]
    assert result.best_trial == min(held, key=lambda one: one.objective)
    assert result.best_trial == result.optimizer.best_trial
    assert mixed("maximize").best_trial.objective == max(one.objective for one in held)
    assert minimize(lambda _: CRASHED, LINE, n_trials=2, initial=9).best_trial is None


def test_its_repr_is_short():
    shown = repr(mixed())
    assert shown.startswith("Result(6 trials, 1 crashed; best guess x = ")
    assert "best trial " in shown
    assert len(shown) < 250
    assert "no trial succeeded" in repr(minimize(lambda _: CRASHED, LINE, n_trials=2, initial=9))
    stopped = minimize(bowl, LINE, n_trials=9, callbacks=[lambda *_: True], initial=9)
    assert "(stopped: by a callback)" in repr(stopped)


def test_it_becomes_a_data_frame():
    pandas = pytest.importorskip("pandas")
    frame = mixed(n_trials=3).to_dataframe()
    assert list(frame.columns) == ["x", "objective", "heat", "status", "reason"]
    assert frame.index.tolist() == [0, 1, 2]
    assert frame.index.name == "trial"
    assert frame["status"].tolist() == ["succeeded", "crashed", "violated"]
    assert frame["objective"].isna().tolist() == [False, True, False]
    assert frame["heat"].dtype == float
    assert isinstance(frame, pandas.DataFrame)


def test_parameters_named_like_a_column_keep_their_values():
    pytest.importorskip("pandas")
    frame = minimize(lambda p: p["status"], {"status": (0.0, 1.0)}, n_trials=2, initial=5).to_dataframe()
    assert frame["param_status"].tolist() == frame["objective"].tolist()


def test_without_pandas_it_is_said(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **named):
        if name == "pandas":
            raise ModuleNotFoundError(name)
        return real(name, *args, **named)

    result = minimize(bowl, LINE, n_trials=1, initial=2)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingExtraError, match="pip install pandas"):
        result.to_dataframe()


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_a_notebook_shows_words_and_a_picture(dimension):
    space = {f"x{i}": (0.0, 1.0) for i in range(dimension)}
    result = minimize(lambda p: CRASHED if p["x0"] > 0.5 else sum(p.values()), space, n_trials=4, initial=4)
    shown = result._repr_html_()
    assert "data:image/png;base64," in shown
    assert "best guess" in shown
    assert "crashes" in shown


def test_html_is_text_and_nothing_else():
    def rollout(params):
        raise Crash("<script>")

    shown = minimize(rollout, {"<b>": (0.0, 1.0)}, n_trials=2, initial=9)._repr_html_()
    assert "<b>" not in shown
    assert "none succeeded" in shown
    assert "<script>" not in shown
    assert minimize(bowl, {"x": (0.3, 0.3)}, n_trials=1)._repr_html_().count("<img") <= 1


def test_pandas_and_matplotlib_are_imported_only_when_used():
    import subprocess

    code = (
        "import sys, crashbo; crashbo.minimize(lambda p: p['x'], {'x': (0.0, 1.0)}, n_trials=1, progress=False);"
        "print([name for name in ('pandas', 'matplotlib', 'plotly', 'rich', 'IPython') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


# --- progress --------------------------------------------------------------------------------------


class FakeDisplay(types.ModuleType):
    """IPython.display, as far as a progress bar needs it."""

    def __init__(self) -> None:
        super().__init__("IPython.display")
        self.shown: list[str] = []

    def HTML(self, text: str) -> str:
        return text

    def display(self, text: str, display_id: bool = False) -> "FakeDisplay":
        self.shown.append(text)
        return self

    def update(self, text: str) -> None:
        self.shown.append(text)


def test_a_notebook_has_a_bar_of_its_own(monkeypatch, capsys):
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell))
    display = FakeDisplay()
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    minimize(crashes_above_half, LINE, n_trials=3, constraints=["reach"], initial=5)
    assert len(display.shown) == 4
    assert 'value="0" max="3"' in display.shown[0]
    assert "3/3" in display.shown[-1]
    assert "crashed" in display.shown[-1]
    minimize(bowl, LINE, n_trials=1, progress=False, initial=5)
    assert len(display.shown) == 4
    shell.kernel = None  # IPython in a terminal
    minimize(bowl, LINE, n_trials=1, initial=5)
    assert len(display.shown) == 4
    assert capsys.readouterr() == ("", "")
