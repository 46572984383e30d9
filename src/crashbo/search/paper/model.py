"""A Gaussian process for classified regression, or a standard GP, of every output: one model instead of an average."""

import math
from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from crashbo.model.average import Candidates, ModelSet
from crashbo.model.belief import Output
from crashbo.model.block import Block
from crashbo.model.inference import Posterior, condition_on_values, evidence_gradient, infer
from crashbo.model.kernel import Matern52
from crashbo.model.map import find_mode, log_normal, log_value_prior, usual_values, value_bounds
from crashbo.model.numbers import HEADROOM, HYPERPRIOR, NUMBERS, THRESHOLD_RANGE
from crashbo.model.recipe import output_block
from crashbo.model.rows import NOISE_FLOOR, Rows, joint_covariance
from crashbo.model.surrogate import Limit
from crashbo.model.threshold import ThresholdEstimate, ThresholdRule, estimate_threshold, threshold_deviation
from crashbo.model.values import ValuePoint, fixed_values
from crashbo.model.warp import Warp, make_warp
from crashbo.problem.arrays import Array
from crashbo.problem.history import History


@dataclass(frozen=True, kw_only=True)
class GPCR(Output):
    """The Gaussian q(f) of equations (10) and (14), with its threshold."""

    point: ValuePoint  # hyperparameters of the value
    rule: ThresholdRule  # in prior standard deviations of the value
    estimate: ThresholdEstimate  # in these too

    @property
    def posterior(self) -> Posterior:
        """b = 1; values in units of the warp."""
        return self.models.posterior

    @property
    def deviation(self) -> float:
        """Prior standard deviation of the value."""
        return float(self.posterior.at.mixing[0, 0, 0])

    @property
    def noise(self) -> float:
        """Variance of the noise, above the engine's floor."""
        return max(float(self.posterior.at.noise[0, 0]), NOISE_FLOOR * self.deviation**2)

    @property
    def threshold(self) -> float:
        """In units of the warp; infinity of an output that cannot fail."""
        return self.deviation * float(self.thresholds[0, 0, 0]) if self.models.block.margins else math.inf

    def limit(self) -> Limit | None:
        """The threshold in the output's own units, with its spread; None where it says nothing."""
        block, warp = self.models.block, self.point.warp
        if block.threshold is not None:
            return Limit(block.threshold)
        if not len(block.values) or not math.isfinite(self.threshold):
            return None
        return Limit(float(warp.undo(np.array(self.threshold))), warp.scale * self.deviation * self._spread)

    @cached_property
    def _spread(self) -> float:
        return threshold_deviation(self.posterior.given, self.posterior.rows.sign, self.rule, self.estimate)

    def with_pending(self, X: Array) -> Self:
        """This model with points under way that return their mean; the threshold stays."""
        return self._assuming(X, np.ones(len(X), dtype=bool), labelled=False)


@dataclass(frozen=True)
class PaperRecipe:
    """One GPCR or standard GP per output."""

    def block(self, history: History, output: str) -> Block | None:
        """Every output absorbs its failures.

        The objective is a GPCR if it ever crashed or if nothing else can fail, else a standard GP (case 3). Values on
        both sides of a known limit say all that labels would: then only trials without a value have a label.
        """
        block = output_block(history, output, absorbed=True)
        if block is None or block.threshold is None or (block.values > block.threshold).any():
            return block
        return replace(block, below=block.value_point)

    def kind(self, block: Block) -> Hashable:
        return block.margins, bool(len(block.values))

    def learn(self, history: History, output: str, block: Block) -> ValuePoint:
        return learn(block) if block.fixed is None else fixed_values(block)

    def fit(self, history: History, block: Block, learned: ValuePoint) -> GPCR:
        return fit(block, learned)


def fit(block: Block, point: ValuePoint) -> GPCR:
    """Estimate the threshold, unless it is known, then infer; labels that conflict with the rest are relaxed."""
    warp, scale = point.warp, math.exp(0.5 * point.theta[-2])
    if block.threshold is not None:
        rule = ThresholdRule(fixed=float(warp(np.array(block.threshold))) / scale)
    else:
        prior = HYPERPRIOR if block.fixed is None else block.fixed.threshold_prior
        rule = ThresholdRule(prior=None if prior is None else (prior[0] / scale, prior[1] / scale))
    rows = block.rows(warp(block.values))
    at = block.with_threshold(point.theta[None], np.zeros(1), point.kernel)
    given = condition_on_values(joint_covariance(rows, at), rows.values, at.row_noise(rows))
    found = estimate_threshold(given, rows.sign, rule)
    at = block.with_threshold(point.theta[None], np.array([found.threshold]), point.kernel)
    posterior = Posterior(found.solution.weights, found.solution.log_evidence, found.solution.ep, given, rows, at)
    models = ModelSet(block, Candidates(at, (warp,), np.zeros(1)), posterior, np.ones(1), 0.0)
    return GPCR(models, point=point, rule=rule, estimate=found)


def learn(block: Block) -> ValuePoint:
    """The most probable hyperparameters of standardised values, Matern-5/2; the usual ones while there is no value.

    Math: argmax over (lengthscales, variance, noise, c) of log alpha + log Z_EP + log p(all of them),
        alpha the regression evidence of the stable points (Appendix "Product of two multivariate Gaussians", corrected)
    """
    d = block.X.shape[-1]
    start, bounds = usual_values(d), value_bounds(d)
    if not len(block.values):
        return ValuePoint(Warp(), Matern52(), start, 0.0)
    warp = make_warp(block.values, 0.0)
    assert warp is not None
    values = warp(block.values)
    rows, known = block.rows(values), math.inf if block.threshold is None else float(warp(np.array(block.threshold)))
    searched = bool(block.margins) and block.threshold is None
    if searched:
        start, bounds = np.append(start, values.max() + HEADROOM), [*bounds, THRESHOLD_RANGE]

    def with_priors(theta: Array) -> tuple[float, Array]:
        logs, threshold = theta[: d + 2], float(theta[-1]) if searched else known
        value, gradient = log_evidence(block, rows, logs, threshold)
        prior, by_prior = log_value_prior(logs, NUMBERS)
        if not searched:
            return value + float(prior), gradient[:-1] + by_prior
        hyperprior, pull = log_normal(np.array(threshold), *HYPERPRIOR)
        return value + float(prior + hyperprior), gradient + np.append(by_prior, pull)

    mode = find_mode(with_priors, start, bounds)
    return ValuePoint(warp, Matern52(), mode.theta[: d + 2], 0.0)


def log_evidence(block: Block, rows: Rows, logs: Array, threshold: float) -> tuple[float, Array]:
    """Log evidence of a GPCR, and its gradient, `d + 3`: by `logs` as in `log_value_prior`, and by the threshold."""
    scale = math.exp(0.5 * logs[-2])
    at = block.with_threshold(logs[None], np.array([threshold / scale]), Matern52())
    posterior = infer(rows, at, tolerance=1e-5, max_sweeps=100)
    gradient = evidence_gradient(posterior)
    gradient[-1] /= scale
    gradient[-3] -= 0.5 * threshold * gradient[-1] if gradient[-1] else 0.0
    return float(posterior.log_evidence[0]), gradient
