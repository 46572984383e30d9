"""What runs on the robot's computer: angle readings, filters, control law.

The same code drives the simulated plant and the MuJoCo one. All functions compile; what they remember
from step to step lies in one array, `new_memory()`.
"""

from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.signal import butter

from crashbo.problem.arrays import Array
from crashbo.research.problems.pole.compiled import compiled
from crashbo.research.problems.pole.plant import STEP

Filter: TypeAlias = tuple[float, float, float, float, float]

SAMPLE_STEPS = 5
"""Steps from one reading of the angle to the next: 5 ms."""
SAMPLE = SAMPLE_STEPS * STEP
SATURATION = 3.0
"""The arm follows no larger acceleration, m/s^2."""
INTEGRAL_GAIN = -0.3
"""On the integral of the position, against drift; never tuned."""

# Places in the memory.
READING, ANGLE, RATE, INTEGRAL, ACCELERATION = range(5)
_ANGLE_FILTER, _RATE_FILTER, _ACCELERATION_FILTER = 5, 7, 9


Weights: TypeAlias = tuple[float, float, float, float, float]
COST: Weights = (1.0, 6.0, 1.0, 1.0, 0.25)
"""The paper's weights on angle, rate, position and velocity, as the robot knows them, and on the command."""


class Filters(NamedTuple):
    """Second-order Butterworth filters: 10 Hz on angle and rate, 20 Hz on the commanded acceleration."""

    angle: Filter
    acceleration: Filter


def butterworth(cutoff: float, rate: float) -> Filter:
    """Return `b0, b1, b2, a1, a2` of a second-order low-pass; `cutoff` and sampling `rate` in Hz."""
    numerator, denominator = butter(2, cutoff, fs=rate)
    b0, b1, b2 = (float(value) for value in numerator)
    return b0, b1, b2, float(denominator[1]), float(denominator[2])


FILTERS = Filters(butterworth(10.0, 1 / SAMPLE), butterworth(20.0, 1 / STEP))


def new_memory() -> Array:
    """Memory of a robot at rest with the pole upright."""
    return np.zeros(11)


@compiled
def filtered(value: float, memory: Array, place: int, coefficients: Filter) -> float:
    """Push a value through a filter whose two delays lie at `place` (transposed direct form II)."""
    b0, b1, b2, a1, a2 = coefficients
    output = b0 * value + memory[place]
    memory[place] = b1 * value - a1 * output + memory[place + 1]
    memory[place + 1] = b2 * value - a2 * output
    return output


@compiled
def sense(memory: Array, reading: float, filters: Filters) -> None:
    """Take in a reading of the angle: filter it, and its difference quotient for the rate."""
    quotient = (reading - memory[READING]) / SAMPLE
    memory[READING] = reading
    memory[ANGLE] = filtered(reading, memory, _ANGLE_FILTER, filters.angle)
    memory[RATE] = filtered(quotient, memory, _RATE_FILTER, filters.angle)


@compiled
def command(memory: Array, gains: Array, position: float, velocity: float, filters: Filters) -> float:
    """Return the acceleration to follow, in the range the arm can.

    The monitor's acceleration is what was commanded *before* saturation, filtered: after it, no
    controller could reach a limit as large as the saturation, however wild.

    Math: `u = -(F [angle, rate, position, velocity] + INTEGRAL_GAIN integral(position))`
    """
    memory[INTEGRAL] += STEP * position
    wanted = -(
        gains[0] * memory[ANGLE]
        + gains[1] * memory[RATE]
        + gains[2] * position
        + gains[3] * velocity
        + INTEGRAL_GAIN * memory[INTEGRAL]
    )
    memory[ACCELERATION] = filtered(wanted, memory, _ACCELERATION_FILTER, filters.acceleration)
    return min(SATURATION, max(-SATURATION, wanted))


@compiled
def account(
    totals: Array,
    memory: Array,
    position: float,
    velocity: float,
    u: float,
    limits: Array,
    weights: Weights,
    sampling: bool,
) -> bool:
    """Add up cost and largest values after a step; return whether all is within the limits.

    Args:
        totals: summed cost, largest reach, largest acceleration; changed.
        memory: of the software.
        position, velocity, u: of the end-effector.
        limits: on angle reading, reach and acceleration.
        weights: of the cost.
        sampling: whether this step began a sample: the cost is summed over samples.
    """
    if sampling:
        totals[0] += (
            weights[0] * memory[ANGLE] ** 2
            + weights[1] * memory[RATE] ** 2
            + weights[2] * position**2
            + weights[3] * velocity**2
            + weights[4] * u**2
        )
    reach, acceleration = abs(position), abs(memory[ACCELERATION])
    totals[1] = max(totals[1], reach)
    totals[2] = max(totals[2], acceleration)
    return bool(abs(memory[READING]) < limits[0] and reach < limits[1] and acceleration < limits[2])
