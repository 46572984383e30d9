"""mES and mESCO with the mode switch, equations (20) to (22), in the log domain."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from crashbo.arrays import Array
from crashbo.gp.prediction import Prediction
from crashbo.gp.truncation import log_information, truncation
from crashbo.space import Space
from crashbo.strategies.averaged import Averaged, Output
from crashbo.strategies.maximise import Effort, Maximum, maximise
from crashbo.strategies.paper.model import GPCR

_CERTAIN = 1e3  # standard deviations below a limit beyond which nothing changes


def log_mes(mean: Array, deviation: Array, minima: Array) -> tuple[Array, Array, Array]:
    """Log of equation (21), and its derivatives by mean and deviation, `p` each.

    Noise-free, as printed; mean and deviation are those of the objective, `p`, given `S` samples of the minimum.

    Math: log (1 / S) sum_i [ t_i phi(t_i) / (2 Phi(t_i)) - log Phi(t_i) ],  t_i = (mean - minimum_i) / deviation = -z_i
    """
    t = (mean - minima[:, None]) / deviation
    each, slope = log_information(t)
    total = logsumexp(each, axis=0)
    pulled = np.exp(each - total) * slope
    return total - math.log(len(minima)), pulled.sum(0) / deviation, -(pulled * t).sum(0) / deviation


def log_success_slope(output: Output, q: Prediction) -> Array:
    """Gradient by the points, `p x d`, of the log probability that an output holds, equation (17).

    Math: log Phi(z),  z = (c - mean) / deviation of the margin
    """
    by_mean, by_variance = np.zeros_like(q.mean), np.zeros_like(q.mean)
    deviation = np.sqrt(q.variance[:, 1:])
    z = np.minimum((output.thresholds - q.mean[:, 1:]) / deviation, _CERTAIN)
    hazard = truncation(z).hazard
    by_mean[:, 1:] = -hazard / deviation
    by_variance[:, 1:] = -0.5 * hazard * z / q.variance[:, 1:]
    return q.pull(by_mean, by_variance)


@dataclass(frozen=True)
class PaperScore:
    """What equation (20) maximises: mES times the probability that all constraints hold, or that of success alone.

    The objective's own crashes are absorbed by its model; mES is not multiplied with their probability.
    """

    models: Averaged[GPCR]  # with pending trials believed to return their mean
    mode: str = "success"  # "mes", "mesco", or "success"
    minima: Array | None = None  # S, samples of the minimum, constrained for mESCO; None while success alone counts

    def __call__(self, X: Array) -> Array:
        return np.exp(self.log(X))

    def gain(self, X: Array) -> Array | None:
        """mES alone: what a picture of the unconstrained acquisition shows."""
        if self.minima is None:
            return None
        return np.exp(self._information(self.models.objective.predictor(X), self.minima)[0])

    def log(self, X: Array) -> Array:
        """Log scores at `p x d`."""
        q = self.models.objective.predictor(X)
        own = self.models.objective.log_held(q)[0] if self.minima is None else self._information(q, self.minima)[0]
        return own + sum(one.log_held(one.predictor(X))[0] for one in self.models.constraints.values())

    def with_slope(self, X: Array) -> tuple[Array, Array]:
        """Log scores at `p x d` and their gradients."""
        q = self.models.objective.predictor(X)
        if self.minima is None:
            value, gradient = self.models.objective.log_held(q)[0], log_success_slope(self.models.objective, q)
        else:
            value, slope_by_mean, slope_by_deviation = self._information(q, self.minima)
            by_mean, by_variance = np.zeros_like(q.mean), np.zeros_like(q.mean)
            by_mean[0, 0], by_variance[0, 0] = slope_by_mean, 0.5 * slope_by_deviation / np.sqrt(q.variance[0, 0])
            gradient = q.pull(by_mean, by_variance)
        for one in self.models.constraints.values():
            held = one.predictor(X)
            value, gradient = value + one.log_held(held)[0], gradient + log_success_slope(one, held)
        return value, gradient

    def maximum(self, points: Array, space: Space, effort: Effort) -> Maximum:
        """The highest log score, searched from `points`."""
        return maximise(self.log, self.with_slope, points, space, effort=effort)

    def _information(self, q: Prediction, minima: Array) -> tuple[Array, Array, Array]:
        return log_mes(q.mean[0, 0], np.sqrt(q.variance[0, 0]), minima)
