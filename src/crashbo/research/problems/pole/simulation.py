"""The simulated robot: plant and software in one compiled loop at 1 kHz."""

import numpy as np

from crashbo.problem.arrays import Array
from crashbo.research.problems.pole.arm import Lag, follow
from crashbo.research.problems.pole.compiled import compiled
from crashbo.research.problems.pole.plant import STEP, pole_step
from crashbo.research.problems.pole.rollout import Outcome, Settings, balance, check_gains, draw_noise
from crashbo.research.problems.pole.software import (
    ACCELERATION,
    FILTERS,
    READING,
    SAMPLE_STEPS,
    Filters,
    Weights,
    account,
    command,
    new_memory,
    sense,
)


def rollout(gains: object, seed: int, settings: Settings | None = None) -> Outcome:
    """Balance the simulated pole with the given gains; the same seed gives the same roll-out.

    Args:
        gains: four, on angle, rate, position and velocity.
        seed: of all noise.
        settings: of the experiment.
    """
    settings = settings or Settings()
    return balance(SimulatedRobot(settings, seed), check_gains(gains), settings)


class SimulatedRobot:
    """The plant of `Settings.plant` under the robot's software."""

    def __init__(self, settings: Settings, seed: int) -> None:
        """Start at rest with the pole upright.

        Args:
            settings: of the experiment.
            seed: of all noise.
        """
        self.step = 0
        self.totals = np.zeros(3)
        self._state, self._memory, self._arm = np.zeros(4), new_memory(), settings.arm.new_memory()
        self._fixed = settings.plant.rates, settings.arm.lag, settings.cost, FILTERS
        self._pushes, self._errors = draw_noise(settings, seed)
        self._record = np.empty((len(self._errors), 5))

    @property
    def signals(self) -> Array:
        """The last angle reading, the position and the filtered commanded acceleration."""
        return np.array([self._memory[READING], self._state[2], self._memory[ACCELERATION]])

    @property
    def record(self) -> Array:
        """State and command at every sample so far, `samples x 5`."""
        return self._record[: _samples(self.step)]

    def run(self, gains: Array, limits: Array, steps: int) -> None:
        """Run until a limit is reached, or for so many steps."""
        pushes = self._pushes[self.step : self.step + steps]
        errors, record = self._errors[_samples(self.step) :], self._record[_samples(self.step) :]
        phase = self.step % SAMPLE_STEPS
        places = self._state, self._memory, self._arm, self.totals, record
        self.step += advance(*places, gains, limits, pushes, errors, phase, *self._fixed)


def _samples(steps: int) -> int:
    """Samples taken in so many steps: the first comes with the first step."""
    return -(-steps // SAMPLE_STEPS)


@compiled
def advance(
    state: Array,
    memory: Array,
    arm: Array,
    totals: Array,
    record: Array,
    gains: Array,
    limits: Array,
    pushes: Array,
    errors: Array,
    phase: int,
    rates: tuple[float, float, float],
    lag: Lag,
    weights: Weights,
    filters: Filters,
) -> int:
    """Run plant and software for as many steps as there are pushes, or until a limit is reached.

    Args:
        state: angle, rate, position, velocity; changed.
        memory: of the software; changed.
        arm: its memory; changed.
        totals: summed cost, largest reach, largest acceleration; changed.
        record: state and command at each sample; filled from its first row on.
        gains: four.
        limits: on angle reading, reach and acceleration.
        pushes: on the angular acceleration, one per step.
        errors: of the angle readings, one per sample.
        phase: steps since the last sample began.
        rates: of the plant.
        lag: of the arm.
        weights: of the cost.
        filters: of the software.

    Returns:
        The number of steps done.
    """
    row = 0
    for step in range(len(pushes)):
        sampling = (phase + step) % SAMPLE_STEPS == 0
        if sampling:
            sense(memory, state[0] + errors[row], filters)
        u = command(memory, gains, state[2], state[3], filters)
        if sampling:
            record[row, :4] = state
            record[row, 4] = u
            row += 1
        moved = follow(arm, u, lag)
        state[0], state[1] = pole_step(state[0], state[1], moved, pushes[step], rates)
        state[2] += STEP * state[3] + 0.5 * STEP * STEP * moved
        state[3] += STEP * moved
        if not account(totals, memory, state[2], state[3], u, limits, weights, sampling):
            return step + 1
    return len(pushes)
