"""A gpytorch kernel's hyperparameters, the noise and the threshold, learned by MAP from the engine's evidence."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from gpytorch.kernels import Kernel
from numpy.typing import NDArray

from crashbo.adapters.botorch.data import HybridData, to_numpy
from crashbo.adapters.botorch.kernels import Coordinates, covariance
from crashbo.errors import NumericalError
from crashbo.model.ep import Labels
from crashbo.model.inference import Conditioned, condition_on_values, evidence_slope, solve
from crashbo.model.map import find_mode, log_normal
from crashbo.model.numbers import NOISE_RANGE, NUMBERS, RELAXED_RATE
from crashbo.model.rows import NOISE_FLOOR
from crashbo.model.threshold import ThresholdEstimate, ThresholdRule, estimate_threshold
from crashbo.problem.arrays import Array

_TWINS = 0.999  # prior correlation of a crash and a success above which there may be no room between them
_ASTRAY = 10.0  # mismatch of moments beyond which the evidence of EP is not believed


@dataclass(frozen=True)
class Hypotheses:
    """What the model assumes besides the data, in the data's own units.

    Attributes:
        rule: how the threshold is found.
        noise_variance: of the costs, fixed or a starting point.
        learn_noise: whether `learn` may change it.
        label_width: probit width of the labels, 0 for a step.
    """

    rule: ThresholdRule
    noise_variance: float
    learn_noise: bool = False
    label_width: float = 0.0


@dataclass(frozen=True)
class TrialRows:
    """Trials as rows of the engine: a value where a cost was seen, then a label for every trial.

    Attributes:
        index: `r`, the trial of every row.
        values: `k`.
        sign: `n`.
    """

    index: NDArray[np.int64]
    values: Array
    sign: Array

    @classmethod
    def of(cls, data: HybridData) -> "TrialRows":
        observed = data.observed.cpu().numpy()
        return cls(np.concatenate([observed, np.arange(len(data.X))]), to_numpy(data.costs), to_numpy(data.sign))

    def condition(self, prior: Array, noise_variance: float) -> Conditioned:
        """The labelled rows given the values, from the covariance of the trials, `n x n`."""
        noise = max(noise_variance, NOISE_FLOOR * float(np.diagonal(prior).mean()))
        rows = prior[np.ix_(self.index, self.index)]
        return condition_on_values(rows[None], self.values, np.full((1, len(self.values)), noise))

    def by_trials(self, slope: Array) -> Array:
        """Derivatives by the covariance of the trials, `n x n`, from those by the rows'."""
        total = np.zeros((len(self.sign), len(self.sign)))
        np.add.at(total, (self.index[:, None], self.index), slope)
        return total


def condition(kernel: Kernel, data: HybridData, noise_variance: float) -> Conditioned:
    """The labelled trials given the costs, at the kernel's hyperparameters."""
    with torch.no_grad():
        prior = to_numpy(covariance(kernel, data.X))
    return TrialRows.of(data).condition(prior, noise_variance)


def solve_threshold(
    kernel: Kernel, data: HybridData, given: Hypotheses, guess: float | None = None, sites: Array | None = None
) -> ThresholdEstimate:
    """Find threshold and posterior for hyperparameters as they are."""
    base = condition(kernel, data, given.noise_variance)
    sign, width = to_numpy(data.sign), given.label_width
    return estimate_threshold(base, sign, given.rule, width=width, guess=guess, sites=sites)


class Evidence:
    """Log evidence of trials under a gpytorch kernel, with the engine's derivatives pulled back through autograd.

    Math: d log evidence / d theta = sum_ij slope_ij dK_ij / d theta,  slope = (b b' - G) / 2
    """

    def __init__(self, kernel: Kernel, data: HybridData, given: Hypotheses, *, tolerance: float = 1e-4) -> None:
        self.coordinates, self.data, self.given, self.tolerance = Coordinates(kernel), data, given, tolerance
        self.kernel, self.rows = kernel, TrialRows.of(data)
        self.rates = _rates_of_twins(kernel, data)
        self.sites: Array | None = None

    def __call__(self, noise_variance: float, threshold: float) -> tuple[float, Array, float, float]:
        """The value, and its derivatives by the kernel's vector, log noise variance and threshold; priors included."""
        prior = covariance(self.kernel, self.data.X)
        dense = to_numpy(prior)
        base = self.rows.condition(dense, noise_variance)
        labels = Labels(self.rows.sign, threshold, self.given.label_width, self.rates)
        found = solve(base, labels, start=self.sites, tolerance=self.tolerance)
        if found.ep.change[0] > _ASTRAY:
            raise NumericalError("expectation propagation went astray at these hyperparameters.")
        self.sites = found.ep.sites
        slope = evidence_slope(found)[0]
        by_trials = torch.as_tensor(self.rows.by_trials(slope)).to(prior)
        log_prior = self.coordinates.log_prior()
        total = (by_trials * prior).sum().cpu() + log_prior
        by_kernel = self.coordinates.gradient(total) if self.coordinates.entries else np.zeros(0)
        k = len(self.rows.values)
        by_noise = float(np.diagonal(slope)[:k].sum()) * noise_variance
        value = float(found.log_evidence[0]) + float(log_prior.detach())
        return value, by_kernel, by_noise, -float(found.ep.gradient.sum())


