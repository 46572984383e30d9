"""What the optimizer turns, and what it is told."""

import json
import pickle
from dataclasses import replace
from importlib.resources import files

import numpy as np
import pytest

import crashbo
from crashbo.errors import InputError
from crashbo.problem.outcome import CRASHED, VIOLATED
from crashbo.research.problems.pole import POLES, PoleTuning, lqr_gains, repeat, rollout
from crashbo.research.problems.pole.reference import grid_reference
from crashbo.research.problems.pole.rollout import FELL, TOO_FAR, TOO_FAST
from crashbo.research.problems.pole.tuning import PAPER_RANGES, ROBOT, Evaluation, weights

GOOD = {"x1": 0.7375, "x2": 0.2625}
LAZY = {"x1": 0.0, "x2": 1.0}
WILD = {"x1": 1.0, "x2": 0.0}
OLD = POLES["robot2d-v1"]


def test_two_weights():
    assert weights({"x1": 0.75, "x2": 0.0}) == (pytest.approx([1, 10**0.5, 1, 1]), pytest.approx(10**-1.75))
    assert weights({"x1": 0.0, "x2": 1.0}) == (pytest.approx([1.0, 0.1, 1.0, 1.0]), pytest.approx(10.0))


def test_two_weights_in_the_papers_ranges():
    half, end = {"x1": 0.5, "x2": 0.25}, {"x1": 0.0, "x2": 1.0}
    assert weights(half, PAPER_RANGES) == (pytest.approx([1.0, 100.0, 1.0, 1.0]), pytest.approx(0.1))
    assert weights(end, PAPER_RANGES) == (pytest.approx([1.0, 1.0, 1.0, 1.0]), pytest.approx(100.0))


def test_five_weights():
    params = {"x1": 0.0, "x2": 0.25, "x3": 0.5, "x4": 1.0, "x5": 0.5}
    assert weights(params) == (pytest.approx([0.1, 10**-0.5, 1.0, 10.0]), pytest.approx(10**-0.375))
    assert weights(params, PAPER_RANGES) == (pytest.approx([1.0, 10.0, 100.0, 1e4]), pytest.approx(1.0))


def test_the_square_lies_in_the_cube():
    """The same weights give the same gains in both spaces."""
    five = {"x1": 0.5, "x2": GOOD["x1"], "x3": 0.5, "x4": 0.5, "x5": GOOD["x2"]}
    assert POLES["robot5d"].gains(five) == pytest.approx(POLES["robot2d"].gains(GOOD), rel=1e-12)
    assert OLD.gains(GOOD) == pytest.approx(lqr_gains([1, 10 ** (4 * 0.7375), 1, 1], 10 ** (4 * 0.2625 - 2)))


def test_the_robot_of_version_0_1_stays_as_it_was():
    assert OLD.rollout({"x1": 0.31, "x2": 0.39}, 0).cost == pytest.approx(0.8124696794797412, rel=1e-9)
    assert POLES["robot5d-v1"].settings == OLD.settings


def test_two_weights_gain_a_factor_five_gain_over_two_and_roll_outs_repeat():
    """What the robot was chosen for, see docs/robot.md."""
    reference = grid_reference()
    five = repeat(POLES["robot5d"], reference.five, range(40))
    two = repeat(POLES["robot2d"], reference.best, range(40))
    safe = [rollout(ROBOT.safe_gains, seed, ROBOT) for seed in range(5)]
    assert two.stable
    assert five.stable
    assert not any(one.failed for one in safe)
    assert np.mean([one.cost for one in safe]) > 5 * two.mean
    assert five.mean < 0.75 * two.mean
    assert two.std < 0.03 * two.mean
    assert five.std < 0.03 * five.mean


@pytest.mark.parametrize("name", ["robot2d", "robot5d"])
def test_a_fifth_to_three_fifths_of_random_points_crash_in_every_way(name):
    tuning = POLES[name].without_recovery()
    points = tuning.space.sample(150, np.random.default_rng(0))
    reasons = [tuning.rollout(params, number).reason for number, params in enumerate(points)]
    assert 0.2 < np.mean([bool(one) for one in reasons]) < 0.6
    assert {FELL, TOO_FAR, TOO_FAST} <= set(reasons)


@pytest.mark.parametrize("name", ["robot2d", "robot2d-mixed"])
def test_a_success_is_told_with_its_values(name):
    tuning = POLES[name]
    outcome, told = tuning.rollout(GOOD, 1), tuning.evaluate(GOOD, 1)
    assert told.objective == outcome.cost
    assert told.constraints == ({"reach": 100 * outcome.reach} if tuning.mixed else {})
    assert told.reason == ""
    assert 0.6 < told.objective < 0.9


@pytest.mark.parametrize(("params", "reason"), [(LAZY, TOO_FAR), (WILD, TOO_FAST)])
def test_any_failure_is_a_crash_and_no_more(params, reason):
    told = POLES["robot2d"].evaluate(params, 0)
    assert (told.objective, told.constraints, told.reason) == (CRASHED, {}, reason)


def test_a_reach_that_was_cut_short_is_not_told():
    too_fast = POLES["robot2d-mixed"].evaluate(WILD, 0)
    assert (too_fast.objective, too_fast.constraints, too_fast.reason) == (CRASHED, {}, TOO_FAST)


def test_a_roll_out_that_breaks_the_reach_limit_alone_goes_on_and_has_a_cost():
    tuning = POLES["robot2d-mixed"]
    outcome, told = tuning.rollout(LAZY, 0), tuning.evaluate(LAZY, 0)
    assert outcome.reach > 0.2
    assert outcome.seconds == ROBOT.duration
    assert (told.objective, told.constraints, told.reason) == (outcome.cost, {"reach": VIOLATED}, "")
    assert tuning.failure(outcome) == TOO_FAR
    assert tuning.failure(tuning.rollout(GOOD, 1)) == ""
    assert POLES["robot2d"].failure(outcome) == ""
    points = tuning.space.sample(60, np.random.default_rng(0))
    told = [tuning.without_recovery().evaluate(params, number) for number, params in enumerate(points)]
    kinds = {(one.objective is CRASHED, one.constraints.get("reach") is VIOLATED) for one in told}
    assert kinds == {(False, False), (False, True), (True, False)}  # no crash is due to the reach


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
    assert POLES["robot2d-mixed"].thresholds == {"reach": 5.0}
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
    stored = json.loads(files("crashbo.research.problems.pole").joinpath("reference.json").read_text())
    stored, settings = stored["robot2d"], POLES["robot2d"].settings
    assert reference.summary() == stored
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
