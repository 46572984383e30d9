"""Whole runs on the robot: minutes, so `make slow`."""

import pytest

from crashbo.research.problems.pole.reference import grid_reference
from crashbo.research.reproduce.penalties import PENALTIES
from crashbo.research.reproduce.robot import reproduce_robot, run_once

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("strategy", ["paper", "default"])
def test_the_best_guess_balances_and_is_near_the_best_of_the_grid(strategy):
    found = reproduce_robot("robot2d", runs=4, seed=2, strategy=strategy).methods[strategy]
    assert found["stable_runs"] == 4
    assert found["mean_best_value"] < 1.3 * grid_reference().best_value


def test_five_weights_are_tuned_within_eighty_roll_outs():
    run = run_once("robot5d", 2, method="default")
    assert run.stable
    assert run.best_value < 1.3 * grid_reference().best_value


def test_a_penalty_that_is_too_low_crashes_more():
    free, penalised = (run_once("robot2d", 2, method="default", penalty=one) for one in (None, PENALTIES["too low"]))
    assert free.stable
    assert free.crashes < penalised.crashes


def test_the_other_physics_is_tuned_as_well():
    pytest.importorskip("mujoco")
    assert run_once("robot2d-mujoco", 2, method="default").stable
