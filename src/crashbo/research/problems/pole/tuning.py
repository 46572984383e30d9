"""The tuning problems: weights in, what the optimizer is told out.

The optimizer turns the weights of the controller design, in powers of ten; the gains follow from them on a
wrong model. The limits of the robot are hidden from it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.outcome import CRASHED, VIOLATED, Constraint, Label
from crashbo.problem.space import Space
from crashbo.research.problems.pole.arm import Arm
from crashbo.research.problems.pole.lqr import lqr_gains
from crashbo.research.problems.pole.mujoco import mujoco_rollout
from crashbo.research.problems.pole.rollout import MONITOR, TOO_FAR, Outcome, Settings
from crashbo.research.problems.pole.simulation import rollout

CENTIMETRES = 100.0
ARM_LENGTH = 0.6
"""How far the hand can move from its place at all, m."""
ROBOT = Settings(
    duration=30.0,
    process_noise=0.0015,
    arm=Arm(frequency=10.0, damping=0.5, delay=0.02),
    angle_offset=0.0015,
    tap=0.04,
    cost=(0.1, 0.5, 20.0, 0.1, 0.02),
    safe_gains=(-24.365, -3.941, -0.596, -1.457),
)
"""The robot that is tuned: a lagging arm, an angle sensor that is off, taps on the pole; docs/robot.md says why."""
ROBOT_V1 = Settings(duration=45.0)
"""The robot of version 0.1: an arm without lag and delay, white noise alone, the paper's cost."""
_ROLLOUTS: dict[str, Callable[[object, int, Settings | None], Outcome]] = {
    "simulation": rollout,
    "mujoco": mujoco_rollout,
}


@dataclass(frozen=True)
class Ranges:
    """Which powers of ten a parameter from 0 to 1 runs through.

    Attributes:
        state: exponents at 0 and 1 of a weight on the state.
        control: exponents at 0 and 1 of the weight on the input.
    """

    state: tuple[float, float] = (-1.0, 1.0)
    control: tuple[float, float] = (-1.75, 1.0)


PAPER_RANGES = Ranges(state=(0.0, 4.0), control=(-2.0, 2.0))


def weights(params: Mapping[str, Any], ranges: Ranges | None = None) -> tuple[list[float], float]:
    """Return the design weights on the state and on the input, for two parameters or five.

    Math: two: `W_s = diag(1, w(x1), 1, 1)`, `W_u = w_u(x2)`; five: `W_s = diag(w(x1), ..., w(x4))`, `W_u = w_u(x5)`;
    `w` and `w_u` are powers of ten, exponents linear in x as `ranges` says
    """
    ranges = ranges or Ranges()
    x = [float(params[f"x{i + 1}"]) for i in range(len(params))]
    if len(x) == 2:
        return [1.0, _power(x[0], ranges.state), 1.0, 1.0], _power(x[1], ranges.control)
    if len(x) == 5:
        return [_power(one, ranges.state) for one in x[:4]], _power(x[4], ranges.control)
    raise InputError(f"`params` must be x1 and x2, or x1 to x5; got {sorted(params)}.")


def _power(x: float, exponents: tuple[float, float]) -> float:
    low, high = exponents
    return 10.0 ** (low + (high - low) * x)


@dataclass(frozen=True)
class Told:
    """What the optimizer is told of a roll-out.

    Attributes:
        objective: the cost, or `CRASHED`.
        constraints: value or `VIOLATED`, by name.
        reason: of a crash.
    """

    objective: float | Label
    constraints: dict[str, float | Label] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True)
