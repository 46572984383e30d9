"""mES and mESCO with the mode switch, equations (20) to (22); maximised in the log domain."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crashbo.gp.information import log_information
from crashbo.gp.prediction import Prediction
from crashbo.history import History
from crashbo.strategies.maximise import Effort, Maximum, Rounding, maximise
from crashbo.strategies.paper.pathwise import PathwiseMinimum
from crashbo.strategies.paper.surrogate import PaperModels
from crashbo.strategies.paper.virtual import VirtualMinimum

Array = NDArray[np.float64]
_STEPS = 200  # virtual evaluations of a local search, at least
_EFFORT = Effort(starts=6, iterations=40, evaluations=120, precision=1e-9)
_NEAR = np.array([0.003, 0.02, 0.1]).reshape(3, 1, 1)  # distances from the trials that a search looks at too


def log_mes(mean: Array, deviation: Array, minima: Array) -> tuple[Array, Array, Array]:
    """Log of equation (21), and its derivatives by mean and deviation, `p` each.

    Noise-free, as printed.

    Math: log (1 / S) sum_i [ t_i phi(t_i) / (2 Phi(t_i)) - log Phi(t_i) ],  t_i = (mean - minimum_i) / deviation = -z_i

    Args:
        mean, deviation: `p`, of the objective.
        minima: `S`, samples of the minimum.
    """
    t = (mean - minima[:, None]) / deviation
    each, slope = log_information(t)
    total = logsumexp(each, axis=0)
    pulled = np.exp(each - total) * slope
    return total - math.log(len(minima)), pulled.sum(0) / deviation, -(pulled * t).sum(0) / deviation


def look(history: History, rounding: Rounding, seed: int, raw: int) -> Array:
    """Points for a first look: quasi-random ones all over the cube, the trials, and points around them."""
    spread, near = history.space.spread(raw, seed), history.points
    noise = np.random.default_rng(seed).standard_normal((3, *near.shape))
    around = np.clip(near + _NEAR * noise, 0.0, 1.0).reshape(-1, near.shape[-1])
    return rounding(np.concatenate([spread, near, around]))


@dataclass(frozen=True)
class SuccessScore:
    """Probability of success: the second mode of equation (20)."""

    models: PaperModels
    mode: str = "success"

    def __call__(self, X: Array) -> Array:
        return np.exp(self.log(X))

    def log(self, X: Array) -> Array:
        """Log scores at `p x d`."""
        return self.models.log_success(X)[0]

    def with_slope(self, X: Array) -> tuple[Array, Array]:
        """Log scores at `p x d` and their gradients."""
        return self.models.log_success(X, slope=True)[:2]

    def gain(self, X: Array) -> Array | None:
        """Nothing but success counts."""
        return None


@dataclass(frozen=True)
class EntropyScore:
    """mES times the probability that all constraints hold: the first mode of equation (20), and (22).

    The objective's own crashes are absorbed by its model and are not multiplied.

    Attributes:
        models: with pending trials believed to return their mean.
        minima: `S`, samples of the minimum, constrained for mESCO.
        mode: "mes" or "mesco".
    """

    models: PaperModels
    minima: Array
    mode: str

    def __call__(self, X: Array) -> Array:
        return np.exp(self.log(X))

    def log(self, X: Array) -> Array:
        """Log scores at `p x d`."""
        return self._information(self.models.objective.predictor(X))[0] + self.models.log_constraints(X)[0]

    def gain(self, X: Array) -> Array | None:
        """mES alone: what a picture of the unconstrained acquisition shows."""
        return np.exp(self._information(self.models.objective.predictor(X))[0])

    def with_slope(self, X: Array) -> tuple[Array, Array]:
        """Log scores at `p x d` and their gradients."""
        q = self.models.objective.predictor(X)
        value, by_mean, by_deviation = self._information(q)
        held, by_point = self.models.log_constraints(X, slope=True)
        by_variance = 0.5 * by_deviation / np.sqrt(q.variance[0, 0])
        return value + held, by_point + q.pull(by_mean[None, None], by_variance[None, None])

    def _information(self, q: Prediction) -> tuple[Array, Array, Array]:
        return log_mes(q.mean[0, 0], np.sqrt(q.variance[0, 0]), self.minima)


@dataclass(frozen=True)
class Decision:
    """From the models to what is maximised, for one suggestion.

    Attributes:
        history: everything so far.
        known: the models, without pending trials.
    """

    history: History
    known: PaperModels

    @cached_property
    def rounding(self) -> Rounding:
        """To valid points."""
        return Rounding(self.history.space)

    @cached_property
    def models(self) -> PaperModels:
        """With pending trials believed to return their mean."""
        return self.known.believing(self.history.pending_points)

    @cached_property
    def points(self) -> Array:
        """For a first look."""
        seed = int(self.history.generator(0).integers(2**31))
        return look(self.history, self.rounding, seed, self.history.options.raw)

    @cached_property
    def safest(self) -> Maximum:
        """The point most likely to succeed, found by a global search."""
        score = SuccessScore(self.models)
        return self.maximum(score)

    @cached_property
    def score(self) -> SuccessScore | EntropyScore:
        """Success alone while no point reaches 1 - delta, else mES or mESCO."""
        least = math.log1p(-self.history.options.delta)
        seen = self.models.log_success(self.points)[0].max()
        if seen < least and self.safest.value < least:
            return SuccessScore(self.models)
        name = self.acquisition
        return EntropyScore(self.models, self._minima(constrained=name == "mesco"), name)

    @property
    def acquisition(self) -> str:
        """The name; "auto" is mESCO with constraints and mES without."""
        chosen = self.history.acquisition
        return chosen if chosen != "auto" else "mesco" if self.history.constraints else "mes"

    def _minima(self, *, constrained: bool) -> Array:
        options = self.history.options
        sampler = (
            PathwiseMinimum()
            if options.sampler == "pathwise"
            else VirtualMinimum(options.starts, 2 * max(options.starts, _STEPS))
        )
        limits = list(self.models.constraints.values()) if constrained else []
        return sampler(self.models.objective, limits, options.samples, self.history.generator(1), self.rounding)

    def maximum(self, score: SuccessScore | EntropyScore) -> Maximum:
        """The best point of a score, its value in logs."""
        return maximise(score.log, score.with_slope, self.points, self.rounding, effort=_EFFORT)

    def choose(self) -> Maximum:
        """The next point."""
        score = self.score
        return self.safest if isinstance(score, SuccessScore) else self.maximum(score)
