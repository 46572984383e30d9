"""Filters and control law of the robot's computer."""

import math

import numpy as np
import pytest
from scipy.signal import butter, lfilter

from crashbo.research.problems.pole.plant import STEP
from crashbo.research.problems.pole.software import (
    ACCELERATION,
    ANGLE,
    COST,
    FILTERS,
    INTEGRAL,
    RATE,
    SAMPLE,
    SATURATION,
    account,
    command,
    filtered,
    new_memory,
    sense,
)

NO_LIMITS = np.full(3, np.inf)


def test_filters_are_those_of_scipy():
    values = np.random.default_rng(0).normal(size=400)
    for coefficients, cutoff, rate in [(FILTERS.angle, 10, 200), (FILTERS.acceleration, 20, 1000)]:
        memory = new_memory()
        ours = [filtered(value, memory, 5, coefficients) for value in values]
        assert ours == pytest.approx(lfilter(*butter(2, cutoff, fs=rate), values), abs=1e-12)


@pytest.mark.parametrize(("hertz", "gain"), [(0.5, 1.0), (10.0, math.sqrt(0.5)), (50.0, 0.02)])
def test_angle_and_rate_pass_ten_hertz(hertz, gain):
    memory, angles, rates = new_memory(), [], []
    time = np.arange(2000) * SAMPLE
    for reading in np.sin(2 * math.pi * hertz * time):
        sense(memory, reading, FILTERS)
        angles.append(memory[ANGLE])
        rates.append(memory[RATE])
    assert np.ptp(angles[1000:]) / 2 == pytest.approx(gain, rel=0.02, abs=0.01)
    quotient = 2 * math.sin(math.pi * hertz * SAMPLE) / SAMPLE  # of a sampled sine
    assert np.ptp(rates[1000:]) / 2 == pytest.approx(gain * quotient, rel=0.02, abs=0.01 * quotient)


def test_the_noise_that_is_left_after_the_filters():
    """White noise through a filter keeps the sum of its squared impulse response."""
    memory, angles, rates = new_memory(), [], []
    for reading in np.random.default_rng(0).normal(0.0, 5.2e-5, 40_000):
        sense(memory, reading, FILTERS)
        angles.append(memory[ANGLE])
        rates.append(memory[RATE])
    b, a = butter(2, 10, fs=200)
    impulse = lfilter(b, a, np.eye(1, 400)[0])
    assert np.std(angles) == pytest.approx(5.2e-5 * np.linalg.norm(impulse), rel=0.05)
    assert np.std(rates) == pytest.approx(5.2e-5 / SAMPLE * np.linalg.norm(np.diff(impulse, prepend=0)), rel=0.05)


def test_the_control_law_by_hand():
    memory = new_memory()
    memory[[ANGLE, RATE, INTEGRAL]] = 0.01, -0.02, 0.5
    gains = np.array([-30.0, -7.0, -2.0, -4.0])
    integral = 0.5 + STEP * 0.03
    expected = 30 * 0.01 - 7 * 0.02 + 2 * 0.03 + 4 * 0.1 + 0.3 * integral
    assert command(memory, gains, 0.03, 0.1, FILTERS) == pytest.approx(expected, rel=1e-12)
    assert memory[INTEGRAL] == pytest.approx(integral)


def test_the_command_saturates_but_the_monitor_sees_what_was_wanted():
    memory = new_memory()
    memory[ANGLE] = 0.5
    gains = np.array([-30.0, 0.0, 0.0, 0.0])
    for _ in range(500):
        assert command(memory, gains, 0.0, 0.0, FILTERS) == SATURATION
    assert memory[ACCELERATION] == pytest.approx(15.0, rel=1e-6)


def test_cost_and_largest_values():
    memory, totals = new_memory(), np.zeros(3)
    memory[[ANGLE, RATE, ACCELERATION]] = 0.1, 0.2, -2.0
    assert account(totals, memory, -0.3, 0.4, 0.5, NO_LIMITS, COST, True)
    cost = 0.1**2 + 6 * 0.2**2 + 0.3**2 + 0.4**2 + 0.25 * 0.5**2
    assert totals == pytest.approx([cost, 0.3, 2.0])
    assert account(totals, memory, 0.1, 0.0, 0.0, NO_LIMITS, COST, False)
    assert totals == pytest.approx([cost, 0.3, 2.0])


@pytest.mark.parametrize(
    ("limits", "inside"),
    [([0.2, 0.4, 3.0], True), ([0.1, 0.4, 3.0], False), ([0.2, 0.3, 3.0], False), ([0.2, 0.4, 2.0], False)],
)
def test_a_limit_counts_when_it_is_reached(limits, inside):
    memory = new_memory()
    memory[0], memory[ACCELERATION] = -0.1, -2.0
    assert account(np.zeros(3), memory, 0.3, 0.0, 0.0, np.array(limits), COST, True) is inside
