"""Tune a robot of your own: trials under a safety monitor, emergency stop or any limit = crash.

python examples/own_robot.py

Put your drivers in the place of `FakeRobot`: read signals, send a command, stop. Nothing else changes.
A trial fails when a signal reaches its limit; then the safe controller takes over, and the trial is told as a
crash, whether balance came back or not. What the safe controller did is never told.
"""

import math
import random
from collections.abc import Callable
from pathlib import Path

import crashbo
from crashbo.safety import Fallback, Phase, SafetyMonitor

Controller = Callable[[float, float], float]
PERIOD = 0.01  # seconds between commands
DURATION = 4.0  # of a trial, seconds

MONITOR = SafetyMonitor(
    limits={"angle": 0.3, "current": 12.0},  # rad, A: beyond these the trial has failed
    stops={"angle": 1.0, "button": 1.0},  # beyond these even the safe controller must not go on
    reasons={"angle": "fell", "current": "motor overloaded", "button": "emergency stop"},
    calm=0.5,
    patience=2.0,
)


class FakeRobot:
    """Stands for your drivers: a top-heavy joint with a motor that responds late."""

    def __init__(self, seed: int) -> None:
        self.time, self.angle, self.rate, self.current = 0.0, 0.05, 0.0, 0.0
        self.stopped = False
        self._random = random.Random(seed)

    def signals(self) -> dict[str, float]:
        """Readings for the monitor; the button is 1 while pressed."""
        return {"angle": self.angle, "current": self.current, "button": 0.0}

    def command(self, current: float) -> None:
        """Send a command and wait for the next period."""
        self.current += 0.3 * (current - self.current)
        push = 20 * math.sin(self.angle) + 4 * max(-15.0, min(15.0, self.current)) + self._random.gauss(0, 1)
        self.rate += PERIOD * push
        self.angle += PERIOD * self.rate
        self.time += PERIOD

    def stop(self) -> None:
        """Cut the power."""
        self.stopped = True


def controller(kp: float, kd: float) -> Controller:
    """A controller of the kind to tune."""
    return lambda angle, rate: -(kp * angle + kd * rate)


SAFE = controller(15.0, 2.5)  # known to hold the joint, and no more


def trial(robot: FakeRobot, candidate: Controller) -> float:
    """Run one trial and return its cost, a root mean square; raise `crashbo.Crash` if it failed."""
    fallback = Fallback(MONITOR, candidate, SAFE)
    cost = 0.0
    while fallback.phase is Phase.RECOVERING or (fallback.phase is Phase.TRYING and robot.time < DURATION):
        acting = fallback.update(robot.time, robot.signals())
        if acting is None:
            robot.stop()
            break
        robot.command(acting(robot.angle, robot.rate))
        cost += PERIOD * (100 * robot.angle**2 + 0.01 * robot.current**2)
    if fallback.failed:
        raise crashbo.Crash(f"{fallback.reason}, {fallback.phase.value}")
    return math.sqrt(cost / DURATION)


def main(n_trials: int = 20, state: Path | None = None) -> None:
    """Ask, try, tell; with `state`, every trial is on disk before the next begins."""
    space = {"kp": (0.0, 60.0), "kd": crashbo.Float(0.1, 30.0, log=True)}
    optimizer = crashbo.Optimizer(space, seed=0)
    for number in range(n_trials):
        params = optimizer.ask()
        try:
            cost = trial(FakeRobot(seed=number), controller(params["kp"], params["kd"]))
        except crashbo.Crash as crash:
            told = optimizer.tell(params, crashbo.CRASHED, reason=crash.reason)
        else:
            told = optimizer.tell(params, cost)
        if state is not None:
            optimizer.save(state)
        print(f"{number + 1:3}  {f'crash: {told.reason}' if told.crashed else f'cost {told.objective:.4f}'}")
    print("Best guess:", optimizer.best())


if __name__ == "__main__":
    main()
