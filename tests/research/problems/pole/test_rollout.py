"""Roll-outs: repeatable, cut short at the failure, back to safety after it."""

import math
from dataclasses import replace

import numpy as np
import pytest

from crashbo.errors import InputError
from crashbo.research.problems.pole import POLES, SAFE_GAINS, Plant, Settings, lqr_gains, rollout, simulation
from crashbo.research.problems.pole import plant as plant_module
from crashbo.research.problems.pole.arm import Arm
from crashbo.research.problems.pole.plant import STEP
from crashbo.research.problems.pole.rollout import FELL, MONITOR, TOO_FAR, TOO_FAST, draw_noise
from crashbo.safety import SafetyMonitor

SHORT = Settings(duration=2.0)
WILD = lqr_gains([1, 1e4, 1, 1], 0.01)
LAZY = lqr_gains([1, 1, 1, 1], 100.0)
OVER_SOON = np.zeros(4)


def test_the_safe_gains_balance():
    outcomes = [rollout(SAFE_GAINS, seed) for seed in range(20)]
    assert not any(one.failed for one in outcomes)
    assert np.mean([one.cost for one in outcomes]) == pytest.approx(0.889, rel=0.1)
    assert max(one.reach for one in outcomes) < 0.08
    assert max(one.acceleration for one in outcomes) < 1.0


def test_the_same_seed_gives_the_same_roll_out():
    first, second, other = rollout(SAFE_GAINS, 3), rollout(SAFE_GAINS, 3), rollout(SAFE_GAINS, 4)
    assert (first.cost, first.reach, first.acceleration) == (second.cost, second.reach, second.acceleration)
    for one in ("time", "angle", "rate", "position", "velocity", "command"):
        assert np.array_equal(getattr(first.trajectory, one), getattr(second.trajectory, one))
    assert first.cost != other.cost


def test_a_whole_roll_out_says_what_happened():
    outcome = rollout(SAFE_GAINS, 0, SHORT)
    assert (outcome.failed, outcome.reason, outcome.recovered, outcome.seconds) == (False, "", None, 2.0)
    path = outcome.trajectory
    assert path.time == pytest.approx(np.arange(400) * 0.005)
    assert all(len(getattr(path, one)) == 400 for one in ("angle", "rate", "position", "velocity", "command"))
    assert (path.angle[0], path.rate[0], path.position[0], path.velocity[0]) == (0.0, 0.0, 0.0, 0.0)
    assert np.abs(path.position).max() == pytest.approx(outcome.reach, rel=1e-3)
    assert np.abs(path.angle).max() < 0.044
    # The hand follows the command: position and velocity are its integrals.
    assert np.gradient(path.velocity, path.time)[1:-1] == pytest.approx(path.command[1:-1], abs=0.1)


def test_the_cost_is_that_of_the_trajectory():
    """Up to what filters hide: the robot's own readings of angle and rate lag behind the truth."""
    outcome = rollout(SAFE_GAINS, 1)
    path = outcome.trajectory
    squares = path.angle**2 + 6 * path.rate**2 + path.position**2 + path.velocity**2 + 0.25 * path.command**2
    assert outcome.cost == pytest.approx(squares.sum() / 20.0, rel=0.05)


@pytest.mark.parametrize(
    ("gains", "reason"), [(OVER_SOON, FELL), (LAZY, TOO_FAR), (WILD, TOO_FAST), (-SAFE_GAINS, FELL)]
)
def test_a_failure_stops_the_roll_out_at_once(gains, reason):
    outcome = rollout(gains, 0)
    assert (outcome.failed, outcome.cost, outcome.reason) == (True, None, reason)
    assert 0 < outcome.seconds < 20.0
    limits = MONITOR.limits
    at = round(outcome.seconds / 0.005)
    before = outcome.trajectory
    assert np.abs(before.position[: at - 1]).max() < limits["reach"]
    assert np.abs(before.angle[: at - 1]).max() < limits["angle"] + 4 * 5.2e-5
    assert (outcome.reach >= limits["reach"]) == (reason == TOO_FAR)
    assert (outcome.acceleration >= limits["acceleration"]) == (reason == TOO_FAST)
    if reason == TOO_FAR:  # at the first step beyond, not later
        assert outcome.reach < limits["reach"] + 1.0 * STEP


