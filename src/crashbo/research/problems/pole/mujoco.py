"""The same robot on physics from elsewhere: a MuJoCo model built from the plant's parameters, headless.

Needs the extra `mujoco`. The cart that stands for the arm is so heavy that the pole does not move it: it
follows the commanded acceleration. Sensing, filters, control, monitor and cost are the robot's own
software, as in the simulation.
"""

from typing import Any

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.research.problems.pole.arm import follow
from crashbo.research.problems.pole.plant import STEP, Plant
from crashbo.research.problems.pole.rollout import Outcome, Settings, balance, check_gains, draw_noise
from crashbo.research.problems.pole.software import (
    ACCELERATION,
    FILTERS,
    READING,
    SAMPLE_STEPS,
    account,
    command,
    new_memory,
    sense,
)

_CART_MASS = 1e4
_SMALLEST_INERTIA = 1e-6  # MuJoCo refuses a point mass; about the centre of mass, kg m^2

_MODEL = """
<mujoco model="pole">
  <compiler angle="radian" inertiafromgeom="false"/>
  <option timestep="{step}" gravity="0 0 -{gravity}" integrator="RK4"><flag contact="disable"/></option>
  <worldbody>
    <body name="cart">
      <inertial pos="0 0 0" mass="{cart}" diaginertia="1 1 1"/>
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom type="box" size="0.05 0.05 0.02" contype="0" conaffinity="0"/>
      <body name="pole">
        <inertial pos="0 0 {centre}" mass="{mass}" diaginertia="{inertia} {inertia} {inertia}"/>
        <joint name="hinge" type="hinge" axis="0 1 0" damping="{damping}"/>
        <geom type="capsule" size="0.01" fromto="0 0 0 0 0 {length}" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="slide" gear="{cart}"/></actuator>
</mujoco>
"""


def pole_xml(plant: Plant) -> str:
    """Return the MuJoCo model of a plant; the inertia is moved to the centre of mass."""
    own = plant.inertia - plant.mass * plant.centre**2
    return _MODEL.format(
        step=STEP,
        gravity=plant.gravity,
        cart=_CART_MASS,
        centre=plant.centre,
        mass=plant.mass,
        inertia=max(own, _SMALLEST_INERTIA),
        damping=plant.damping,
        length=plant.length,
    )


def mujoco_rollout(gains: object, seed: int, settings: Settings | None = None) -> Outcome:
    """Balance the MuJoCo pole with the given gains; the same seed gives the same roll-out.

    Args:
        gains: four, on angle, rate, position and velocity.
        seed: of all noise.
        settings: of the experiment.
    """
    settings = settings or Settings()
    return balance(MujocoRobot(settings, seed), check_gains(gains), settings)


class MujocoRobot:
    """MuJoCo's cart and pole under the robot's software."""

    def __init__(self, settings: Settings, seed: int) -> None:
        """Start at rest with the pole upright.

        Args:
            settings: of the experiment.
            seed: of all noise.
        """
        self._mujoco = _import_mujoco()
        self._model = self._mujoco.MjModel.from_xml_string(pole_xml(settings.plant))
        self._data = self._mujoco.MjData(self._model)
        self.step = 0
        self.totals = np.zeros(3)
        self._memory, self._arm, self._lag = new_memory(), settings.arm.new_memory(), settings.arm.lag
        self._weights = settings.cost
        pushes, self._errors = draw_noise(settings, seed)
        self._torques = settings.plant.inertia * pushes
        self._record = np.empty((len(self._errors), 5))

    @property
    def signals(self) -> Array:
        """The last angle reading, the position and the filtered commanded acceleration."""
        return np.array([self._memory[READING], self._data.qpos[0], self._memory[ACCELERATION]])

    @property
    def record(self) -> Array:
        """State and command at every sample so far, `samples x 5`."""
        return self._record[: -(-self.step // SAMPLE_STEPS)]

    def run(self, gains: Array, limits: Array, steps: int) -> None:
        """Run until a limit is reached, or for so many steps."""
        for _ in range(steps):
            if not self._advance(gains, limits):
                return

    def _advance(self, gains: Array, limits: Array) -> bool:
        """Do one step; return whether all is within the limits."""
        data, (row, rest) = self._data, divmod(self.step, SAMPLE_STEPS)
        position, angle = data.qpos
        velocity, rate = data.qvel
        if rest == 0:
            sense(self._memory, angle + self._errors[row], FILTERS)
        u = command(self._memory, gains, position, velocity, FILTERS)
        if rest == 0:
            self._record[row] = angle, rate, position, velocity, u
        data.ctrl[0] = follow(self._arm, u, self._lag)
        data.qfrc_applied[1] = self._torques[self.step]
        self._mujoco.mj_step(self._model, data)
        self.step += 1
        return account(self.totals, self._memory, data.qpos[0], data.qvel[0], u, limits, self._weights, rest == 0)


def _import_mujoco() -> Any:
    try:
        import mujoco
    except ImportError as error:
        raise InputError(
            "`mujoco` must be installed for this robot; got no such package. Run: pip install 'crashbo[mujoco]'"
        ) from error
    return mujoco
