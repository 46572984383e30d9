"""The paper's strategy behind the common interface."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crashbo.arrays import Array
from crashbo.history import History
from crashbo.strategies.averaged import Memory, model_all
from crashbo.strategies.base import Guess, Suggested
from crashbo.strategies.design import initial_count, initial_point
from crashbo.strategies.maximise import Effort, Maximum, Rounding, look, maximise
from crashbo.strategies.paper.model import PaperModels, model_output
from crashbo.strategies.paper.pathwise import PathwiseMinimum
from crashbo.strategies.paper.score import PaperScore
from crashbo.strategies.paper.virtual import VirtualMinimum

_STEPS = 200  # virtual evaluations of a local search, at least
_STRICT = 1e3  # prior standard deviations of cost per log of success probability that a guess misses
_EFFORT = Effort(starts=6, iterations=40, evaluations=120, precision=1e-9)
_GUESS = Effort(starts=8, iterations=60, evaluations=200, precision=1e-11)
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
        return PaperModels(*model_all(history, lambda one: model_output(history, one, self.memory)))

    def suggest(self, history: History) -> Suggested:
        """See `Strategy`."""
        if not history.trials or len(history.trials) + len(history.pending) < initial_count(history):
            return Suggested(initial_point(history), "initial")
        decision = Decision(history, self.surrogate(history))
        found = decision.choose()
        success = float(decision.known.success(found.point[None])[0])
        return Suggested(found.point, decision.score.mode, math.exp(found.value), success)

    def score(self, history: History) -> PaperScore:
        """See `Strategy`."""
        return Decision(history, self.surrogate(history)).score

    def guess(self, history: History) -> Guess:
        """Lowest posterior mean where success is likely enough, equation (19); else the likeliest success."""
        models, rounding = self.surrogate(history), Rounding(history.space)
        points = look(history, rounding, history.seed, _RAW)
        success, least = PaperScore(models), math.log1p(-history.options.delta)
        if success.log(points).max() < least or not models.any_cost:
            safest = maximise(success.log, success.with_slope, points, rounding, effort=_GUESS)
            if safest.value < least or not models.any_cost:
                return Guess(safest.point, safest.value >= least)
            points = np.concatenate([points, safest.point[None]])
        return Guess(_lowest_mean(success, points, rounding, least).point, True)


def _lowest_mean(success: PaperScore, points: Array, rounding: Rounding, least: float) -> Maximum:
    """Minimise the posterior mean subject to log success >= least."""
    objective = success.models.objective

    def score(X: Array) -> Array:
        mean = objective.predictor(X).mean[0, 0]
        return -mean / objective.deviation + _STRICT * np.minimum(success.log(X) - least, 0.0)

    def slope(X: Array) -> tuple[Array, Array]:
        q, (held, by_point) = objective.predictor(X), success.with_slope(X)
        by_mean = np.zeros_like(q.mean)
        by_mean[0, 0] = -1 / objective.deviation
        short = np.minimum(held - least, 0.0)
        gradient = q.pull(by_mean, np.zeros_like(by_mean)) + _STRICT * (short < 0)[:, None] * by_point
        return -q.mean[0, 0] / objective.deviation + _STRICT * short, gradient

    return maximise(score, slope, points, rounding, effort=_GUESS, allowed=lambda X: success.log(X) >= least)


@dataclass(frozen=True)
class Decision:
    """From the models, which do not know pending trials, to what is maximised, for one suggestion."""

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
        history, seed = self.history, int(self.history.generator(0).integers(2**31))
        return look(history, self.rounding, seed, history.options.raw)

    @cached_property
    def safest(self) -> Maximum:
        """The point most likely to succeed, found by a global search."""
        return self._maximum(PaperScore(self.models))

    @cached_property
    def score(self) -> PaperScore:
        """Success alone while no point reaches 1 - delta, else mES, or mESCO with constraints, unless one is named."""
        history, success = self.history, PaperScore(self.models)
        least = math.log1p(-history.options.delta)
        if success.log(self.points).max() < least and self.safest.value < least:
            return success
        usual = "mesco" if history.constraints else "mes"
        name = usual if history.acquisition == "auto" else history.acquisition
        return PaperScore(self.models, name, self._minima(constrained=name == "mesco"))

    def _minima(self, *, constrained: bool) -> Array:
        options = self.history.options
        virtual = VirtualMinimum(options.starts, 2 * max(options.starts, _STEPS))
        sampler = PathwiseMinimum() if options.sampler == "pathwise" else virtual
        limits = list(self.models.constraints.values()) if constrained else []
        return sampler(self.models.objective, limits, options.samples, self.history.generator(1), self.rounding)

    def _maximum(self, score: PaperScore) -> Maximum:
        return maximise(score.log, score.with_slope, self.points, self.rounding, effort=_EFFORT)

    def choose(self) -> Maximum:
        """The next point, its score in logs."""
        return self.safest if self.score.mode == "success" else self._maximum(self.score)
