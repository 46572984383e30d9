"""Back to safety: watch an experiment, fall back to a controller known to be safe, stop if even that fails.

For your own robot as for the simulated one: a trial runs the candidate controller until it ends or
until a signal reaches its limit. Then the safe controller takes over. It either brings the robot back
within the limits, or the emergency stop ends it. In both cases the trial crashed; how the safe
controller did is never a data point.

    monitor = SafetyMonitor(limits={"angle": 0.044, "reach": 0.13}, stops={"angle": 0.2, "reach": 0.3})
    fallback = Fallback(monitor, candidate, safe)
    while fallback.phase is Phase.TRYING and robot.time < 20 or fallback.phase is Phase.RECOVERING:
        controller = fallback.update(robot.time, robot.signals())
        robot.command(controller(robot.state())) if controller else robot.stop()
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Generic, TypeVar

from crashbo.errors import InputError
from crashbo.problem.outcome import is_number

Controller = TypeVar("Controller")


class Phase(Enum):
    """The phase of a monitored trial."""

    TRYING = "trying"
    RECOVERING = "recovering"
    RECOVERED = "recovered"
    STOPPED = "stopped"


@dataclass(frozen=True)
class SafetyMonitor:
    """Limits on signals, by name. A missing or NaN signal counts as beyond every limit.

    Attributes:
        limits: a trial fails when the absolute value of a signal reaches its limit.
        stops: the emergency stop acts when the absolute value of a signal reaches this, in any phase.
        reasons: the reason to report when a limit is reached, by signal; by default the name of the signal.
        calm: seconds within all limits after which the robot has recovered.
        patience: seconds that the safe controller has for this before the emergency stop.
    """

    limits: Mapping[str, float]
    stops: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, str] = field(default_factory=dict)
    calm: float = 1.0
    patience: float = 10.0

    def __post_init__(self) -> None:
        for title in ("limits", "stops"):
            for name, value in getattr(self, title).items():
                if not (is_number(value) and value > 0):
                    raise InputError(f"`{title}` must be numbers > 0; got {value!r} for {name!r}.")
        for name, value in (("calm", self.calm), ("patience", self.patience)):
            if not (is_number(value) and math.isfinite(value) and value >= 0):
                raise InputError(f"`{name}` must be a finite number of seconds >= 0; got {value!r}.")
        if not self.limits:
            raise InputError(
                "`limits` must name at least one signal; got none. A trial that cannot fail needs no monitor."
            )

    def beyond_limit(self, signals: Mapping[str, float]) -> str | None:
        """Return the reason of the first limit that was reached; None if none was."""
        return self._first(self.limits, signals)

    def beyond_stop(self, signals: Mapping[str, float]) -> str | None:
        """Return the reason of the first emergency limit that was reached; None if none was."""
        return self._first(self.stops, signals)

    def _first(self, bounds: Mapping[str, float], signals: Mapping[str, float]) -> str | None:
        for name, bound in bounds.items():
            if not abs(signals.get(name, math.nan)) < bound:
                return self.reasons.get(name, name)
        return None


class Fallback(Generic[Controller]):
    """One monitored trial: which controller acts now, and what has happened.

    Attributes:
        phase: TRYING the candidate; RECOVERING with the safe controller after a failure; RECOVERED, still
            with the safe controller; or STOPPED.
        reason: why the trial failed; "" if it has not.
        failed_at: time of the failure; None if there is none.
    """

    def __init__(self, monitor: SafetyMonitor, candidate: Controller, safe: Controller) -> None:
        """Begin a trial.

        Args:
            monitor: the limits.
            candidate: the controller on trial, of any type.
            safe: the one to fall back to.
        """
        self.monitor, self.candidate, self.safe = monitor, candidate, safe
        self.phase = Phase.TRYING
        self.reason = ""
        self.failed_at: float | None = None
        self._calm_since: float | None = None

    @property
    def failed(self) -> bool:
        """Whether a limit was reached: the trial is a crash, recovered or not."""
        return self.phase is not Phase.TRYING

    def update(self, time: float, signals: Mapping[str, float]) -> Controller | None:
        """Check the signals and return the controller to use now; None after a stop.

        Args:
            time: time in seconds; never decreases.
            signals: latest readings, by name.
        """
        if self.phase is Phase.STOPPED:
            return None
        beyond, stop = self.monitor.beyond_limit(signals), self.monitor.beyond_stop(signals)
        if (beyond or stop) and self.failed_at is None:
            self.phase, self.reason, self.failed_at = Phase.RECOVERING, beyond or stop or "", time
        if stop:
            self.phase = Phase.STOPPED
        elif self.phase is Phase.RECOVERING:
            self._recover(time, calm=beyond is None)
        return {Phase.TRYING: self.candidate, Phase.STOPPED: None}.get(self.phase, self.safe)

    def _recover(self, time: float, calm: bool) -> None:
        assert self.failed_at is not None
        if not calm:
            self._calm_since = None
        elif self._calm_since is None:
            self._calm_since = time
        if self._calm_since is not None and time - self._calm_since >= self.monitor.calm:
            self.phase = Phase.RECOVERED
        elif time - self.failed_at >= self.monitor.patience:
            self.phase = Phase.STOPPED
