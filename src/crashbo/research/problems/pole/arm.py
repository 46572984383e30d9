"""The arm between the commanded acceleration and the hand: a delay, then a second-order lag."""

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy.linalg import expm

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.outcome import is_number
from crashbo.research.problems.pole.compiled import compiled
from crashbo.research.problems.pole.plant import STEP

Lag: TypeAlias = tuple[float, float, float, float, float, float]

_ACCELERATION, _JERK, _PLACE, _QUEUE = range(4)
_LONGEST_DELAY = 1.0


@dataclass(frozen=True)
class Arm:
    """How the hand follows a commanded acceleration.

    Math: `a'' = w^2 (u(t - delay) - a) - 2 damping w a'`, `w = 2 pi frequency`

    Attributes:
        frequency: natural frequency, Hz; infinite for an arm without lag.
        damping: damping ratio.
        delay: from command to response, s; a whole number of steps.
    """

    frequency: float = math.inf
    damping: float = 1.0
    delay: float = 0.0

    def __post_init__(self) -> None:
        for name in ("frequency", "damping"):
            value = getattr(self, name)
            if not (is_number(value) and value > 0):
                raise InputError(f"`{name}` must be a number > 0; got {value!r}.")
        if not (is_number(self.delay) and 0 <= self.delay <= _LONGEST_DELAY):
            raise InputError(f"`delay` must lie between 0 and {_LONGEST_DELAY:g} s; got {self.delay!r}.")

    @property
    def delay_steps(self) -> int:
        """The delay in integration steps."""
        return round(self.delay / STEP)

    @property
    def lag(self) -> Lag:
        """Transition of acceleration and jerk over one step with the command held, row by row, then of the command."""
        if math.isinf(self.frequency):
            return 0.0, 0.0, 0.0, 0.0, 1.0, 0.0
        w = 2 * math.pi * self.frequency
        rates = np.array([[0.0, 1.0, 0.0], [-w * w, -2 * self.damping * w, w * w], [0.0, 0.0, 0.0]])
        step = expm(STEP * rates)
        a, b, c, d, e, f = (float(step[row, column]) for row, column in _ENTRIES)
        return a, b, c, d, e, f

    def new_memory(self) -> Array:
        """Memory of an arm at rest: acceleration, jerk, place in the queue, and the queue of delayed commands."""
        return np.zeros(_QUEUE + self.delay_steps)


_ENTRIES = ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2))


@compiled
def follow(memory: Array, u: float, lag: Lag) -> float:
    """Return the hand's acceleration over the next step for the command `u`; the memory is changed."""
    queued = len(memory) - _QUEUE
    if queued > 0:
        place = int(memory[_PLACE])
        u, memory[_QUEUE + place] = memory[_QUEUE + place], u
        memory[_PLACE] = (place + 1) % queued
    a, b, c, d, e, f = lag
    acceleration, jerk = memory[_ACCELERATION], memory[_JERK]
    memory[_ACCELERATION] = a * acceleration + b * jerk + e * u
    memory[_JERK] = c * acceleration + d * jerk + f * u
    return float(memory[_ACCELERATION])
