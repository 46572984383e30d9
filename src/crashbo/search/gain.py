"""What a trial is expected to gain, from the moments of cost and margins, and its derivatives by these moments."""

import math
from collections.abc import Callable

import numpy as np
from scipy.special import erfcx, log_ndtr, ndtr

from crashbo.model.moments import Moments
from crashbo.model.prediction import Prediction
from crashbo.problem.arrays import Array

_STEP = 1e-5  # of the differences that give derivatives by moments, relative to standard deviations


def improvement_shape(u: Array) -> tuple[Array, Array, Array]:
    """phi(u), Phi(u), and h(u) = phi(u) + u Phi(u), without cancellation for u << 0."""
    density = np.exp(-0.5 * np.square(u)) / math.sqrt(2 * math.pi)
    below = ndtr(u)
    mills = math.sqrt(math.pi / 2) * erfcx(np.maximum(-u, 0.0) / math.sqrt(2.0))
    h = np.where(u < 0, density * np.maximum(1 + np.minimum(u, 0.0) * mills, 0.0), density + u * below)
    return density, below, h


def expected_improvement(at: Moments, best: Array, threshold: Array) -> Array:
    """Expected improvement of trials that succeed, E[max(best - f, 0); every margin within its limit], `b x p`.

    The margins are judged by their moments given an improvement, exact where they are independent of the cost.

    Math: (u = (best - mean) / s; z the cost in standard deviations, weighed by its improvement)
        E[z] = -Phi / h,  Var[z] = 1 + phi / h - (Phi / h)^2
        EI = s h(u) prod_j Phi((c_j - m_j - cov_j / s E[z]) / sqrt(v_j - cov_j^2 / s^2 (1 - Var[z])))

    Args:
        at: the moments.
        best: `b x 1`, lowest cost so far.
        threshold: `b x m x 1`.
    """
    deviation = at.deviation[:, 0]
    u = (best - at.mean[:, 0]) / deviation
    density, below, h = improvement_shape(u)
    safe = np.maximum(h, 1e-300)
    far = u < -30  # the improvement's distribution has shrunk to a point
    centre = np.where(far, u, -below / safe)
    spread = np.where(far, 0.0, np.clip(1 + density / safe - np.square(below / safe), 0.0, 1.0))
    slope, variance = at.covariance[:, 1:] / deviation[:, None], np.square(at.deviation[:, 1:])
    left = np.maximum(variance - np.square(slope) * (1 - spread[:, None]), 1e-8 * variance)
    held = log_ndtr((threshold - at.mean[:, 1:] - slope * centre[:, None]) / np.sqrt(left)).sum(1)
    return np.asarray(deviation * h * np.exp(held))


def with_slopes(function: Callable[[Moments], Array], q: Prediction) -> tuple[Array, Array, Array, Array]:
    """A function of moments, `b x p`, and its derivatives by mean, variance and covariance, `b x o x p` each.

    Central differences, all moments' at once: moments are few, and the function is cheap next to the prediction.
    """
    b, o, p = q.mean.shape
    k, deviation = 3 * o, np.sqrt(q.variance)
    each = np.concatenate([q.mean, deviation, q.covariance], 1)
    steps = _STEP * np.concatenate([deviation, deviation, deviation * deviation[:, :1]], 1)
    # Points side by side: as they are, and moved ahead and behind in every moment.
    moved, one = np.repeat(each[:, :, None], 1 + 2 * k, 2), np.arange(k)
    moved[:, one, 1 + 2 * one] += steps
    moved[:, one, 2 + 2 * one] -= steps
    values = function(Moments(*np.split(moved.reshape(b, k, -1), 3, 1))).reshape(b, 1 + 2 * k, p)
    by_mean, by_deviation, by_covariance = np.split((values[:, 1::2] - values[:, 2::2]) / (2 * steps), 3, 1)
    return values[:, 0], by_mean, by_deviation / (2 * deviation), by_covariance
