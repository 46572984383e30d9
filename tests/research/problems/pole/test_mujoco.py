"""The same robot on MuJoCo's physics."""

import sys
from dataclasses import replace

import numpy as np
import pytest

from crashbo.errors import InputError
from crashbo.research.problems.pole import POLES, SAFE_GAINS, Plant, Settings, rollout
from crashbo.research.problems.pole.mujoco import MujocoRobot, mujoco_rollout, pole_xml
from crashbo.research.problems.pole.tuning import ROBOT

SHORT = Settings(duration=2.0)


@pytest.fixture(autouse=True)
def _physics():
    pytest.importorskip("mujoco")


def test_both_physics_tell_the_same_story():
    ours, theirs = rollout(SAFE_GAINS, 3, SHORT), mujoco_rollout(SAFE_GAINS, 3, SHORT)
    assert theirs.cost == pytest.approx(ours.cost, rel=1e-3)
    assert theirs.reach == pytest.approx(ours.reach, rel=1e-3)
    assert theirs.acceleration == pytest.approx(ours.acceleration, rel=1e-3)
    for one in ("angle", "rate", "position", "velocity", "command"):
        mine, other = getattr(ours.trajectory, one), getattr(theirs.trajectory, one)
        assert np.abs(mine - other).max() < 2e-3 * np.abs(mine).max()


def test_both_physics_agree_on_the_robot_that_is_tuned():
    params, soon = {"x1": 0.7375, "x2": 0.2625}, replace(ROBOT, duration=4.0)
    ours = replace(POLES["robot2d"], settings=soon).rollout(params, 3)
    theirs = replace(POLES["robot2d-mujoco"], settings=soon).rollout(params, 3)
    assert theirs.cost == pytest.approx(ours.cost, rel=1e-3)
    assert theirs.reach == pytest.approx(ours.reach, rel=1e-3)


@pytest.mark.parametrize("params", [{"x1": 0.0, "x2": 0.0}, {"x1": 1.0, "x2": 0.0}])
def test_failures_are_the_same_too(params):
    ours, theirs = POLES["robot2d"].rollout(params, 0), POLES["robot2d-mujoco"].rollout(params, 0)
    assert (theirs.reason, theirs.recovered) == (ours.reason, ours.recovered)
    assert theirs.seconds == pytest.approx(ours.seconds, abs=0.02)


def test_the_same_seed_gives_the_same_roll_out():
    first, second = mujoco_rollout(SAFE_GAINS, 1, SHORT), mujoco_rollout(SAFE_GAINS, 1, SHORT)
    assert first.cost == second.cost
    assert np.array_equal(first.trajectory.angle, second.trajectory.angle)


def test_the_free_pole_falls_as_gravity_and_damping_say():
    """Another plant, heavy and damped, with an inertia of its own: small angles grow at the known rate."""
    plant = Plant(length=0.8, mass=0.5, centre=0.4, inertia=0.5 * 0.4**2 + 0.03, damping=0.05)
    robot = MujocoRobot(Settings(plant=plant, process_noise=0.0, sensor_noise=0.0), 0)
    growth = -plant.friction / 2 + np.sqrt(plant.friction**2 / 4 + plant.pull)
    robot._data.qpos[1], robot._data.qvel[1] = 1e-4, 1e-4 * growth
    robot.run(np.zeros(4), np.full(3, np.inf), 500)
    assert robot._data.qpos[1] == pytest.approx(1e-4 * np.exp(0.5 * growth), rel=1e-3)
    assert robot._data.qpos[0] == pytest.approx(0.0, abs=1e-6)


def test_the_model_holds_the_plant():
    import mujoco

    model = mujoco.MjModel.from_xml_string(pole_xml(Plant()))
    assert model.body("pole").mass[0] == pytest.approx(0.2903)
    assert model.body("pole").ipos[2] == pytest.approx(0.636666)
    assert model.joint("hinge").damping[0] == pytest.approx(0.0116037)
    assert model.opt.timestep == pytest.approx(1e-3)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(InputError, match=r"`mujoco` must be installed .* pip install 'crashbo\[mujoco\]'"):
        mujoco_rollout(SAFE_GAINS, 0)
