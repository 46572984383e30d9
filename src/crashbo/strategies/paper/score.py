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


def log_success(output: Output, q: Prediction) -> tuple[Array, Array, Array]:
    """Log of equation (17), the probability that an output holds, `p`, and its derivatives as `Prediction.pull` takes.

    Math: log Phi(z),  z = (c - mean) / deviation of the margin
    """
    by_mean, by_variance, deviation = np.zeros_like(q.mean), np.zeros_like(q.mean), np.sqrt(q.variance[:, 1:])
    z = np.minimum((output.thresholds - q.mean[:, 1:]) / deviation, _CERTAIN)
    hazard = truncation(z).hazard
    by_mean[:, 1:], by_variance[:, 1:] = -hazard / deviation, -0.5 * hazard * z / q.variance[:, 1:]
    return output.log_held(q)[0], by_mean, by_variance


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
        return None if self.minima is None else np.exp(self._own(self.models.objective.predictor(X))[0])

    def log(self, X: Array) -> Array:
        """Log scores at `p x d`."""
        own, *others = (log for _, log, _, _ in self._factors(X))
        return own + np.sum(others, 0)

    def with_slope(self, X: Array) -> tuple[Array, Array]:
        """Log scores at `p x d` and their gradients."""
        factors = self._factors(X)
        gradients = [q.pull(by_mean, by_variance) for q, _, by_mean, by_variance in factors]
        return np.sum([log for _, log, _, _ in factors], 0), np.sum(gradients, 0)

    def maximum(self, points: Array, space: Space, effort: Effort) -> Maximum:
        """The highest log score, searched from `points`."""
        return maximise(self.log, self.with_slope, points, space, effort=effort)

    def _factors(self, X: Array) -> list[tuple[Prediction, Array, Array, Array]]:
        """Of the score: a prediction at `p x d`, and a factor's log that depends on it, with derivatives."""
        q, constraints = self.models.objective.predictor(X), self.models.constraints.values()
        held = [(one, one.predictor(X)) for one in constraints]
        return [(q, *self._own(q)), *((at, *log_success(one, at)) for one, at in held)]

    def _own(self, q: Prediction) -> tuple[Array, Array, Array]:
        """The objective's factor: mES, or its success while that alone counts."""
        if self.minima is None:
            return log_success(self.models.objective, q)
        by_mean, by_variance, deviation = np.zeros_like(q.mean), np.zeros_like(q.mean), np.sqrt(q.variance[0, 0])
        log, by_mean[0, 0], by_deviation = log_mes(q.mean[0, 0], deviation, self.minima)
        by_variance[0, 0] = 0.5 * by_deviation / deviation
        return log, by_mean, by_variance
