"""The crash threshold c as a hyperparameter: fixed, maximum likelihood (15), or MAP (16).

A crash next to a success, closer than the function can change, contradicts the success's value (the paper's
Discussion). Instead of noise everywhere, that crash alone may have been a lapse, and only if the evidence prefers this.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import log_ndtr

from crashbo.model.ep import EPResult, Labels, propagate
from crashbo.model.inference import Conditioned, Solution, solve
from crashbo.model.map import find_mode, log_normal
from crashbo.model.numbers import AGAINST, RELAXED_RATE
from crashbo.problem.arrays import Array, Bools, Indices

_ROUNDS = 3  # of relaxing labels that conflict with the rest
_PRECISION = 1e-11  # of the log posterior, relative
_TOLERANCE, _SWEEPS = 1e-6, 60  # of EP while searching
_STEEPEST = 1e-6  # derivative at which the search stops
_ROUGH = 1e-5  # tolerance of EP in an integral over the threshold
_NEGLIGIBLE = 8.0  # log posterior below its maximum at which such an integral ends
_NODES = 24  # of the integral, on each side


@dataclass(frozen=True)
class ThresholdRule:
    """How the threshold is found.

    A searched threshold cannot lie below the `floor`, the highest value seen to hold. The paper has none: there a noisy
    value may lie above the threshold while the latent one does not.
    """

    fixed: float | None = None  # a known threshold; nothing is searched
    prior: tuple[float, float] | None = None  # mean and deviation of the hyperprior (16); None: maximum likelihood (15)
    floor: float = -math.inf

    def with_floor(self, values: Array) -> "ThresholdRule":
        """This rule after more values were seen to hold."""
        return self if len(values) == 0 else replace(self, floor=max(self.floor, float(values.max())))

    def without_search(self, sign: Array) -> float | None:
        """Return the threshold where the paper prescribes it, None where it must be searched.

        No success: 0, with or without a hyperprior. No trials: the hyperprior's mean. Only successes under maximum
        likelihood: infinity.
        """
        if self.fixed is not None:
            return self.fixed
        if len(sign) == 0:
            return self.prior[0] if self.prior else 0.0
        if (sign < 0).all():
            return 0.0
        if self.prior is None and not (sign < 0).any():
            return math.inf
        return None

    def log_density(self, threshold: float) -> tuple[float, float]:
        """Log hyperprior up to a constant, and its derivative; 0 without one."""
        if self.prior is None:
            return 0.0, 0.0
        value, slope = log_normal(np.array(threshold), *self.prior)
        return float(value), float(slope)


@dataclass(frozen=True)
class ThresholdEstimate:
    """A threshold and the posterior that belongs to it."""

    threshold: float  # may be infinite (maximum likelihood, one kind of label only)
    solution: Solution  # at threshold, of one problem
    relaxed: Indices  # labels that conflict with the rest and have probably lapsed
    rates: Array  # m, lapse rates of the labels
    log_posterior: float  # log evidence plus log hyperprior
    solves: int  # EP solves the search took


def estimate_threshold(
    given: Conditioned,
    sign: Array,
    rule: ThresholdRule,
    *,
    width: float = 0.0,
    guess: float | None = None,
    sites: Array | None = None,
) -> ThresholdEstimate:
    """Find the threshold that maximises log Z_EP(c) plus the log hyperprior, relaxing labels that conflict.

    Args:
        given: labelled rows given the values, one setting.
        sign: `m`, +1 at or below the threshold, -1 above.
        rule: fixed, maximum likelihood or MAP.
        width: probit width of the labels.
        guess, sites: threshold and EP's sites to begin from.
    """
    labels = Labels(sign, 0.0, width, np.zeros(len(sign)))  # the limit is what is searched
    best = _search(given, labels, rule, guess, sites)
    for _ in range(_ROUNDS):
        conflicts = _conflicts(best.solution, replace(labels, limit=best.threshold))
        if not conflicts.any():
            break
        labels = replace(labels, lapse=np.where(conflicts, RELAXED_RATE, labels.lapse))
        other = _search(given, labels, rule)
        if not other.log_posterior > best.log_posterior:
            break
        best = replace(other, solves=best.solves + other.solves)
    return best


def _conflicts(solution: Solution, labels: Labels) -> Bools:
    """Labels above a limit that other rows speak against, `m`: candidates to be relaxed.

    A label that is unlikely a priori, and no less likely given the rest, is a surprise but no conflict. A crash and a
    success at one point hold each other where EP cannot tell, so the values alone are asked too.

    Math: log Pr(label | rest) - log Pr(label) < -2, the rest being all other rows, or the values
    """
    given = solution.given

    def log_mass(gap: Array | float, deviation: Array) -> Array:
        return np.asarray(log_ndtr(labels.sign * gap / np.hypot(deviation, labels.width)))

    by_values = log_mass(labels.limit - given.mean[0], given.residual_std[0])
    against = np.minimum(solution.ep.log_mass[0], by_values) - log_mass(labels.limit, given.deviation[0]) < -AGAINST
    return np.asarray(against & (labels.sign < 0) & (labels.lapse < RELAXED_RATE))


def _search(
    given: Conditioned, labels: Labels, rule: ThresholdRule, guess: float | None = None, sites: Array | None = None
) -> ThresholdEstimate:
    """The most probable threshold of labels; every EP starts from the sites of the one before."""
    solves, rates = 0, np.asarray(labels.lapse)

    def at(threshold: float, sweeps: int) -> Solution:
        nonlocal sites, solves
        moved = replace(labels, limit=threshold)
        found = solve(given, moved, start=sites, tolerance=_TOLERANCE, max_sweeps=sweeps)
        sites, solves = found.ep.sites, solves + 1
        return found

    known = rule.without_search(labels.sign)
    if known is None:
        # One standard deviation above the highest success, unless there is an earlier estimate.
        upper = np.where(labels.sign > 0, given.mean[0] + given.residual_std[0], -math.inf)
        unit = float(given.residual_std[0, upper.argmax()])
        first = float(upper.max()) if guess is None else guess

        def log_posterior(theta: Array) -> tuple[float, Array]:
            threshold = first + unit * float(theta[0])
            found = at(threshold, _SWEEPS)
            prior, slope = rule.log_density(threshold)
            return float(found.log_evidence[0]) + prior, unit * np.array([slope - found.ep.gradient.sum()])

        bounds = [((rule.floor - first) / unit, math.inf)]
        mode = find_mode(log_posterior, np.zeros(1), bounds, precision=_PRECISION, steepest=_STEEPEST)
        known = max(first + unit * float(mode.theta[0]), rule.floor)
    solution = at(known, 200)
    relaxed = np.flatnonzero((rates > 0) & (solution.ep.kept[0] < 0.5))
    log_posterior_there = float(solution.log_evidence[0]) + rule.log_density(known)[0]
    return ThresholdEstimate(known, solution, relaxed, rates, log_posterior_there, solves)


def solve_labels(given: Conditioned, sign: Array, thresholds: Array, start: Array | None = None) -> EPResult:
    """EP of the labelled latents at `b` thresholds."""
    mean, covariance = (np.repeat(part, len(thresholds), 0) for part in (given.mean, given.covariance))
    return propagate(mean, covariance, Labels(sign, thresholds[:, None]), start=start, tolerance=_ROUGH, max_sweeps=100)


def threshold_deviation(given: Conditioned, sign: Array, rule: ThresholdRule, mode: ThresholdEstimate) -> float:
    """Root mean square deviation of c from its mode under its posterior.

    The posterior rises steeply at the highest stable value and falls slowly above it, which a curvature would miss. It
    is integrated by the trapezoid rule on steps that widen away from the mode, as wide as the posterior itself.

    Math: deviation^2 = int (c - mode)^2 Z_EP(c) p(c) dc / int Z_EP(c) p(c) dc
    """
    unit = float(np.sqrt(np.maximum(np.diagonal(given.covariance[0]).max(), 0.0)))
    reach = unit if rule.prior is None else max(unit, rule.prior[1])
    ladder = np.concatenate([[0.0], np.geomspace(1e-4 * unit, 6 * reach, _NODES)])
    nodes = np.concatenate([mode.threshold - ladder[:0:-1], mode.threshold + ladder])
    start = np.repeat(mode.solution.ep.sites, len(nodes), 1)
    heights = solve_labels(given, sign, nodes, start).log_partition
    if rule.prior is not None:
        heights = heights + log_normal(nodes, *rule.prior)[0]
    heights = heights - heights.max()
    density = np.where(heights > -_NEGLIGIBLE, np.exp(heights), 0.0)
    total = np.trapezoid(density, nodes)
    return math.sqrt(float(np.trapezoid(np.square(nodes - mode.threshold) * density, nodes) / total))