def _rates_of_twins(kernel: Kernel, data: HybridData) -> Array:
    """`n`, a lapse rate for every crash that has a success so near that there may be no room between them.

    Without it the noise would be learned to explain them, everywhere.
    """
    with torch.no_grad():
        prior = to_numpy(covariance(kernel, data.X))
    deviation = np.sqrt(np.diagonal(prior))
    near = prior / deviation / deviation[:, None] > _TWINS
    sign = to_numpy(data.sign)
    return np.where((sign < 0) & near[:, to_numpy(data.observed).astype(int)].any(-1), RELAXED_RATE, 0.0)


def learn(
    kernel: Kernel,
    data: HybridData,
    given: Hypotheses,
    *,
    start: ThresholdEstimate | None = None,
    max_iterations: int = 100,
) -> float:
    """Set the kernel's parameters to their MAP values, in place, jointly with noise and threshold.

    The kernel never ends worse than it began.

    Args:
        kernel: its parameters and registered priors take part.
        data: trials.
        given: noise (fixed or start) and threshold rule.
        start: threshold and sites to begin from.
        max_iterations: of the optimizer.

    Returns:
        The noise variance, learned or as given.
    """
    objective = _Objective(Evidence(kernel, data, given), start or solve_threshold(kernel, data, given))
    if not objective.chosen.any():
        return given.noise_variance
    best = find_mode(objective, objective.begin, objective.bounds, iterations=max_iterations, precision=1e-8)
    smooth = objective.smoother()
    if smooth is not None:
        other = find_mode(objective, smooth, objective.bounds, iterations=min(30, max_iterations), precision=1e-8)
        best = max(best, other, key=lambda mode: mode.log_posterior)
    found = math.isfinite(best.log_posterior)
    noise, _ = objective.write(best.theta if found else objective.begin)
    return noise


class _Objective:
    """Log posterior of the numbers to be learned: kernel, log noise variance, threshold, where they are free."""

    def __init__(self, evidence: Evidence, first: ThresholdEstimate) -> None:
        given = evidence.given
        self.evidence, self.given, self.first = evidence, given, first
        self.searched = given.rule.without_search(evidence.rows.sign) is None
        self.p = len(evidence.coordinates.bounds)
        log_noise = math.log(float(np.clip(given.noise_variance, *NOISE_RANGE)))
        self.chosen = np.r_[np.ones(self.p, dtype=bool), given.learn_noise, self.searched]
        self.full = np.r_[evidence.coordinates.read(), log_noise, first.threshold if self.searched else 0.0]
        self.begin = self.full[self.chosen]
        noise_bounds = (math.log(NOISE_RANGE[0]), math.log(NOISE_RANGE[1]))
        bounds = [*evidence.coordinates.bounds, noise_bounds, (given.rule.floor, math.inf)]
        self.bounds = [bound for bound, used in zip(bounds, self.chosen, strict=True) if used]

    def smoother(self) -> Array | None:
        """Another start; see `Coordinates.smoother`."""
        smooth = self.evidence.coordinates.smoother(self.full[: self.p])
        return None if smooth is None else np.r_[smooth, self.full[self.p :]][self.chosen]

    def write(self, theta: Array) -> tuple[float, float]:
        """Set the kernel's parameters; returns noise variance and threshold."""
        full = self.full.copy()
        full[self.chosen] = theta
        self.evidence.coordinates.write(full[: self.p])
        noise = math.exp(full[self.p]) if self.given.learn_noise else self.given.noise_variance
        return noise, float(full[self.p + 1]) if self.searched else self.first.threshold

    def __call__(self, theta: Array) -> tuple[float, Array]:
        noise, threshold = self.write(theta)
        value, by_kernel, by_noise, by_threshold = self.evidence(noise, threshold)
        if self.given.learn_noise:
            log_prior, slope = log_normal(np.log(noise), *NUMBERS.noise)
            value, by_noise = value + float(log_prior), by_noise + float(slope)
        if self.searched:
            hyperprior, pull = self.given.rule.log_density(threshold)
            value, by_threshold = value + hyperprior, by_threshold + pull
        return value, np.r_[by_kernel, by_noise, by_threshold][self.chosen]
