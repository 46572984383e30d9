"""What a search maximises without constraints, gain times success, with its gradient, in NumPy.

The same as `Search.score` gives by autograd, for the moments of cost and margin; tests hold the two equal.
A search evaluates it a few points at a time, and torch would spend most of that on walking back.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from crashbo.inference.ep_small import truncation_small
from crashbo.models.coupled_predictor import CoupledPredictor

Array = NDArray[np.float64]
Gain = Callable[[Array, Array], tuple[Array, Array, Array]]
"""Mean and deviation of the cost to the log of what is gained and its derivatives by both, `m` each."""
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class LikelyGain:
    """Log gain plus weighted log success probability.

    Math: log a(x) + power log p(x) - slope max(floor - log p(x), 0),  p(x) = Pr(margin(x) <= threshold)

    Attributes:
        model: of cost and margin.
        gain: log a, in the cost's own units.
        power: of the success probability.
        floor: log success probability below which points lose.
        slope: how much.
    """

    model: CoupledPredictor
    gain: Gain
    power: float
    floor: float
    slope: float

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Values at `m x d`, `m`, and their gradients, `m x d`."""
        model, fit = self.model, self.model.fit
        rows, kept = model.point_moments.forward(x)
        cost, margin = np.sqrt(rows[1]), np.sqrt(rows[3])
        gain, by_mean, by_deviation = self.gain(fit.offset + fit.scale * rows[0], fit.scale * cost)
        slack = (fit.coupling.threshold - rows[2]) / margin
        success = log_ndtr(slack)
        short = np.maximum(self.floor - success, 0.0)  # -inf: none
        hazard = np.exp(-0.5 * np.square(slack) - _LOG_ROOT_2PI - success) / margin
        hazard *= self.power + self.slope * (short > 0)
        by_rows = np.zeros_like(rows)
        by_rows[0] = fit.scale * by_mean
        by_rows[1] = 0.5 * fit.scale * by_deviation / cost
        by_rows[2] = -hazard
        by_rows[3] = -0.5 * hazard * slack / margin
        value = gain + self.power * success - self.slope * short
        return value, model.point_moments.backward(by_rows, kept)


def log_improvement_small(mean: Array, deviation: Array, best: float) -> tuple[Array, Array, Array]:
    """Log expected improvement on `best`, its derivative by the mean, and by the deviation, in NumPy.

    Math: log EI = log s + log(phi(u) + u Phi(u)),  u = (best - mean) / s,  phi + u Phi = Phi (hazard + u)

    Args:
        mean, deviation: `...`, of the model.
        best: the cost to improve on.
    """
    u = (best - mean) / deviation
    hazard, excess, _ = truncation_small(u)
    return np.log(deviation) + log_ndtr(u) + np.log(excess), -1 / (excess * deviation), hazard / (excess * deviation)
