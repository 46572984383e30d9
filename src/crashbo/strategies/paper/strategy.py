"""The paper's strategy behind the common interface."""

import math

import numpy as np
from numpy.typing import NDArray

from crashbo.history import History
from crashbo.strategies.averaged import Memory
from crashbo.strategies.base import Guess, Suggested
from crashbo.strategies.design import initial_count, initial_point
from crashbo.strategies.maximise import Effort, Maximum, Rounding, maximise
from crashbo.strategies.paper.score import Decision, EntropyScore, SuccessScore, look
from crashbo.strategies.paper.surrogate import PaperModels, model_outputs

Array = NDArray[np.float64]
_STRICT = 1e3  # prior standard deviations of cost per log of success probability that a guess misses
_EFFORT = Effort(starts=8, iterations=60, evaluations=200, precision=1e-11)
_RAW = 1024  # quasi-random points that a best guess looks at


class PaperStrategy:
    """Classified regression with mES or mESCO (Marco et al.), as printed, with the corrections of `docs/method.md`.

    Thresholds are estimated anew with every trial; a point is suggested by equation (20), and the best guess is that of
    equation (19). While no trial has a cost, the threshold is 0 and the likeliest success is suggested.
    """

    def __init__(self) -> None:
        self.memory = Memory()

    def surrogate(self, history: History) -> PaperModels:
        """See `Strategy`."""
        return model_outputs(history, self.memory)

    def suggest(self, history: History) -> Suggested:
        """See `Strategy`."""
        if not history.trials or len(history.trials) + len(history.pending) < initial_count(history):
            return Suggested(initial_point(history), "initial")
        decision = Decision(history, self.surrogate(history))
        found = decision.choose()
        success = float(decision.known.success(found.point[None])[0])
        return Suggested(found.point, decision.score.mode, math.exp(found.value), success)

    def score(self, history: History) -> SuccessScore | EntropyScore:
        """See `Strategy`."""
        return Decision(history, self.surrogate(history)).score

    def guess(self, history: History) -> Guess:
        """Lowest posterior mean where success is likely enough, equation (19); else the likeliest success."""
        models, rounding = self.surrogate(history), Rounding(history.space)
        points = look(history, rounding, history.seed, _RAW)
        least = math.log1p(-history.options.delta)
        seen = models.log_success(points)[0]
        if seen.max() < least or not models.any_cost:
            score = SuccessScore(models)
            safest = maximise(score.log, score.with_slope, points, rounding, effort=_EFFORT)
            if safest.value < least or not models.any_cost:
                return Guess(safest.point, safest.value >= least)
            points = np.concatenate([points, safest.point[None]])
        return Guess(_lowest_mean(models, points, rounding, least).point, True)


def _lowest_mean(models: PaperModels, points: Array, rounding: Rounding, least: float) -> Maximum:
    """Minimise the posterior mean subject to log success >= least."""
    unit = math.sqrt(models.objective.prior.variance)

    def score(X: Array) -> Array:
        held, _, q = models.log_success(X)
        return -q.mean[0, 0] / unit + _STRICT * np.minimum(held - least, 0.0)

    def slope(X: Array) -> tuple[Array, Array]:
        held, by_point, q = models.log_success(X, slope=True)
        short = np.minimum(held - least, 0.0)
        flat = np.zeros_like(q.variance)
        by_mean = q.pull(np.full_like(q.mean, -1 / unit), flat)
        gradient = by_mean + _STRICT * np.where(short < 0, 1.0, 0.0)[:, None] * by_point
        return -q.mean[0, 0] / unit + _STRICT * short, gradient

    return maximise(score, slope, points, rounding, effort=_EFFORT, allowed=lambda X: models.log_success(X)[0] >= least)
