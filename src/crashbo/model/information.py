"""What a noisy value or a label tells about the minimum, beyond the paper: for the acquisition functions."""

import math

import numpy as np
from scipy.special import log_ndtr

from crashbo.model.truncation import truncation
from crashbo.problem.arrays import Array

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)
_SURE = 1 - 1e-9  # a probability beyond this says no more


def log_noisy_information(t: Array, share: Array) -> tuple[Array, Array, Array]:
    """Log of a lower bound on what a noisy value tells about the minimum, and its derivatives by t and share.

    Unlike `log_information` it sees that measuring a well-known point again tells little (Moss et al., 2021).

    Math: log( -log(1 - share (1 - w(t))) / 2 ),  share = variance / (variance + noise variance),
        w(t) the variance that the cut at the minimum leaves

    Args:
        t: standard deviations by which the mean lies above the minimum.
        share: in (0, 1], the part of a value's variance that is not noise; broadcastable.
    """
    t, share = np.broadcast_arrays(t, share)
    hazard, excess, shrinkage = truncation(t)
    taken = hazard * excess
    left = share * shrinkage + (1 - share)
    part = share * taken
    lost = np.maximum(np.where(part < 0.5, -np.log1p(-np.minimum(part, 0.5)), -np.log(left)), 1e-300)
    slope = taken / left / lost
    relative = shrinkage / np.maximum(excess, 1e-300) - excess
    value, by_t, by_share = np.log(lost), share * slope * relative, slope
    tiny = (t > 0) & (part < 1e-8)
    if tiny.any():  # -log(1 - s u) -> s u as u -> 0, where logs replace products that underflow
        far, little = t[tiny], share[tiny]
        log_hazard = -0.5 * np.square(far) - _LOG_ROOT_2PI - log_ndtr(far)
        log_taken = log_hazard + np.log(np.maximum(far + np.exp(log_hazard), 1e-300))
        value[tiny], by_t[tiny], by_share[tiny] = np.log(little) + log_taken, relative[tiny], 1 / little
    return value - math.log(2), by_t, by_share


def log_coin_information(log_probability: Array) -> tuple[Array, Array]:
    """Log of -log(1 - p), and its derivative by log p; finite for any p in [0, 1].

    Math: log(-log(1 - p)),  derivative p / ((1 - p) (-log(1 - p)))

    Args:
        log_probability: log p.
    """
    p = np.exp(np.minimum(log_probability, math.log(_SURE)))
    small = log_probability < -8.0  # there -log(1 - p) = p (1 + p / 2), whose log keeps its slope
    lost = -np.log1p(-np.where(small, 0.5, p))
    value = np.where(small, log_probability + 0.5 * p, np.log(lost))
    slope = np.where(small, 1 + 0.5 * p, p / (1 - p) / lost)
    return value, np.where(log_probability > math.log(_SURE), 0.0, slope)


def log_both_below(u: Array, v: Array, correlation: Array) -> tuple[Array, Array, Array, Array]:
    """Log probability that two standard Gaussians lie below `u` and `v`, and its derivatives by all three.

    The second is judged by its moments given that the first lies below: exact without correlation, else to a few
    percent.

    Math: log Phi(u) + log Phi(w),  w = (v + rho h) / sqrt(1 - rho^2 h (h + u)),  h = phi(u) / Phi(u)
    """
    hazard, excess, shrinkage = truncation(u)
    taken = hazard * excess
    left = np.maximum(1 - np.square(correlation) * taken, 1e-6)
    root = np.sqrt(left)
    w = (v + correlation * hazard) / root
    steep = truncation(w).hazard
    free = left > 1e-6
    by_left = np.where(free, -0.5 * w / left, 0.0)
    # dh/du = -taken, d taken/du = h (shrinkage - excess^2)
    w_by_u = -correlation * taken / root
    w_by_u -= by_left * np.square(correlation) * hazard * (shrinkage - np.square(excess))
    w_by_rho = hazard / root - 2 * by_left * correlation * taken
    return log_ndtr(u) + log_ndtr(w), hazard + steep * w_by_u, steep / root, steep * w_by_rho
