"""What the optimizer turns, and what it is told."""

import json
import pickle
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

import crashbo
from crashbo.errors import InputError
from crashbo.outcome import CRASHED, VIOLATED
from crashbo.problems.pole import POLES, PoleTuning, lqr_gains, repeat
from crashbo.problems.pole.reference import grid_reference
from crashbo.problems.pole.rollout import TOO_FAR, TOO_FAST
from crashbo.problems.pole.tuning import Evaluation, weights

GOOD = {"x1": 0.3375, "x2": 0.4125}
LAZY = {"x1": 0.0, "x2": 1.0}
WILD = {"x1": 1.0, "x2": 0.0}


def test_two_weights():
    assert weights({"x1": 0.5, "x2": 0.25}) == (pytest.approx([1.0, 100.0, 1.0, 1.0]), pytest.approx(0.1))
    assert weights({"x1": 0.0, "x2": 1.0}) == (pytest.approx([1.0, 1.0, 1.0, 1.0]), pytest.approx(100.0))


def test_five_weights():
    params = {"x1": 0.0, "x2": 0.25, "x3": 0.5, "x4": 1.0, "x5": 0.5}
    assert weights(params) == (pytest.approx([1.0, 10.0, 100.0, 1e4]), pytest.approx(1.0))


def test_the_square_lies_in_the_cube():
    """The same weights give the same gains in both spaces."""
    five = {"x1": 0.0, "x2": GOOD["x1"], "x3": 0.0, "x4": 0.0, "x5": GOOD["x2"]}
    assert POLES["robot5d"].gains(five) == pytest.approx(POLES["robot2d"].gains(GOOD), rel=1e-12)
    assert POLES["robot2d"].gains(GOOD) == pytest.approx(
        lqr_gains([1, 10 ** (4 * 0.3375), 1, 1], 10 ** (4 * 0.4125 - 2))
    )


@pytest.mark.parametrize("name", ["robot2d", "robot2d-mixed"])
def test_a_success_is_told_with_its_values(name):
    tuning = POLES[name]
    outcome, told = tuning.rollout(GOOD, 1), tuning.evaluate(GOOD, 1)
    assert told.objective == outcome.cost
    assert told.constraints == ({"reach": 100 * outcome.reach} if tuning.mixed else {})
    assert told.reason == ""
    assert 0.4 < told.objective < 1.3


@pytest.mark.parametrize(("params", "reason"), [(LAZY, TOO_FAR), (WILD, TOO_FAST)])
def test_any_failure_is_a_crash_and_no_more(params, reason):
    told = POLES["robot2d"].evaluate(params, 0)
    assert (told.objective, told.constraints, told.reason) == (CRASHED, {}, reason)


def test_a_reach_that_was_cut_short_is_not_told():
    tuning = POLES["robot2d-mixed"]
    too_far, too_fast = tuning.evaluate(LAZY, 0), tuning.evaluate(WILD, 0)
    assert (too_far.objective, too_far.constraints) == (CRASHED, {"reach": VIOLATED})
    assert (too_fast.objective, too_fast.constraints) == (CRASHED, {})


def test_a_roll_out_that_breaks_the_reach_limit_alone_has_a_cost():
    tuning = POLES["robot2d-mixed"]
    outcome = replace(tuning.rollout(GOOD, 1), reach=0.2)
    told = tuning.told(outcome)
    assert (told.objective, told.constraints, told.reason) == (outcome.cost, {"reach": VIOLATED}, "")
    assert tuning.failure(outcome) == TOO_FAR
    assert tuning.failure(tuning.rollout(GOOD, 1)) == ""
    assert POLES["robot2d"].failure(outcome) == ""
    far = [tuning.rollout(params, 0) for params in tuning.space.sample(25, np.random.default_rng(0))]
    assert max(one.reach for one in far) > 0.25  # it went on beyond the limit


@pytest.mark.parametrize("name", ["robot2d", "robot2d-mixed", "robot5d"])
def test_the_optimizer_takes_what_it_is_told(name):
    tuning = POLES[name]
    optimizer = crashbo.Optimizer(tuning.space, constraints=tuning.constraints)
    for number, params in enumerate(tuning.space.sample(6, np.random.default_rng(0))):
        told = tuning.evaluate(params, number)
        trial = optimizer.tell(params, told.objective, reason=told.reason, **told.constraints)
        assert trial.crashed == (told.objective is CRASHED)
    assert len(optimizer.trials) == 6


def test_the_hidden_limit_is_in_the_units_told():
    assert POLES["robot2d-mixed"].thresholds == {"reach": 13.0}
    assert POLES["robot2d"].thresholds == {}


def test_without_recovery_only_the_recovery_is_missing():
    tuning = POLES["robot2d"]
    assert tuning.rollout(WILD, 0).recovered is True
    assert tuning.without_recovery().rollout(WILD, 0).recovered is None
    assert tuning.without_recovery().evaluate(WILD, 0) == tuning.evaluate(WILD, 0)


def test_repeated_roll_outs():
    good = repeat(POLES["robot2d"], GOOD, range(5))
    assert good.stable
    assert len(good.costs) == 5
    assert good.costs[2] == POLES["robot2d"].evaluate(GOOD, 2).objective
    assert (good.mean, good.std) == (pytest.approx(np.mean(good.costs)), pytest.approx(np.std(good.costs, ddof=1)))
    lazy = repeat(POLES["robot2d"], LAZY, range(3))
    assert (lazy.stable, lazy.costs, lazy.failures) == (False, (), (TOO_FAR,) * 3)
    assert np.isnan(lazy.mean)
    assert np.isnan(Evaluation((1.0,), ()).std)


def test_the_reference_is_what_its_generator_says():
    """The stored best cell, tried again with a part of the generator's own seeds."""
    reference = grid_reference()
    stored = json.loads(files("crashbo.problems.pole").joinpath("reference.json").read_text())
    assert reference.summary() == stored
    settings = POLES["robot2d"].settings
    assert stored["settings"] == {name: getattr(settings, name) for name in stored["settings"]}
    first = reference.seed + reference.repeats
    again = repeat(POLES["robot2d"], reference.best, range(first, first + reference.final_repeats))
    assert again.stable
    assert again.mean == pytest.approx(reference.best_value, rel=1e-6)
    assert reference.best_value < reference.safe_value < reference.largest_value


def test_problems_travel_between_processes():
    for tuning in POLES.values():
        assert pickle.loads(pickle.dumps(tuning)) == tuning


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: PoleTuning("p", dimension=3), "`dimension` must be 2 or 5; got 3."),
        (lambda: PoleTuning("p", physics="paper"), "`physics` must be one of ['mujoco', 'simulation']; got 'paper'."),
        (lambda: weights({"x1": 0.0}), "`params` must be x1 and x2, or x1 to x5; got ['x1']."),
        (lambda: POLES["robot2d"].evaluate({"x1": 2.0, "x2": 0.0}, 0), "`x1` must lie in [0.0, 1.0]; got 2.0."),
        (lambda: replace(POLES["robot2d"], dimension=0), "`dimension` must be 2 or 5; got 0."),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert message in str(error.value)
