"""What a cut, or a one-sided label with a lapse rate, does to a Gaussian; accurate far into the tail."""

import math
from typing import NamedTuple

import numpy as np
from scipy.special import erfcx, log_ndtr

from crashbo.problem.arrays import Array, Bools

_SERIES_BELOW = -30.0  # where 1 - r (r + z) starts to lose digits faster than the series
_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_FLAT = 1e-16  # hazard below which a label changes nothing in double precision


class Truncation(NamedTuple):
    """What a cut at `z` standard deviations does to a unit Gaussian, shaped like z; see `truncation`."""

    hazard: Array
    excess: Array
    shrinkage: Array


def truncation(z: Array) -> Truncation:
    """Shape functions of a unit Gaussian that is kept below `z`.

    Finite and accurate to about 1e-10 relative for every double z: the naive expressions cancel for z << 0, where an
    asymptotic series of Mills' ratio takes over.

    Math:
        hazard    r = phi(z) / Phi(z)
        excess    d = r + z                     (> 0)
        shrinkage w = 1 - r (r + z)             (in (0, 1]: the variance that the cut leaves)
    """
    hazard = math.sqrt(2.0 / math.pi) / erfcx(z * -math.sqrt(0.5))
    excess = hazard + z
    shrinkage = 1.0 - hazard * excess
    if z.size and z.min() < _SERIES_BELOW:
        tail = z < _SERIES_BELOW
        far = z[tail]
        t = 1.0 / np.square(far)
        excess[tail] = (1 + t * (-2 + t * (10 + t * (-74 + t * (706 - 8162 * t))))) / -far
        shrinkage[tail] = t * (1 + t * (-6 + t * (50 + t * (-518 + 6354 * t))))
        hazard[tail] = excess[tail] - far
    return Truncation(hazard, excess, shrinkage)


def log_information(t: Array) -> tuple[Array, Array]:
    """Log information that a Gaussian gains from being cut at the minimum (the summand of (21)), and its derivative.

    Finite for |t| up to 1e150; decreasing in t, the standard deviations by which the mean lies above the minimum.

    Math: log( t phi(t) / (2 Phi(t)) - log Phi(t) ),  t = (mean - minimum) / deviation
    """
    hazard, excess, shrinkage = truncation(t)
    # t <= 0: t d / 2 + log(sqrt(2 pi) r), no cancellation as t -> -inf.
    near = 0.5 * t * excess + np.log(np.maximum(hazard, 1e-300)) + _LOG_ROOT_2PI
    # t > 0: r (t / 2 + (-log Phi) / r), with Mills' ratio in place of the tails.
    positive = np.maximum(t, 0.0)
    mills = math.sqrt(math.pi / 2) * erfcx(positive / math.sqrt(2.0))
    log_density = -0.5 * np.square(positive) - _LOG_ROOT_2PI
    log_cdf = log_ndtr(positive)
    beyond = np.exp(log_density) * mills
    ratio = np.where(beyond > 1e-8, -log_cdf / np.maximum(beyond, 1e-300), 1.0) * mills * np.exp(log_cdf)
    far = log_density - log_cdf + np.log(0.5 * positive + ratio)
    value = np.where(t <= 0, np.log(np.maximum(near, 1e-300)), far)
    # Derivative: -r (1 + t d) / (2 a), and 1 + t d = shrinkage + d^2.
    log_hazard = np.where(t <= 0, np.log(np.maximum(hazard, 1e-300)), log_density - log_cdf)
    inner = np.where(t <= 0, shrinkage + np.square(excess), 1 + t * excess)
    return value, -0.5 * inner * np.exp(log_hazard - value)


class Site(NamedTuple):
    """The Gaussian site exp(shift u - precision u^2 / 2) that stands for one label, and its mass (all alike shaped)."""

    precision: Array  # never negative
    shift: Array  # natural mean
    log_mass: Array  # log probability of the label under the cavity
    kept: Array  # probability that the label did not lapse, given the label


def match_moments(
    mean: Array, variance: Array, sign: Array, width: Array, lapse: Array, soft: Bools | None = None
) -> Site:
    """Fit a Gaussian site to a label at 0 under a Gaussian cavity.

    A trial above 0 is always labelled above, one below 0 is labelled above with the probability `lapse`. A lapse makes
    the label's likelihood flat in its tail, where matching both moments would need a negative precision; there the
    precision is 0 and only the mean is matched. EP stays proper, but it is no longer a stationary point of the log
    evidence, whose gradient is then approximate. The cavity's mean and variance (> 0) are `... x n`; see `Labels`.

    Math: (s^2 = variance + width^2, z = -sign mean / s, e the lapse rate)
        mass  = (1 - e) Phi(z) + (e where sign is -1 or the label is soft)
        kept  = (1 - e) Phi(z) / mass,   R = kept r(z)
        K     = 1 - R (R + z)                       (tilted over cavity variance for width 0)
        precision = (1 - K) / (width^2 + variance K)
        shift     = -sign s (R + z (1 - K)) / (width^2 + variance K)
    """
    scale = np.sqrt(variance + np.square(width))
    z = -sign * mean / scale
    hazard, excess, shrinkage = truncation(z)
    log_held = np.log1p(-lapse) + log_ndtr(z)
    lapses = (lapse > 0) & ((sign < 0) if soft is None else (sign < 0) | soft)
    if not lapses.any():
        kept, log_mass, left = np.ones_like(z), log_held, shrinkage
        numerator, pull = hazard * excess, excess - z * shrinkage
    else:
        log_lapse = np.log(np.where(lapses, lapse, 1e-300))
        log_mass = np.where(lapses, np.logaddexp(log_lapse, log_held), log_held)
        kept = np.exp(log_held - log_mass)
        lost = np.where(lapses, np.exp(np.minimum(log_lapse - log_mass, 0.0)), 0.0)  # 1 - kept, no cancellation
        spread = lost * np.square(np.minimum(hazard, 1e150))
        left = lost + kept * (shrinkage + spread)
        numerator = kept * hazard * (excess - lost * hazard)
        pull = kept * (excess - z * (shrinkage + spread))
    total = np.square(width) + variance * left
    precision = numerator / total
    shift = -sign * scale * pull / total
    wide, flat = precision < 0, kept * hazard < _FLAT
    if wide.any() or flat.any():
        precision = np.where(wide | flat, 0.0, precision)
        shift = np.where(flat, 0.0, np.where(wide, -sign * kept * hazard / scale, shift))
    return Site(precision, shift, log_mass, kept)
