"""Whole optimizations in one call: what a rollout may return, stopping, resuming, and losing nothing."""

import json
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import crashbo
from crashbo import CRASHED, VIOLATED, Constraint, Crash, InputError, Optimizer, Options, minimize
from crashbo.search.default import DefaultStrategy

LINE = {"x": (0.0, 1.0)}
QUICK = Options(initial=3, raw=64, samples=4)


class BreakdownError(Exception):
    """Something no rollout is expected to raise."""


class Scalar:
    """A number as torch and others wrap it."""

    def __repr__(self) -> str:
        return "Scalar()"

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value


class PowerCutError(BaseException):
    """The end of the process, as far as a test can have it."""


def bowl(params) -> float:
    return (params["x"] - 0.3) ** 2


def breaks_at(number: int, error: BaseException, rollout=bowl):
    """A rollout that raises in its call `number`, counted from 0."""
    calls = []

    def broken(params):
        calls.append(params)
        if len(calls) == number + 1:
            raise error
        return rollout(params)

    return broken


def often_crashing(params) -> float:
    if params["x"] > 0.6:
        raise Crash(f"too far: {params['x']:.1f}")
    return bowl(params)


def test_it_finds_the_minimum_of_a_crashing_experiment():
    result = minimize(often_crashing, LINE, n_trials=10, seed=1)
    assert result.best.params["x"] == pytest.approx(0.3, abs=0.03)
    assert result.best.feasible
    assert len(result.trials) == 10
    assert result.n_crashes == sum(trial.params["x"] > 0.6 for trial in result.trials) > 0
    assert result.thresholds == {name: limit.value for name, limit in result.optimizer.limits.items()}
    assert not result.interrupted
    assert result.optimizer.trials == result.trials
    assert result.optimizer.pending == ()
    assert [trial.reason[:8] for trial in result.trials if trial.crashed] == ["too far:"] * result.n_crashes


def test_it_maximises_on_request():
    result = minimize(lambda params: -bowl(params), LINE, n_trials=8, direction="maximize", options=QUICK)
    assert result.best.params["x"] == pytest.approx(0.3, abs=0.05)


def test_a_rollout_gets_a_plain_dict_of_its_own():
    seen = []

    def rollout(params):
        seen.append(type(params))
        params["x"] = 99.0
        return 1.0

    result = minimize(rollout, LINE, n_trials=2, options=QUICK)
    assert seen == [dict, dict]
    assert all(0 <= trial.params["x"] <= 1 for trial in result.trials)


@pytest.mark.parametrize(
    ("outcome", "objective", "reach"),
    [
        ({"objective": 0.5, "reach": 2.0}, 0.5, {"reach": 2.0}),
        ({"objective": np.float32(0.5), "reach": np.int64(2)}, 0.5, {"reach": 2.0}),
        ({"objective": 0.5, "reach": VIOLATED}, 0.5, {"reach": None}),
        ({"objective": CRASHED, "reach": 2.0}, None, {"reach": 2.0}),
        ({"objective": CRASHED}, None, {}),
        (CRASHED, None, {}),
        ({"objective": math.nan, "reach": 2.0}, None, {"reach": 2.0}),
        (math.nan, None, {}),
        (math.inf, None, {}),
        (-math.inf, None, {}),
        (np.float64("nan"), None, {}),
        (np.array(math.nan), None, {}),
        (np.array([math.inf]), None, {}),
        (Scalar(math.nan), None, {}),
        (Crash("fell", reach=2.0), None, {"reach": 2.0}),
        (Crash("fell", reach=VIOLATED), None, {"reach": None}),
        (Crash(), None, {}),
    ],
    ids=repr,
)
def test_all_forms_of_outcomes_are_understood(outcome, objective, reach):
    def rollout(params):
        if isinstance(outcome, Crash):
            raise outcome
        return outcome

    result = minimize(rollout, LINE, n_trials=1, constraints=[Constraint("reach")], options=QUICK)
    assert result.trials[0].objective == objective
    assert result.trials[0].constraints == reach
    assert result.n_crashes == (objective is None)


