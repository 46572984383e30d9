"""The threshold: maximum likelihood or MAP by a search on the slope of log Z_EP, and how far it can be told."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from crashbo.gp.ep import EPResult, Labels, propagate
from crashbo.gp.inference import Conditioned

Array = NDArray[np.float64]
Hyperprior = tuple[float, float] | None
Sites = tuple[Array, Array]
_PRECISION = 1e-5  # of the threshold, in standard deviations of the latents
_ROUGH = 1e-5  # EP's tolerance while searching
_NEGLIGIBLE = 8.0  # log posterior below its maximum at which an integral over the threshold ends
_NODES = 24  # of that integral, on each side


@dataclass(frozen=True)
class Threshold:
    """A threshold, in the model's units.

    Attributes:
        value: may be +inf (maximum likelihood with stable points only).
        sites: EP's at `value`, to begin from; None if nothing was searched.
        solves: of EP that the search took.
    """

    value: float
    sites: Sites | None = None
    solves: int = 0


def without_search(sign: Array, any_stable: bool, prior: Hyperprior) -> float | None:
    """The threshold where the paper prescribes it, None where it must be searched.

    No stable point: 0. Only stable points under maximum likelihood: +inf.
    """
    if not any_stable or not (sign > 0).any():
        return 0.0
    if prior is None and not (sign < 0).any():
        return math.inf
    return None


def find_threshold(given: Conditioned, sign: Array, prior: Hyperprior, start: float | None = None) -> Threshold:
    """Maximise log Z_EP(c) plus the log hyperprior, equations (15) and (16).

    The exact log Z is concave in c, so that the maximum is the one zero of a decreasing slope, which EP gives with
    every solve: bracket it, then Brent's method. Every solve starts from the sites of the one before.

    Math: slope(c) = d log Z_EP / dc - (c - mu_c) / sigma_c^2,  d log Z_EP / dc = -sum_i d log Z_EP / d mean_i

    Args:
        given: the labelled latents given the values, b = 1.
        sign: `m`, labels of both kinds, or stable ones only with a hyperprior.
        prior: mean and standard deviation of the hyperprior; None is maximum likelihood.
        start: first guess; None: one standard deviation above the highest stable latent.
    """
    sites: Sites | None = None
    solves = 0

    def slope(threshold: float) -> float:
        nonlocal sites, solves
        ep = solve_labels(given, sign, np.array([threshold]), sites)
        sites, solves = (ep.precision, ep.shift), solves + 1
        pull = 0.0 if prior is None else (prior[0] - threshold) / prior[1] ** 2
        return pull - float(ep.gradient.sum())

    deviations = np.sqrt(np.maximum(np.diagonal(given.covariance[0]), 0.0))
    guess = float((given.mean[0] + deviations)[sign > 0].max()) if start is None else start
    value = _zero_of_decreasing(slope, guess, float(deviations.max()))
    return Threshold(value, sites, solves)


def solve_labels(given: Conditioned, sign: Array, thresholds: Array, start: Sites | None = None) -> EPResult:
    """EP of the labelled latents at `b` thresholds."""
    b, m = len(thresholds), len(sign)
    zeros = np.zeros((b, m))
    labels = Labels(sign, np.repeat(thresholds[:, None], m, 1), zeros, zeros)
    mean, covariance = np.broadcast_to(given.mean, (b, m)), np.broadcast_to(given.covariance, (b, m, m))
    return propagate(mean, covariance, labels, start=start, tolerance=_ROUGH, max_sweeps=100)


def _zero_of_decreasing(slope: Callable[[float], float], guess: float, deviation: float) -> float:
    """Bracket by growing steps, then refine."""
    precision = _PRECISION * deviation + 1e-14 * abs(guess)
    known: dict[float, float] = {}

    def cached(threshold: float) -> float:
        # The ends of the bracket keep their signs, whatever a warm start changes in the last digits.
        if threshold not in known:
            known[threshold] = slope(threshold)
        return known[threshold]

    here, value = guess, cached(guess)
    if value == 0.0:
        return here
    step = math.copysign(0.1 * deviation + 1e-9 * abs(guess), value)
    for _ in range(200):
        there = here + step
        if cached(there) * value <= 0:
            return float(brentq(cached, min(here, there), max(here, there), xtol=precision, rtol=1e-14))
        here, step = there, 3 * step
    return here


def threshold_deviation(given: Conditioned, sign: Array, prior: Hyperprior, mode: Threshold) -> float:
    """Root mean square deviation of c from its mode under its posterior.

    The posterior rises steeply at the highest stable value and falls slowly above it, which a curvature would miss. It
    is integrated by the trapezoid rule on steps that widen away from the mode, as wide as the posterior itself.

    Math: deviation^2 = int (c - mode)^2 Z_EP(c) p(c) dc / int Z_EP(c) p(c) dc

    Args:
        given, sign, prior: as in `find_threshold`.
        mode: its result; finite.
    """
    unit = float(np.sqrt(np.maximum(np.diagonal(given.covariance[0]).max(), 0.0)))
    reach = unit if prior is None else max(unit, prior[1])
    ladder = np.concatenate([[0.0], np.geomspace(1e-4 * unit, 6 * reach, _NODES)])
    nodes = np.concatenate([mode.value - ladder[:0:-1], mode.value + ladder])
    start = (
        None
        if mode.sites is None
        else (np.repeat(mode.sites[0], len(nodes), 0), np.repeat(mode.sites[1], len(nodes), 0))
    )
    heights = solve_labels(given, sign, nodes, start).log_partition
    if prior is not None:
        heights = heights - 0.5 * np.square((nodes - prior[0]) / prior[1])
    heights = heights - heights.max()
    density = np.where(heights > -_NEGLIGIBLE, np.exp(heights), 0.0)
    total = np.trapezoid(density, nodes)
    return math.sqrt(float(np.trapezoid(np.square(nodes - mode.value) * density, nodes) / total))
