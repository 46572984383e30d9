"""A roll-out: balance for a while, stop at the moment of failure, fall back to the safe controller.

The cost is that of the paper, `(1/T) sum(s'Qs + u'Ru)`, with the sum over the samples (every 5 ms) and `T`
in seconds: the paper's marginal controller cost 51.64, which a mean over samples within its limits
cannot reach.
"""

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.outcome import is_number
from crashbo.research.problems.pole.arm import Arm
from crashbo.research.problems.pole.lqr import SAFE_GAINS
from crashbo.research.problems.pole.plant import STEP, Plant
from crashbo.research.problems.pole.software import COST, SAMPLE, SAMPLE_STEPS, Weights
from crashbo.safety import Fallback, Phase, SafetyMonitor

FELL, TOO_FAR, TOO_FAST = "pole fell", "end-effector too far", "acceleration too high"
_TAP_STEPS = 20
SIGNALS = ("angle", "reach", "acceleration")

MONITOR = SafetyMonitor(
    limits={"angle": 0.044, "reach": 0.13, "acceleration": 3.0},  # rad, m, m/s^2; hidden from the optimizer
    stops={"angle": 0.2, "reach": 0.3},
    reasons={"angle": FELL, "reach": TOO_FAR, "acceleration": TOO_FAST},
)


@dataclass(frozen=True)
class Settings:
    """The experiment around the controller.

    Attributes:
        duration: of a roll-out, s.
        process_noise: white noise on the pole's angular acceleration, rad/s^2 per root Hz.
        sensor_noise: of an angle reading, rad.
        plant: the pole.
        arm: how the hand follows the command.
        angle_offset: of every angle reading, rad: the robot's idea of upright is off by it.
        tap: how fast each tap sets the pole turning, rad/s; they come from both sides in turn.
        tap_interval: between taps, s; the first comes after half of it.
        cost: weights on angle, rate, position, velocity and command.
        safe_gains: of the controller that takes over after a failure.
        monitor: limits on "angle", "reach" and "acceleration".
        recover: whether to run the safe controller after a failure.
    """

    duration: float = 20.0
    process_noise: float = 0.03
    sensor_noise: float = 5.2e-5
    plant: Plant = field(default_factory=Plant)
    arm: Arm = field(default_factory=Arm)
    angle_offset: float = 0.0
    tap: float = 0.0
    tap_interval: float = 5.0
    cost: Weights = COST
    safe_gains: tuple[float, ...] = tuple(SAFE_GAINS.tolist())
    monitor: SafetyMonitor = MONITOR
    recover: bool = True

    def __post_init__(self) -> None:
        if not (is_number(self.duration) and SAMPLE <= self.duration <= 3600):
            raise InputError(f"`duration` must lie between {SAMPLE} and 3600 s; got {self.duration!r}.")
        for name in ("process_noise", "sensor_noise", "tap"):
            value = getattr(self, name)
            if not (is_number(value) and math.isfinite(value) and value >= 0):
                raise InputError(f"`{name}` must be a finite number >= 0; got {value!r}.")
        for name, count in (("cost", 5), ("safe_gains", 4)):
            values = getattr(self, name)
            if len(values) != count or not all(is_number(one) and math.isfinite(one) for one in values):
                raise InputError(f"`{name}` must be {count} finite numbers; got {values!r}.")
        if not (is_number(self.angle_offset) and math.isfinite(self.angle_offset)):
            raise InputError(f"`angle_offset` must be a finite number; got {self.angle_offset!r}.")
        if not (is_number(self.tap_interval) and self.tap_interval >= 2 * _TAP_STEPS * STEP):
            raise InputError(f"`tap_interval` must be at least {2 * _TAP_STEPS * STEP} s; got {self.tap_interval!r}.")
        if set(self.monitor.limits) != set(SIGNALS):
            raise InputError(f"`monitor` must limit {', '.join(SIGNALS)}; got {sorted(self.monitor.limits)}.")

    @property
    def steps(self) -> int:
        """Steps of a roll-out: a whole number of samples."""
        return SAMPLE_STEPS * round(self.duration / SAMPLE)

    @property
    def recovery_steps(self) -> int:
        """The most steps a recovery can take."""
        return SAMPLE_STEPS * (math.ceil(self.monitor.patience / SAMPLE) + 2)


@dataclass(frozen=True)
class Trajectory:
    """What the plant did, one row per sample of 5 ms; the recovery is part of it.

    Attributes:
        time: s.
        angle, rate: of the pole, rad and rad/s.
        position, velocity: of the end-effector, m and m/s.
        command: acceleration followed, m/s^2.
    """

    time: Array
    angle: Array
    rate: Array
    position: Array
    velocity: Array
    command: Array