def test_the_reason_of_a_crash_is_kept():
    def rollout(params):
        if params["x"] > 0.5:
            raise Crash("fell")
        return math.nan

    reasons = {trial.reason for trial in minimize(rollout, LINE, n_trials=3, options=QUICK).trials}
    assert reasons == {"fell", "cost nan"}


def test_a_rollout_that_returns_nonsense_is_told_so():
    with pytest.raises(InputError, match=r"`rollout` must return 'objective' in its mapping; got \['cost'\]"):
        minimize(lambda _: {"cost": 1.0}, LINE, n_trials=2)
    with pytest.raises(InputError, match=r"`objective` must be a number or crashbo\.CRASHED; got 'low'"):
        minimize(lambda _: "low", LINE, n_trials=2)
    with pytest.raises(InputError, match="`reach` must be a declared constraint"):
        minimize(lambda _: {"objective": 1.0, "reach": 2.0}, LINE, n_trials=2)
    with pytest.raises(InputError, match="`reach` must be told with the objective"):
        minimize(bowl, LINE, n_trials=2, constraints=["reach"])


def test_bad_arguments_are_refused():
    for n_trials in (0, -1, True, 2.0):
        with pytest.raises(InputError, match="`n_trials` must be an integer >= 1; got"):
            minimize(bowl, LINE, n_trials=n_trials)
    with pytest.raises(InputError, match="`space` must be given unless `optimizer` is; got None"):
        minimize(bowl, n_trials=2)
    with pytest.raises(InputError, match="`direction` must"):
        minimize(bowl, LINE, n_trials=2, direction="up")


def test_callbacks_see_every_trial_and_may_stop():
    first, second = [], []

    def watch(optimizer, trial):
        first.append(trial.number)
        assert optimizer.trials[-1] is trial

    def stop(optimizer, trial):
        second.append(trial.number)
        return trial.number == 2

    result = minimize(bowl, LINE, n_trials=6, callbacks=[stop, watch], options=QUICK)
    assert first == second == [0, 1, 2]
    assert result.interrupted
    assert len(result.trials) == 3
    assert not minimize(bowl, LINE, n_trials=3, callbacks=[stop], options=QUICK).interrupted


def test_only_true_stops():
    result = minimize(bowl, LINE, n_trials=3, callbacks=[lambda *_: 1, lambda *_: "yes"], options=QUICK)
    assert len(result.trials) == 3


def test_an_interrupt_keeps_finished_trials():
    result = minimize(breaks_at(3, KeyboardInterrupt()), LINE, n_trials=6, options=QUICK)
    assert result.interrupted
    assert len(result.trials) == 3
    assert result.best.params.keys() == {"x"}
    assert result.optimizer.pending == ()
    whole = minimize(bowl, optimizer=result.optimizer, n_trials=5)
    assert len(whole.trials) == 5
    assert whole.trials[:3] == result.trials


def test_an_interrupt_before_the_first_trial_leaves_nothing():
    result = minimize(breaks_at(0, KeyboardInterrupt()), LINE, n_trials=6, options=QUICK)
    assert (result.best, result.trials, result.thresholds, result.interrupted) == (None, (), {}, True)


def test_an_interrupted_point_you_gave_is_tried_when_going_on():
    points = [{"x": 0.2}, {"x": 0.8}]
    result = minimize(breaks_at(1, KeyboardInterrupt()), LINE, n_trials=4, initial_points=points, options=QUICK)
    whole = minimize(bowl, optimizer=result.optimizer, n_trials=4)
    assert [trial.params for trial in whole.trials[:2]] == points


