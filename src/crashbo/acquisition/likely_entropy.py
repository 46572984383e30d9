"""What a search maximises by default, information times success, with its gradient, in NumPy.

The same as `Search.score` gives by autograd, for the moments of cost and margin; tests hold the two equal.
A search evaluates it a few points at a time, and torch would spend most of that on walking back.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr
from torch import Tensor

from crashbo.acquisition.entropy import noisy_information_small
from crashbo.models.coupled_predictor import CoupledPredictor

Array = NDArray[np.float64]
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class LikelyEntropy:
    """Log information about the minimum plus weighted log success probability.

    Math: log a(x) + power log p(x) - slope max(floor - log p(x), 0),  p(x) = Pr(margin(x) <= threshold)

    Attributes:
        model: of cost and margin.
        minima: `S`, samples of the minimum, in the cost's own units.
        power: of the success probability.
        floor: log success probability below which points lose.
        slope: how much.
    """

    model: CoupledPredictor
    minima: Tensor
    power: float
    floor: float
    slope: float

    def __call__(self, x: Array) -> tuple[Array, Array]:
        """Values at `m x d`, `m`, and their gradients, `m x d`."""
        model, fit = self.model, self.model.fit
        rows, kept = model.point_moments.forward(x)
        cost, margin = np.sqrt(rows[1]), np.sqrt(rows[3])
        information, by_mean, by_deviation = noisy_information_small(
            fit.offset + fit.scale * rows[0], fit.scale * cost, self.minima.numpy(), model.noise_variance
        )
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
        value = information + self.power * success - self.slope * short
        return value, model.point_moments.backward(by_rows, kept)