@dataclass(frozen=True)
class Outcome:
    """What came of a roll-out.

    Attributes:
        cost: of the whole roll-out; None if it failed.
        reason: of the failure, "" if there was none.
        reach: the largest |position| up to the failure, m (g1).
        acceleration: the largest filtered commanded acceleration up to it, m/s^2 (g2).
        seconds: how long the controller ran.
        recovered: after a failure, whether the safe controller regained balance (False: emergency
            stop); None without a failure, or without `Settings.recover`. Not a data point.
        trajectory: for plots.
    """

    cost: float | None
    reason: str
    reach: float
    acceleration: float
    seconds: float
    recovered: bool | None
    trajectory: Trajectory

    @property
    def failed(self) -> bool:
        """Whether the roll-out was cut short."""
        return self.cost is None


class Robot(Protocol):
    """A robot with a pole on its hand, simulated here or elsewhere.

    Attributes:
        step: steps done so far.
        totals: summed cost, largest reach and largest acceleration so far.
        signals: the last angle reading, the position and the filtered commanded acceleration.
        record: `samples x 5`, state and command.
    """

    step: int

    @property
    def totals(self) -> Array: ...
    @property
    def signals(self) -> Array: ...
    @property
    def record(self) -> Array: ...

    def run(self, gains: Array, limits: Array, steps: int) -> None:
        """Run until a limit is reached, or for so many steps."""


def draw_noise(settings: Settings, seed: int) -> tuple[Array, Array]:
    """Draw all noise of a roll-out and of the longest recovery after it.

    Returns:
        Pushes on the angular acceleration, one per step, and errors of the angle readings, one per sample.
    """
    rng = np.random.default_rng(seed)
    steps = settings.steps + settings.recovery_steps
    pushes = rng.normal(0.0, settings.process_noise / math.sqrt(STEP), steps)
    pushes += taps(settings, steps)
    return pushes, rng.normal(settings.angle_offset, settings.sensor_noise, steps // SAMPLE_STEPS)


def taps(settings: Settings, steps: int) -> Array:
    """Return the angular acceleration of the taps in every step, each spread over 20 ms."""
    found = np.zeros(steps)
    if settings.tap:
        every, side = round(settings.tap_interval / STEP), 1.0
        for first in range(every // 2, settings.steps, every):
            found[first : first + _TAP_STEPS] = side * settings.tap / (_TAP_STEPS * STEP)
            side = -side
    return found


def balance(robot: Robot, gains: Array, settings: Settings) -> Outcome:
    """Let a robot balance with the given gains until the time is over or a limit is reached."""
    robot.run(gains, np.array([settings.monitor.limits[name] for name in SIGNALS]), settings.steps)
    seconds, totals = robot.step * STEP, robot.totals.copy()
    safe = np.array(settings.safe_gains)
    fallback = Fallback(settings.monitor, gains, safe)
    fallback.update(seconds, _signals(robot))
    if fallback.failed and settings.recover:
        _recover(robot, fallback, safe)
    return Outcome(
        cost=None if fallback.failed else float(totals[0]) / seconds,
        reason=fallback.reason,
        reach=float(totals[1]),
        acceleration=float(totals[2]),
        seconds=seconds,
        recovered=fallback.phase is Phase.RECOVERED if fallback.failed and settings.recover else None,
        trajectory=_trajectory(robot.record),
    )


def _recover(robot: Robot, fallback: Fallback[Array], safe: Array) -> None:
    """Run the safe controller, sample by sample, until balance is back or the emergency stop ends it."""
    free = np.full(len(SIGNALS), np.inf)
    while fallback.phase is Phase.RECOVERING:
        robot.run(safe, free, SAMPLE_STEPS - robot.step % SAMPLE_STEPS)
        fallback.update(robot.step * STEP, _signals(robot))


def _signals(robot: Robot) -> dict[str, float]:
    return dict(zip(SIGNALS, robot.signals.tolist(), strict=True))


def _trajectory(record: Array) -> Trajectory:
    time = np.asarray(np.arange(len(record)) * SAMPLE, dtype=np.float64)
    return Trajectory(time, *record.T.copy())


def check_gains(gains: object) -> Array:
    """Return four finite gains as an array of their own."""
    try:
        array = np.array(gains, dtype=np.float64)
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.shape != (4,) or not np.isfinite(array).all():
        raise InputError(f"`gains` must be four finite numbers; got {gains!r}.")
    return array