@pytest.mark.parametrize("broken_at", [1, 4])
def test_a_run_resumes_where_it_broke(tmp_path, broken_at):
    settings = {"n_trials": 6, "seed": 3, "options": QUICK, "initial_points": [{"x": 0.9}]}
    state = tmp_path / "state.json"
    with pytest.raises(PowerCutError):
        minimize(breaks_at(broken_at, PowerCutError(), often_crashing), LINE, state=state, **settings)
    assert len(Optimizer.load(state).trials) == broken_at
    resumed = minimize(often_crashing, LINE, state=state, **settings)
    straight = minimize(often_crashing, LINE, **settings)
    assert resumed.trials == straight.trials
    assert resumed.best == straight.best
    assert resumed.thresholds == straight.thresholds
    assert Optimizer.load(state).trials == straight.trials


def test_the_number_of_trials_is_known_to_the_search_and_may_change(tmp_path):
    state = tmp_path / "state.json"
    first = minimize(bowl, LINE, n_trials=3, state=state, options=QUICK)
    assert first.optimizer.options.n_trials == 3
    longer = minimize(bowl, LINE, n_trials=5, state=state, options=QUICK)
    assert longer.trials[:3] == first.trials
    assert (len(longer.trials), longer.optimizer.options.n_trials) == (5, 5)
    planned = minimize(bowl, LINE, n_trials=2, options=replace(QUICK, n_trials=20))
    assert planned.optimizer.options.n_trials == 20  # more will follow
    with pytest.raises(InputError, match="has another options"):
        minimize(bowl, LINE, n_trials=5, state=state, options=replace(QUICK, risk=0.1))


def test_a_strategy_of_ones_own_is_resumed(tmp_path):
    state, mine = tmp_path / "state.json", DefaultStrategy()
    minimize(bowl, LINE, n_trials=3, state=state, strategy=mine)
    resumed = minimize(bowl, LINE, n_trials=4, state=state, strategy=mine)
    assert resumed.optimizer.problem.strategy is mine
    assert len(resumed.trials) == 4


def test_a_finished_state_runs_nothing(tmp_path):
    state = tmp_path / "state.json"
    first = minimize(bowl, LINE, n_trials=3, state=state, options=QUICK)
    again = minimize(breaks_at(0, BreakdownError()), LINE, n_trials=3, state=state, options=QUICK)
    assert again.trials == first.trials
    assert again.best == first.best


@pytest.mark.parametrize("failing", [2, 5])  # an initial point, and one of the model
def test_an_error_of_the_function_loses_nothing(tmp_path, failing):
    state, seen = tmp_path / "state.json", []

    def rollout(params):
        seen.append(params)
        if len(seen) == failing + 1:
            raise BreakdownError("division by zero")
        return bowl(params)

    with pytest.raises(BreakdownError, match="division") as found:
        minimize(rollout, LINE, n_trials=7, state=state, options=QUICK)
    result = found.value.result
    assert len(result.trials) == failing
    assert result.n_crashes == 0
    assert result.interrupted
    [failure] = result.errors
    assert (failure.params, failure.error) == (seen[failing], "BreakdownError: division by zero")
    assert "see `error.result`" in found.value.__notes__[0]
    loaded = Optimizer.load(state)
    assert loaded.trials == result.trials
    assert loaded.errors == result.errors
    again = minimize(bowl, LINE, n_trials=7, state=state, options=QUICK)
    assert len(again.trials) == 7
    assert again.errors == result.errors  # shown, and counted neither as a crash nor as a result
    assert all(abs(trial.params["x"] - seen[failing]["x"]) > 1e-3 for trial in again.trials[failing:])


def test_an_error_does_not_hide_finished_trials_of_an_optimizer():
    optimizer = Optimizer(LINE, options=QUICK)
    with pytest.raises(BreakdownError, match="no power"):
        minimize(breaks_at(2, BreakdownError("no power")), optimizer=optimizer, n_trials=5)
    assert len(optimizer.trials) == 2
    assert len(optimizer.errors) == 1
    assert len(minimize(bowl, optimizer=optimizer, n_trials=4).trials) == 4
    optimizer.forget(optimizer.pending[0])
    assert (optimizer.errors, optimizer.pending) == ((), ())


