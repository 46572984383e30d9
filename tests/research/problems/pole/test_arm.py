"""The arm against an independent integration of its equation."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from crashbo.errors import InputError
from crashbo.research.problems.pole.arm import Arm, follow
from crashbo.research.problems.pole.plant import STEP


def respond(arm, commands):
    memory, lag = arm.new_memory(), arm.lag
    return np.array([follow(memory, u, lag) for u in commands])


def test_the_lag_is_that_of_its_equation():
    arm, w = Arm(frequency=4.0, damping=0.3), 2 * math.pi * 4.0

    def motion(_, state):
        return [state[1], w * w * (1.0 - state[0]) - 2 * 0.3 * w * state[1]]

    times = STEP * np.arange(1, 501)
    expected = solve_ivp(motion, (0.0, 0.5), [0.0, 0.0], t_eval=times, rtol=1e-10, atol=1e-12).y[0]
    assert respond(arm, np.ones(500)) == pytest.approx(expected, abs=1e-7)
    assert expected.max() > 1.3  # it overshoots


def test_the_delay_is_that_of_the_command():
    commands = np.random.default_rng(0).normal(size=300)
    prompt, late = respond(Arm(10.0, 0.5), commands), respond(Arm(10.0, 0.5, delay=0.02), commands)
    assert not late[:20].any()
    assert np.array_equal(late[20:], prompt[:-20])


def test_without_lag_and_delay_the_hand_follows_exactly():
    commands = np.random.default_rng(0).normal(size=50)
    assert np.array_equal(respond(Arm(), commands), commands)
    assert np.array_equal(respond(Arm(delay=0.003), commands)[3:], commands[:-3])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"frequency": 0.0}, "`frequency` must be a number > 0; got 0.0."),
        ({"damping": -1.0}, "`damping` must be a number > 0; got -1.0."),
        ({"delay": 2.0}, "`delay` must lie between 0 and 1 s; got 2.0."),
        ({"delay": math.nan}, "`delay` must lie between 0 and 1 s; got nan."),
    ],
)
def test_bad_arms_are_refused(values, message):
    with pytest.raises(InputError) as error:
        Arm(**values)
    assert message in str(error.value)
