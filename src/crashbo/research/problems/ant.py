"""A robot from elsewhere: Gymnasium's four-legged Ant walks with a gait of eight numbers; a fall is a crash.

Needs the extra `gym`. Physics, robot and the rule for a fall are Gymnasium's (`Ant-v5`); only the gait is ours.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.parameters import Float
from crashbo.problem.space import Space

FELL = "fell"
SPACE = Space(
    {
        "frequency": Float(0.5, 3.0),
        "hip_swing": Float(0.0, 0.5),
        "ankle_lift": Float(0.0, 0.4),
        "ankle_lag": Float(0.0, 1.0),
        "left_right": Float(0.0, 1.0),
        "front_back": Float(0.0, 1.0),
        "stiffness": Float(0.1, 10.0, log=True),
        "damping": Float(0.003, 0.3, log=True),
    }
)
"""Hz; rad; rad; three lags in periods; torque per rad and per rad/s of the joints, 1 being the largest torque."""


@dataclass(frozen=True)
class Walk:
    """What came of a roll-out.

    Attributes:
        cost: minus the distance covered per second, m/s; None after a fall.
        reason: of a crash, "" if there was none.
        seconds: how long it walked.
        distance: from the start, in any direction, m.
        frames: pictures, if they were asked for.
    """

    cost: float | None
    reason: str
    seconds: float
    distance: float
    frames: list[NDArray[np.uint8]] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        """Whether the roll-out was cut short."""
        return self.cost is None


class Ant:
    """Gymnasium's Ant with a gait: hips swing, ankles lift, each leg with its lag; every joint is held by a spring."""

    def __init__(self, *, duration: float = 5.0, pictures: bool = False) -> None:
        """Make the robot.

        Args:
            duration: of a roll-out, s.
            pictures: whether roll-outs keep frames; needs OpenGL (without a screen: `MUJOCO_GL=egl`).
        """
        if not 0.1 <= duration <= 600:
            raise InputError(f"`duration` must lie between 0.1 and 600 s; got {duration!r}.")
        self.duration = duration
        self._pictures = pictures

    space = SPACE

    @cached_property
    def _environment(self) -> Any:
        gymnasium = _import_gymnasium()
        made = gymnasium.make(
            "Ant-v5",
            disable_env_checker=True,
            max_episode_steps=10**9,
            reset_noise_scale=0.01,
            include_cfrc_ext_in_observation=False,
            render_mode="rgb_array" if self._pictures else None,
            width=280,
            height=200,
            default_camera_config={"distance": 9.0},
        )
        return made.unwrapped

    @cached_property
    def _joints(self) -> tuple[Array, Array, NDArray[np.bool_], Array, NDArray[np.int64], NDArray[np.int64]]:
        """Of each motor: leg (0 to 3), middle of the joint's range, whether a hip, side; places in qpos and qvel."""
        model = self._environment.model
        numbers = [int(one) for one in model.actuator_trnid[:, 0]]
        names = [model.joint(one).name for one in numbers]
        leg = np.array([int(name[-1]) - 1 for name in names])
        middle = model.jnt_range[numbers].mean(1)
        hip = np.array([name.startswith("hip") for name in names])
        side = np.where((leg == 0) | (leg == 3), 1.0, -1.0)
        places = (
            np.array([model.jnt_qposadr[one] for one in numbers]),
            np.array([model.jnt_dofadr[one] for one in numbers]),
        )
        return leg.astype(np.float64), middle, hip, side, *places

    def rollout(self, params: Mapping[str, Any], seed: int) -> Walk:
        """Walk with a gait; the same seed gives the same roll-out."""
        gait = self.space.validate(params)
        env, (leg, middle, hip, side, place, rate) = self._environment, self._joints
        env.reset(seed=seed)
        data, start, frames = env.data, env.data.qpos[:2].copy(), []
        steps = max(1, round(self.duration / env.dt))
        lags = np.array([0.0, gait["left_right"], gait["front_back"], gait["left_right"] + gait["front_back"]])
        phase = lags[leg.astype(int)]
        for step in range(1, steps + 1):
            turn = 2 * math.pi * (gait["frequency"] * (step - 1) * env.dt + phase)
            lifted = middle + np.sign(middle) * gait["ankle_lift"] * np.sin(turn + 2 * math.pi * gait["ankle_lag"])
            target = np.where(hip, side * gait["hip_swing"] * np.sin(turn), lifted)
            torque = gait["stiffness"] * (target - data.qpos[place]) - gait["damping"] * data.qvel[rate]
            fell = bool(env.step(torque.clip(-1.0, 1.0))[2])
            if self._pictures:
                frames.append(env.render())
            if fell:
                return Walk(None, FELL, step * env.dt, math.dist(data.qpos[:2], start), frames)
        distance = math.dist(data.qpos[:2], start)
        return Walk(-distance / (steps * env.dt), "", steps * env.dt, distance, frames)


def _import_gymnasium() -> Any:
    try:
        import gymnasium
        import mujoco  # noqa: F401
    except ImportError as error:
        raise InputError(
            "`gymnasium` and `mujoco` must be installed for this robot; got none. Run: pip install 'crashbo[gym]'"
        ) from error
    return gymnasium