def test_a_wrong_return_value_is_an_error_too():
    with pytest.raises(InputError, match="must be a number") as found:
        minimize(lambda params: "abc" if params["x"] > 0.5 else bowl(params), LINE, n_trials=9, options=QUICK)
    assert found.value.result.errors[0].error.startswith("InputError")


# --- the file of the state ---------------------------------------------------------------------------


def no_trial(params):
    raise AssertionError("nothing may be tried")


def test_a_file_that_cannot_be_written_is_refused_before_the_first_trial(tmp_path):
    (tmp_path / "folder").mkdir()
    for state in (tmp_path / "folder", tmp_path / "missing" / "state.json", "/proc/state.json"):
        with pytest.raises(InputError, match="`state` must be a file"):
            minimize(no_trial, LINE, n_trials=3, state=state, options=QUICK)


def test_the_state_of_another_problem_is_never_overwritten(tmp_path):
    state = tmp_path / "state.json"
    minimize(bowl, LINE, n_trials=3, state=state, options=QUICK)
    before = state.read_text()
    with pytest.raises(InputError, match="has another space"):
        minimize(no_trial, {"y": (0.0, 1.0)}, n_trials=3, state=state, options=QUICK)
    with pytest.raises(InputError, match="has another space"):
        minimize(no_trial, optimizer=Optimizer({"y": (0.0, 1.0)}, options=QUICK), n_trials=3, state=state)
    with pytest.raises(InputError, match="has 3 others"):
        minimize(no_trial, optimizer=Optimizer(LINE, options=QUICK), n_trials=3, state=state)
    assert state.read_text() == before
    mine = Optimizer.load(state)
    assert len(minimize(bowl, optimizer=mine, n_trials=4, state=state).trials) == 4


def damage_reason(state, **fields):
    why = {"mode": "gain", "value": 0.1, "success_probability": 0.9} | fields
    state.update(pending=[{"number": 0, "params": {"x": 0.5}, "why": why}])


DAMAGES = {
    "trials[1].objective": lambda state: state["trials"][1].update(objective="abc"),
    "trials[0].objective": lambda state: state["trials"][0].update(objective=math.nan),
    "trials[2].objective": lambda state: state["trials"][2].update(objective=1e200),
    "trials[0].params": lambda state: state["trials"][0].update(params={"x": 99.0}),
    "trials[0].number": lambda state: state["trials"][0].update(number=-1),
    "trials[0].reason": lambda state: state["trials"][0].update(reason=3),
    "trials[0].constraints": lambda state: state["trials"][0].update(constraints={"reach": 1.0}),
    "trials[1]": lambda state: state["trials"].__setitem__(1, []),
    "trials": lambda state: state.update(trials={}),
    "asked": lambda state: state.update(asked=-3),
    "seed": lambda state: state.update(seed="0"),
    "space": lambda state: state.update(space={"parameters": 3}),
    "pending": lambda state: state.update(pending=None),
    "pending[0].params": lambda state: state.update(pending=[{"number": 1, "params": {}, "why": {}}]),
    "errors": lambda state: state.update(errors={"1": 3}),
    "strategy": lambda state: state.update(strategy=None),
    "direction": lambda state: state.pop("direction"),
    "acquisition": lambda state: state.update(acquisition=3),
    "options": lambda state: state["options"].update(colour="red"),
    "pending[0].why": lambda state: damage_reason(state, correlation=0.5),
    "pending[0].why.mode": lambda state: damage_reason(state, mode=None),
    "pending[0].why.value": lambda state: damage_reason(state, value="high"),
    "pending[0].why.success_probability": lambda state: damage_reason(state, success_probability=None),
    "pending[0].why.thresholds": lambda state: damage_reason(state, thresholds={"objective": "low"}),
    "pending[0].why.deviations": lambda state: damage_reason(state, deviations=[1.0]),
    "pending[0].why.relation": lambda state: damage_reason(state, relation={"high": None}),
    "pending[0].why.seconds": lambda state: damage_reason(state, seconds="1"),
    "constraints[0]": lambda state: state.update(constraints=[3]),
    "initial_points[0]": lambda state: state.update(initial_points=[{"x": "low"}]),
}


