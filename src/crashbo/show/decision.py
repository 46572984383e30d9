"""What the optimizer would do next, and the score that makes it do so; the optimizer stays as it is."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from crashbo.model.surrogate import Surrogate
from crashbo.optimizer import Optimizer
from crashbo.problem.arrays import Array
from crashbo.problem.suggestion import Suggestion

_CHUNK = 4096  # points at a time
_NAMES = {"gain": "expected gain", "mes": "mES", "mesco": "mESCO", "success": "success probability"}


@dataclass(frozen=True)
class Decision:
    """The next suggestion and its reasons.

    Attributes:
        suggestion: what `ask` would return now.
        mode: what the models choose by, also while initial points are still due.
        score: what is maximised, at `m x d` points of the unit cube, or its exponential where it is a log.
        gain: the same without regard to failures; None where there is no such thing.
    """

    suggestion: Suggestion
    mode: str
    score: Callable[[Array], Array]
    gain: Callable[[Array], Array | None]

    @property
    def name(self) -> str:
        """The mode for people."""
        return _NAMES.get(self.mode, self.mode)

    def scaled(self, points: Array, also: Array) -> Array:
        """The score at `m x d` points from 0 to 1, the largest among them and `also`, `k x d`."""
        values = _in_chunks(self.score, points), _in_chunks(self.score, also)
        return scaled(np.concatenate(values))[: len(points)]

    def scaled_gain(self, points: Array) -> Array | None:
        """The gain at `m x d` points from 0 to 1; None where there is none, or where failures make no difference."""
        if self.gain(points[:1]) is None:
            return None
        gain = scaled(_in_chunks(self.gain, points))  # type: ignore[arg-type]
        return None if np.allclose(gain, scaled(_in_chunks(self.score, points)), atol=1e-3) else gain


def scaled(values: Array) -> Array:
    """Scores from 0 to 1, the largest.

    What is not worth trying, a score below 0, is 0. Where no score is positive, those below the median are 0.
    """
    top = float(values.max(initial=-np.inf))
    bottom = 0.0 if top > 0 else float(np.median(values)) if len(values) else 0.0
    if not top > bottom:
        return np.ones_like(values)
    return np.clip((values - bottom) / (top - bottom), 0.0, 1.0)


def _in_chunks(score: Callable[[Array], Array], points: Array) -> Array:
    parts = [score(points[first : first + _CHUNK]) for first in range(0, len(points), _CHUNK)]
    return np.concatenate(parts) if parts else np.zeros(0)


def decide(optimizer: Optimizer, surrogate: Surrogate) -> Decision:
    """Return what the optimizer would do next; it is asked in a copy.

    Args:
        optimizer: with at least one trial.
        surrogate: its models. While no trial has a cost, their success probability is the score.
    """
    suggestion = optimizer.copy().ask()
    if not surrogate.any_cost:
        return Decision(suggestion, "success", surrogate.success, lambda X: None)
    score = optimizer.score()
    shown = (lambda X: np.exp(score(X))) if score.mode == "gain" else score
    return Decision(suggestion, score.mode, shown, score.gain)
