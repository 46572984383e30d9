"""The paper's strategy behind the common interface: mES and mESCO with the mode switch, equations (17) to (22)."""

import math
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Self

import numpy as np
from scipy.special import logsumexp

from crashbo.model.belief import Averaged, Output
from crashbo.model.memory import Memory
from crashbo.model.prediction import Prediction
from crashbo.model.recipe import model_outputs
from crashbo.model.truncation import log_information, truncation
from crashbo.problem.arrays import Array
from crashbo.problem.history import History
from crashbo.problem.space import Space
from crashbo.search.design import initial_count, initial_point
from crashbo.search.maximise import Effort, Maximum, maximise
from crashbo.search.paper.minima import pathwise_minima, virtual_minima
from crashbo.search.paper.model import GPCR, PaperRecipe
from crashbo.search.points import Rounding, look
from crashbo.search.strategy import Guess, Suggested

_CERTAIN = 1e3  # standard deviations below a limit beyond which nothing changes
_STEPS = 200  # virtual evaluations of a local search, at least
_STRICT = 1e3  # prior standard deviations of cost per log of success probability that a guess misses
_EFFORT = Effort(starts=6, iterations=40, evaluations=120, precision=1e-9)
_GUESS = Effort(starts=8, iterations=60, evaluations=200, precision=1e-11)
_RAW = 1024  # quasi-random points that a best guess looks at


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
    """Log of equation (17), the probability that an output holds, `p`, and its derivatives as `Prediction.vjp` takes.

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
        gradients = [q.vjp(by_mean, by_variance) for q, _, by_mean, by_variance in factors]
        return np.sum([log for _, log, _, _ in factors], 0), np.sum(gradients, 0)

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


@dataclass(frozen=True)
class PaperStrategy:
    """Classified regression with mES or mESCO (Marco et al.), as printed, with the corrections of `docs/method.md`.

    Thresholds are estimated anew with every trial; a point is suggested by equation (20), and the best guess is that of
    equation (19). While no trial has a cost, the threshold is 0 and the likeliest success is suggested.
    """

    memory: Memory = field(default_factory=Memory, compare=False, repr=False)  # what was learned

    def with_memory(self, memory: Memory) -> Self:
        """The same strategy, which keeps what it learns there."""
        return replace(self, memory=memory)

    def surrogate(self, history: History) -> Averaged[GPCR]:
        return model_outputs(PaperRecipe(), history, self.memory)

    def suggest(self, history: History) -> Suggested:
        if not history.trials or len(history.trials) + len(history.pending) < initial_count(history):
            return Suggested(initial_point(history), "initial")
        score, points, found = self._decide(history)
        found = found or maximise(score.log, score.with_slope, points, history.space, effort=_EFFORT)
        success = float(self.surrogate(history).success(found.point[None])[0])
        return Suggested(found.point, score.mode, math.exp(found.value), success)

    def score(self, history: History) -> PaperScore:
        return self._decide(history)[0]

    def _decide(self, history: History) -> tuple[PaperScore, Array, Maximum | None]:
        """Success alone while no point reaches 1 - delta, else mES, or mESCO with constraints, unless one is named.

        Also points to search the score's maximum from, and that maximum where it is known already.
        """
        models, options = self.surrogate(history).with_pending(history.pending_points), history.options
        points = look(history, int(history.generator(0).integers(2**31)), options.raw, history.points)
        success, least = PaperScore(models), math.log1p(-options.delta)
        if success.log(points).max() < least:
            safest = maximise(success.log, success.with_slope, points, history.space, effort=_EFFORT)
            if safest.value < least:
                return success, points, safest
        usual = "mesco" if history.constraints else "mes"
        name = usual if history.problem.acquisition == "auto" else history.problem.acquisition
        steps = 2 * max(options.starts, _STEPS)
        virtual = partial(virtual_minima, starts=options.starts, evaluations=steps)
        sampler = pathwise_minima if options.sampler == "pathwise" else virtual
        limits = list(models.constraints.values()) if name == "mesco" else []
        minima = sampler(models.objective, limits, options.samples, history.generator(1), Rounding(history.space))
        return PaperScore(models, name, minima), points, None

    def guess(self, history: History) -> Guess:
        """Lowest posterior mean where success is likely enough, equation (19); else the likeliest success."""
        models, points = self.surrogate(history), look(history, history.seed, _RAW, history.points)
        success, least = PaperScore(models), math.log1p(-history.options.delta)
        if success.log(points).max() < least or not models.any_cost:
            safest = maximise(success.log, success.with_slope, points, history.space, effort=_GUESS)
            if safest.value < least or not models.any_cost:
                return Guess(safest.point, safest.value >= least)
            points = np.concatenate([points, safest.point[None]])
        return Guess(_lowest_mean(success, points, history.space, least), True)


def _lowest_mean(success: PaperScore, points: Array, space: Space, least: float) -> Array:
    """The point of the lowest posterior mean subject to log success >= least, `d`."""
    objective, unit = success.models.objective, success.models.objective.deviation

    def value(q: Prediction, held: Array) -> Array:
        return -q.mean[0, 0] / unit + _STRICT * np.minimum(held - least, 0.0)

    def score(X: Array) -> Array:
        return value(objective.predictor(X), success.log(X))

    def slope(X: Array) -> tuple[Array, Array]:
        q, (held, by_point) = objective.predictor(X), success.with_slope(X)
        by_mean = np.zeros_like(q.mean)
        by_mean[0, 0] = -1 / unit
        gradient = q.vjp(by_mean, np.zeros_like(by_mean)) + _STRICT * (held < least)[:, None] * by_point
        return value(q, held), gradient

    return maximise(score, slope, points, space, effort=_GUESS, allowed=lambda X: success.log(X) >= least).point