@pytest.mark.parametrize("field", DAMAGES)
def test_a_damaged_state_is_refused_by_its_field(tmp_path, field):
    state = tmp_path / "state.json"
    optimizer = Optimizer(LINE, options=QUICK)
    for x in (0.1, 0.2, 0.3):
        optimizer.tell({"x": x}, x)
    data = optimizer.to_json()
    DAMAGES[field](data)
    state.write_text(json.dumps(data))
    with pytest.raises(InputError, match=re.escape(f"field `{field}`")) as found:
        minimize(no_trial, LINE, n_trials=5, state=state, options=QUICK)
    assert "\n" not in str(found.value)


DAMAGES_OF_VERSION_0_1 = {
    "options": lambda state: state.update(options={"fixed": 3}),
    "acquisition": lambda state: state.update(acquisition=[]),
    "pending[0]": lambda state: state.update(pending=[3]),
    "pending[0].why.value": lambda state: state["pending"][0]["why"].update(value="high"),
    "trials[0].objective": lambda state: state["trials"][0].update(objective=10**400),
    "errors": lambda state: state.update(errors={"--1": "no"}),
    "constraints[0]": lambda state: state["constraints"][0].update(limit=1.0),
}


@pytest.mark.parametrize("field", DAMAGES_OF_VERSION_0_1)
def test_a_damaged_state_of_version_0_1_is_refused_by_its_field(field):
    state = json.loads((Path(__file__).parent / "data" / "state-0.1.json").read_text())
    assert len(Optimizer.from_json(state).trials) == 6
    DAMAGES_OF_VERSION_0_1[field](state)
    with pytest.raises(InputError, match=re.escape(f"field `{field}`")):
        Optimizer.from_json(state)


def test_a_number_is_pending_once():
    state = Optimizer(LINE, options=QUICK).to_json()
    point = {"number": 0, "params": {"x": 0.5}, "why": {"mode": "given"}}
    assert len(Optimizer.from_json(state | {"pending": [point, point | {"number": 1}]}).pending) == 2
    with pytest.raises(InputError, match="field `pending` must have each number once"):
        Optimizer.from_json(state | {"pending": [point, point]})


@pytest.mark.parametrize("content", [b"\x00\xff\xfe binary", b"", b"[1, 2", b"[" * 100_000, b"3", b"{}"])
def test_a_file_that_is_no_state_is_refused(tmp_path, content):
    state = tmp_path / "state.json"
    state.write_bytes(content)
    with pytest.raises(InputError):
        minimize(no_trial, LINE, n_trials=5, state=state, options=QUICK)
    assert state.read_bytes() == content


def test_a_failing_callback_loses_nothing(tmp_path):
    def fails(optimizer, trial):
        raise BreakdownError

    with pytest.raises(BreakdownError):
        minimize(bowl, LINE, n_trials=5, callbacks=[fails], state=tmp_path / "state.json", options=QUICK)
    assert len(Optimizer.load(tmp_path / "state.json").trials) == 1


def test_progress_goes_to_stderr(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        minimize(often_crashing, LINE, n_trials=4, progress=True, options=QUICK)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert "4/4" in printed.err
    assert "crashed" in printed.err
    minimize(bowl, LINE, n_trials=1, progress=False)
    minimize(bowl, LINE, n_trials=1)
    assert capsys.readouterr() == ("", "")


def test_it_is_public():
    assert crashbo.minimize is minimize
    assert isinstance(minimize(bowl, LINE, n_trials=1), crashbo.Result)