def test_values_measured_up_to_a_failure_do_not_see_the_recovery():
    with_recovery, without = rollout(WILD, 0), rollout(WILD, 0, Settings(recover=False))
    assert (with_recovery.reach, with_recovery.acceleration, with_recovery.seconds) == (
        without.reach,
        without.acceleration,
        without.seconds,
    )
    assert without.recovered is None
    assert len(without.trajectory.time) == math.ceil(without.seconds / 0.005)
    assert len(with_recovery.trajectory.time) > len(without.trajectory.time)


@pytest.mark.parametrize("gains", [LAZY, WILD])
def test_the_safe_controller_regains_balance(gains):
    outcome = rollout(gains, 0)
    assert outcome.recovered is True
    path = outcome.trajectory
    assert path.time[-1] >= outcome.seconds + MONITOR.calm - 0.01
    last = path.time > path.time[-1] - 0.9
    assert np.abs(path.angle[last]).max() < 0.044
    assert np.abs(path.position[last]).max() < 0.13


def test_the_emergency_stop_ends_what_cannot_be_saved():
    late = replace(MONITOR, limits=dict(MONITOR.limits, angle=0.19))  # the safe controller is called too late
    outcome = rollout(OVER_SOON, 0, Settings(monitor=replace(late, stops={"angle": 0.2, "reach": 0.3})))
    assert (outcome.reason, outcome.recovered) == (FELL, False)
    impatient = rollout(LAZY, 0, Settings(monitor=replace(MONITOR, patience=0.2)))
    assert impatient.recovered is False
    assert impatient.trajectory.time[-1] <= impatient.seconds + 0.21


def test_a_marginal_controller_balances_at_a_very_high_cost():
    """On the edge to oscillation: no limit is reached, but the cost is that of dozens of good controllers."""
    outcome = rollout(POLES["robot2d-v1"].gains({"x1": 0.65, "x2": 0.388}), 0)
    assert not outcome.failed
    assert outcome.cost > 25 * rollout(SAFE_GAINS, 0).cost
    assert 1.0 < outcome.acceleration < 3.0


def test_the_compiled_loop_is_the_plain_one(monkeypatch):
    settings = Settings(duration=0.3, arm=Arm(10.0, 0.5, 0.02))
    compiled = rollout(SAFE_GAINS, 5, settings)
    if not hasattr(simulation.advance, "py_func"):
        pytest.skip("numba is not installed: the loop is the plain one")
    monkeypatch.setattr(simulation, "advance", simulation.advance.py_func)
    for name in ("sense", "command", "account", "pole_step", "follow"):
        monkeypatch.setattr(simulation, name, getattr(simulation, name).py_func)
    monkeypatch.setattr(plant_module, "angular_acceleration", plant_module.angular_acceleration.py_func)
    plain = rollout(SAFE_GAINS, 5, settings)
    assert plain.cost == pytest.approx(compiled.cost, rel=1e-9)
    assert plain.trajectory.angle == pytest.approx(compiled.trajectory.angle, abs=1e-12)


def test_steps_in_portions_are_the_same_steps():
    settings = Settings(duration=1.0, arm=Arm(10.0, 0.5, 0.02))
    whole, parts = simulation.SimulatedRobot(settings, 2), simulation.SimulatedRobot(settings, 2)
    free = np.full(3, np.inf)
    whole.run(SAFE_GAINS, free, 1000)
    for steps in (1, 2, 3, 5, 4, 85, 400, 500):
        parts.run(SAFE_GAINS, free, steps)
    assert whole.step == parts.step == 1000
    assert np.array_equal(whole.record, parts.record)
    assert np.array_equal(whole.totals, parts.totals)


def test_noise_levels():
    settings = Settings(duration=45.0)
    pushes, errors = draw_noise(settings, 0)
    assert len(pushes) == 5 * len(errors) >= 45_000
    assert pushes.std() * math.sqrt(STEP) == pytest.approx(0.03, rel=0.02)
    assert errors.std() == pytest.approx(5.2e-5, rel=0.05)
    assert np.corrcoef(pushes[:-1], pushes[1:])[0, 1] == pytest.approx(0.0, abs=0.02)


def test_without_noise_nothing_moves():
    outcome = rollout(SAFE_GAINS, 0, Settings(duration=1.0, process_noise=0.0, sensor_noise=0.0))
    assert (outcome.cost, outcome.reach, outcome.acceleration) == (0.0, 0.0, 0.0)


