"""The pole on the robot's hand: its parameters and its equation of motion.

State: pole angle `angle` (rad, 0 is upright) and its `rate`, end-effector `position` (m) and `velocity`.
The arm follows a commanded acceleration `u` (m/s^2) along a line.
"""

import math
from dataclasses import dataclass, fields

from crashbo.errors import InputError
from crashbo.problem.outcome import is_number
from crashbo.research.problems.pole.compiled import compiled

STEP = 1e-3
"""Length of an integration step, in seconds."""


@dataclass(frozen=True)
class Plant:
    """The pole and what holds it.

    Attributes:
        length: of the pole, m. Only drawn: the motion follows from the others.
        mass: of the pole, kg.
        centre: of mass, m from the hand.
        inertia: about the hand, kg m^2.
        damping: of the hinge, N m s.
        gravity: m/s^2.
    """

    length: float = 1.067
    mass: float = 0.2903
    centre: float = 0.636666
    inertia: float = 0.117671
    damping: float = 0.0116037
    gravity: float = 9.81

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            smallest = 0.0 if one.name in ("damping", "gravity") else math.ulp(0.0)
            if not (is_number(value) and math.isfinite(value) and value >= smallest):
                rule = ">= 0" if smallest == 0.0 else "> 0"
                raise InputError(f"`{one.name}` must be a finite number {rule}; got {value!r}.")

    @property
    def pull(self) -> float:
        """How gravity tips the pole: `mass gravity centre / inertia`, 15.4084 1/s^2."""
        return self.mass * self.gravity * self.centre / self.inertia

    @property
    def drive(self) -> float:
        """How the hand's acceleration turns the pole: `mass centre / inertia`, 1.57068 1/m."""
        return self.mass * self.centre / self.inertia

    @property
    def friction(self) -> float:
        """How the hinge slows it: `damping / inertia`, 0.0986 1/s."""
        return self.damping / self.inertia

    @property
    def rates(self) -> tuple[float, float, float]:
        """`pull`, `drive` and `friction`, as the inner loop takes them."""
        return self.pull, self.drive, self.friction


@compiled
def angular_acceleration(angle: float, rate: float, u: float, push: float, rates: tuple[float, float, float]) -> float:
    """Return the pole's angular acceleration.

    Math: `pull sin(angle) - drive u cos(angle) - friction rate + push`
    """
    pull, drive, friction = rates
    return pull * math.sin(angle) - drive * u * math.cos(angle) - friction * rate + push


@compiled
def pole_step(
    angle: float, rate: float, u: float, push: float, rates: tuple[float, float, float]
) -> tuple[float, float]:
    """Advance the pole by one step of `STEP`, `u` and `push` held: a classical Runge-Kutta step."""
    half = 0.5 * STEP
    first = angular_acceleration(angle, rate, u, push, rates)
    second = angular_acceleration(angle + half * rate, rate + half * first, u, push, rates)
    third = angular_acceleration(angle + half * (rate + half * first), rate + half * second, u, push, rates)
    fourth = angular_acceleration(angle + STEP * (rate + half * second), rate + STEP * third, u, push, rates)
    return (
        angle + STEP * rate + STEP * STEP / 6.0 * (first + second + third),
        rate + STEP / 6.0 * (first + 2.0 * second + 2.0 * third + fourth),
    )
