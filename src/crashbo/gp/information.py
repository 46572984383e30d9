"""What a value tells about the minimum: information of a Gaussian that is cut at the minimum, in the log domain."""

import math

import numpy as np
from scipy.special import erfcx, log_ndtr

from crashbo.arrays import Array
from crashbo.gp.truncation import truncation

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


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
