"""The pole's motion against formulas and an independent integration."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from crashbo.errors import InputError
from crashbo.research.problems.pole.plant import STEP, Plant, angular_acceleration, pole_step

PLANT = Plant()


def run(plant, angle, rate, steps, u=lambda time: 0.0, push=0.0):
    """Angles and rates of so many steps, `u` held over each."""
    states = [(angle, rate)]
    for number in range(steps):
        angle, rate = pole_step(angle, rate, u(number * STEP), push, plant.rates)
        states.append((angle, rate))
    return np.array(states)


def test_the_rates_are_those_of_the_robot():
    assert PLANT.pull == pytest.approx(15.4084, abs=5e-5)
    assert PLANT.drive == pytest.approx(1.57068, abs=1e-5)
    assert PLANT.friction == pytest.approx(0.0986, abs=5e-5)


def test_acceleration_by_hand():
    expected = 15.4084 * math.sin(0.3) - 1.57068 * 2.0 * math.cos(0.3) - 0.0986 * 0.7 + 0.1
    assert angular_acceleration(0.3, 0.7, 2.0, 0.1, PLANT.rates) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("angle", "rate", "amplitude"), [(0.02, 0.0, 0.0), (0.5, -1.0, 3.0), (3.0, 2.0, 10.0)])
def test_steps_follow_an_independent_integration(angle, rate, amplitude):
    def u(time):
        return amplitude * math.cos(5 * time)

    states = [(angle, rate)]
    for number in range(500):  # u held over each step, as the robot does
        held = u(number * STEP)

        def motion(_, state, held=held):
            return [state[1], 15.4084 * math.sin(state[0]) - 1.57068 * held * math.cos(state[0]) - 0.0986 * state[1]]

        if number % 100 == 0:
            span = solve_ivp(motion, (0.0, STEP), states[-1], rtol=1e-12, atol=1e-14)
            stepped = pole_step(*states[-1], held, 0.0, (15.4084, 1.57068, 0.0986))
            assert stepped == pytest.approx(span.y[:, -1], abs=1e-12)
        states.append(pole_step(*states[-1], held, 0.0, (15.4084, 1.57068, 0.0986)))
    free = solve_ivp(
        lambda t, x: [x[1], 15.4084 * math.sin(x[0]) - 0.0986 * x[1]], (0.0, 0.5), (angle, rate), rtol=1e-11, atol=1e-12
    )
    assert run(PLANT, angle, rate, 500)[-1] == pytest.approx(free.y[:, -1], rel=1e-4)


def test_without_friction_energy_stays():
    plant = Plant(damping=0.0)
    states = run(plant, 0.1, 0.0, 5000)
    energy = 0.5 * states[:, 1] ** 2 + plant.pull * np.cos(states[:, 0])
    assert np.ptp(states[:, 0]) > 5  # it really swings
    assert np.abs(energy - energy[0]).max() < 1e-9


def test_friction_takes_energy_away():
    states = run(PLANT, 0.1, 0.0, 5000)
    energy = 0.5 * states[:, 1] ** 2 + PLANT.pull * np.cos(states[:, 0])
    assert (np.diff(energy) <= 1e-12).all()


def test_small_angles_grow_as_the_linear_model_says():
    pull, _, friction = PLANT.rates
    unstable = -friction / 2 + math.sqrt(friction**2 / 4 + pull)
    states = run(PLANT, 1e-6, 1e-6 * unstable, 1000)
    assert states[-1, 0] == pytest.approx(1e-6 * math.exp(unstable), rel=1e-6)


def test_a_steady_acceleration_holds_the_pole_at_a_lean():
    lean = 0.1
    u = PLANT.pull * math.tan(lean) / PLANT.drive
    assert angular_acceleration(lean, 0.0, u, 0.0, PLANT.rates) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("name", ["length", "mass", "centre", "inertia"])
@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf, "1", True])
def test_bad_plants_are_refused(name, value):
    with pytest.raises(InputError, match=f"`{name}` must be a finite number > 0; got"):
        Plant(**{name: value})


def test_a_plant_may_lack_gravity_and_damping_but_not_have_less():
    assert Plant(gravity=0.0, damping=0.0).rates == (0.0, PLANT.drive, 0.0)
    with pytest.raises(InputError, match=r"`damping` must be a finite number >= 0; got -0\.1"):
        Plant(damping=-0.1)