def test_the_cost_of_a_linear_loop_grows_with_the_square_of_the_noise():
    quiet = rollout(SAFE_GAINS, 0, Settings(process_noise=0.01, sensor_noise=0.0))
    loud = rollout(SAFE_GAINS, 0, Settings(process_noise=0.02, sensor_noise=0.0))
    assert loud.cost == pytest.approx(4 * quiet.cost, rel=1e-3)


def test_an_offset_of_the_readings_moves_the_hand_away():
    """At rest the true angle is 0, the reading the offset: then `F_angle offset + F_position position` is 0."""
    still = Settings(duration=20.0, process_noise=0.0, sensor_noise=0.0)
    position = rollout(SAFE_GAINS, 0, replace(still, angle_offset=1e-3)).trajectory.position
    assert position[1000] == pytest.approx(-1e-3 * SAFE_GAINS[0] / SAFE_GAINS[2], rel=0.35)
    assert np.abs(rollout(SAFE_GAINS, 0, still).trajectory.position).max() == 0.0


def test_taps_come_from_both_sides_at_fixed_times_and_set_the_pole_turning():
    settings = Settings(duration=20.0, process_noise=0.0, sensor_noise=0.0, tap=0.05, tap_interval=5.0)
    pushes, _ = draw_noise(settings, 0)
    turned = pushes.cumsum() * STEP
    assert [float(turned[round(time / STEP)]) for time in (2.4, 2.6, 7.6, 12.6, 17.6)] == pytest.approx(
        [0, 0.05, 0, 0.05, 0]
    )
    assert not pushes[settings.steps :].any()  # none while the safe controller recovers
    rate = rollout(np.zeros(4), 0, replace(settings, plant=Plant(gravity=0.0, damping=0.0))).trajectory.rate
    assert rate[round(2.55 / 0.005)] == pytest.approx(0.05, rel=1e-6)


def test_the_cost_follows_its_weights():
    plain = rollout(SAFE_GAINS, 0, SHORT)
    position = rollout(SAFE_GAINS, 0, replace(SHORT, cost=(0.0, 0.0, 1.0, 0.0, 0.0)))
    assert position.cost == pytest.approx((plain.trajectory.position**2).sum() / 2.0, rel=0.05)


def test_the_safe_gains_are_those_of_the_settings():
    lost = rollout(WILD, 0, Settings(safe_gains=(0.0, 0.0, 0.0, 0.0)))
    assert (lost.reason, lost.recovered) == (TOO_FAST, False)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tap": -0.1}, "`tap` must be a finite number >= 0; got -0.1."),
        ({"tap_interval": 0.01}, "`tap_interval` must be at least 0.04 s; got 0.01."),
        ({"angle_offset": math.nan}, "`angle_offset` must be a finite number; got nan."),
        ({"cost": (1.0, 2.0)}, "`cost` must be 5 finite numbers; got (1.0, 2.0)."),
        ({"safe_gains": (1.0, 2.0, math.inf, 0.0)}, "`safe_gains` must be 4 finite numbers; got"),
        ({"duration": 0.0}, "`duration` must lie between 0.005 and 3600 s; got 0.0."),
        ({"duration": math.nan}, "`duration` must lie between"),
        ({"duration": "20"}, "`duration` must lie between"),
        ({"process_noise": -1.0}, "`process_noise` must be a finite number >= 0; got -1.0."),
        ({"sensor_noise": math.inf}, "`sensor_noise` must be a finite number >= 0; got inf."),
        ({"monitor": SafetyMonitor({"angle": 1.0})}, "`monitor` must limit angle, reach, acceleration; got ['angle']."),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(InputError) as error:
        Settings(**settings)
    assert message in str(error.value)


@pytest.mark.parametrize("gains", [[1, 2, 3], [1, 2, 3, math.nan], "gains", None, [[1, 2, 3, 4]]])
def test_bad_gains_are_refused(gains):
    with pytest.raises(InputError, match="`gains` must be four finite numbers; got"):
        rollout(gains, 0)


def test_gravity_matters():
    assert rollout(OVER_SOON, 0, Settings(plant=Plant(gravity=1e-9), duration=1.0)).reason == ""