class PoleTuning:
    """A tuning problem on the robot.

    Attributes:
        name: name of the problem.
        dimension: 2 or 5.
        mixed: whether the reach (g1, in cm) is a separate constraint, with a value while it holds; a roll-out
            continues beyond its limit and has a cost. Otherwise any failure is a crash.
        physics: "simulation" or "mujoco".
        settings: settings of the experiment.
        reach_limit: hidden limit of the reach in metres, where it is a constraint.
        ranges: ranges of the weights.
    """

    name: str
    dimension: int = 2
    mixed: bool = False
    physics: Literal["simulation", "mujoco"] = "simulation"
    settings: Settings = ROBOT
    reach_limit: float = MONITOR.limits["reach"]
    ranges: Ranges = Ranges()

    def __post_init__(self) -> None:
        if self.dimension not in (2, 5):
            raise InputError(f"`dimension` must be 2 or 5; got {self.dimension!r}.")
        if self.physics not in _ROLLOUTS:
            raise InputError(f"`physics` must be one of {sorted(_ROLLOUTS)}; got {self.physics!r}.")

    @property
    def space(self) -> Space:
        """The parameters: the unit square, or the unit cube in five dimensions."""
        return Space({f"x{i + 1}": (0.0, 1.0) for i in range(self.dimension)})

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """The constraints to declare to the optimizer."""
        return (Constraint("reach"),) if self.mixed else ()

    @property
    def thresholds(self) -> dict[str, float]:
        """The hidden limits that can be learned."""
        return {"reach": CENTIMETRES * self.reach_limit} if self.mixed else {}

    def gains(self, params: Mapping[str, Any]) -> Array:
        """Return the gains of the controller for these params."""
        return lqr_gains(*weights(self.space.validate(params), self.ranges))

    def rollout(self, params: Mapping[str, Any], seed: int) -> Outcome:
        """Try the params on the robot."""
        return _ROLLOUTS[self.physics](self.gains(params), seed, self.settings)

    def evaluate(self, params: Mapping[str, Any], seed: int) -> Told:
        """Try the params and return what the optimizer is told."""
        return self.told(self.rollout(params, seed))

    def told(self, outcome: Outcome) -> Told:
        """Return what the optimizer is told of an outcome.

        A roll-out that was cut short has no cost. Where the reach is a separate constraint, it is violated if it was
        too large. If something else ended the roll-out first, nothing is told about the reach: it might have grown.
        """
        objective = CRASHED if outcome.cost is None else outcome.cost
        if not self.mixed:
            return Told(objective, {}, outcome.reason)
        if outcome.reach >= self.reach_limit:
            return Told(objective, {"reach": VIOLATED}, outcome.reason)
        seen: dict[str, float | Label] = {} if outcome.cost is None else {"reach": CENTIMETRES * outcome.reach}
        return Told(objective, seen, outcome.reason)

    def failure(self, outcome: Outcome) -> str:
        """Why an outcome is a failure, including a broken limit of the reach; "" if it is not."""
        if self.mixed and not outcome.reason and outcome.reach >= self.reach_limit:
            return TOO_FAR
        return outcome.reason

    def without_recovery(self) -> "PoleTuning":
        """The same problem without simulating the safe controller after a failure; results are the same."""
        return replace(self, settings=replace(self.settings, recover=False))


@dataclass(frozen=True)
class Evaluation:
    """Repeated roll-outs of the same params.

    Attributes:
        costs: of the roll-outs that did not fail.
        failures: the reasons of those that did.
    """

    costs: tuple[float, ...]
    failures: tuple[str, ...]

    @property
    def stable(self) -> bool:
        """Whether none failed."""
        return not self.failures

    @property
    def mean(self) -> float:
        """Mean cost; NaN if all failed."""
        return float(np.mean(self.costs)) if self.costs else math.nan

    @property
    def std(self) -> float:
        """Standard deviation of the costs; NaN with fewer than two."""
        return float(np.std(self.costs, ddof=1)) if len(self.costs) > 1 else math.nan


def repeat(tuning: PoleTuning, params: Mapping[str, Any], seeds: "list[int] | range") -> Evaluation:
    """Try the same params once per seed."""
    outcomes = [tuning.without_recovery().rollout(params, seed) for seed in seeds]
    costs = tuple(one.cost for one in outcomes if one.cost is not None and not tuning.failure(one))
    return Evaluation(costs, tuple(reason for one in outcomes if (reason := tuning.failure(one))))


def going_on(settings: Settings) -> Settings:
    """The same experiment, which a large reach does not end before the arm does."""
    monitor = settings.monitor
    limits, stops = ({**one, "reach": ARM_LENGTH} for one in (monitor.limits, monitor.stops))
    return replace(settings, monitor=replace(monitor, limits=limits, stops=stops))


POLES = {
    tuning.name: tuning
    for tuning in (
        PoleTuning("robot2d"),
        PoleTuning("robot2d-mixed", mixed=True, settings=going_on(ROBOT), reach_limit=0.05),
        PoleTuning("robot5d", dimension=5),
        PoleTuning("robot2d-mujoco", physics="mujoco"),
        PoleTuning("robot2d-v1", settings=ROBOT_V1, ranges=PAPER_RANGES),
        PoleTuning("robot5d-v1", dimension=5, settings=ROBOT_V1, ranges=PAPER_RANGES),
    )
}
