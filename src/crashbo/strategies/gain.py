"""What a trial is expected to gain, from the moments of cost and margins, and its derivatives by these moments."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, log_ndtr, ndtr

from crashbo.gp.prediction import Prediction

Array = NDArray[np.float64]
_STEP = 1e-5  # of the differences that give derivatives by moments, relative to standard deviations


@dataclass(frozen=True)
class Moments:
    """Cost and margins at points: mean and deviation of the cost `b x p`; of margins `b x m x p`, and covariances."""

    mean: Array
    deviation: Array
    margin: Array
    margin_deviation: Array
    covariance: Array

    @classmethod
    def of(cls, q: Prediction) -> "Moments":
        return cls(
            q.mean[:, 0], np.sqrt(q.variance[:, 0]), q.mean[:, 1:], np.sqrt(q.variance[:, 1:]), q.covariance[:, 1:]
        )


def improvement_shape(u: Array) -> tuple[Array, Array, Array]:
    """phi(u), Phi(u), and h(u) = phi(u) + u Phi(u), without cancellation for u << 0."""
    density = np.exp(-0.5 * np.square(u)) / math.sqrt(2 * math.pi)
    below = ndtr(u)
    mills = math.sqrt(math.pi / 2) * erfcx(np.maximum(-u, 0.0) / math.sqrt(2.0))
    h = np.where(u < 0, density * np.maximum(1 + np.minimum(u, 0.0) * mills, 0.0), density + u * below)
    return density, below, h


def expected_improvement(at: Moments, best: Array, threshold: Array) -> Array:
    """Expected improvement of trials that succeed, E[max(best - f, 0); every margin within its limit].

    The margins are judged by their moments given an improvement, exact where they are independent of the cost.

    Math: (u = (best - mean) / s; z the cost in standard deviations, weighed by its improvement)
        E[z] = -Phi / h,  Var[z] = 1 + phi / h - (Phi / h)^2
        EI = s h(u) prod_j Phi((c_j - m_j - cov_j / s E[z]) / sqrt(v_j - cov_j^2 / s^2 (1 - Var[z])))

    Args:
        at: the moments.
        best: `b x 1`, lowest cost so far.
        threshold: `b x m x 1`.

    Returns:
        `b x p`.
    """
    u = (best - at.mean) / at.deviation
    density, below, h = improvement_shape(u)
    safe = np.maximum(h, 1e-300)
    far = u < -30  # the improvement's distribution has shrunk to a point
    centre = np.where(far, u, -below / safe)
    spread = np.where(far, 0.0, np.clip(1 + density / safe - np.square(below / safe), 0.0, 1.0))
    slope = at.covariance / at.deviation[:, None]
    left = np.square(at.margin_deviation) - np.square(slope) * (1 - spread[:, None])
    left = np.maximum(left, 1e-8 * np.square(at.margin_deviation))
    held = log_ndtr((threshold - at.margin - slope * centre[:, None]) / np.sqrt(left)).sum(1)
    return np.asarray(at.deviation * h * np.exp(held))


def held_probability(at: Moments, threshold: Array) -> Array:
    """Probability that every margin is within its limit, `b x p`."""
    return np.asarray(np.exp(log_ndtr((threshold - at.margin) / at.margin_deviation).sum(1)))


def with_slopes(function: Callable[[Moments], Array], q: Prediction) -> tuple[Array, Array, Array, Array]:
    """A function of moments, `b x p`, and its derivatives by mean, variance and covariance, `b x o x p` each.

    Central differences, all moments' at once: moments are few, and the function is cheap next to the prediction.
    """
    at = Moments.of(q)
    b, m, p = at.margin.shape
    k = 2 + 3 * m
    each = np.empty((b, k, p))
    each[:, 0], each[:, 1], each[:, 2 : 2 + m] = at.mean, at.deviation, at.margin
    each[:, 2 + m : 2 + 2 * m], each[:, 2 + 2 * m :] = at.margin_deviation, at.covariance
    steps = np.empty_like(each)
    steps[:, :2], steps[:, 2 : 2 + m] = at.deviation[:, None], at.margin_deviation
    steps[:, 2 + m : 2 + 2 * m] = at.margin_deviation
    steps[:, 2 + 2 * m :] = at.margin_deviation * at.deviation[:, None]
    steps *= _STEP
    # Points side by side: as they are, and moved ahead and behind in every moment.
    moved = np.repeat(each[:, :, None], 1 + 2 * k, 2)
    one = np.arange(k)
    moved[:, one, 1 + 2 * one] += steps
    moved[:, one, 2 + 2 * one] -= steps
    wide = moved.reshape(b, k, -1)
    margins = np.split(wide[:, 2:], 3, 1)
    values = function(Moments(wide[:, 0], wide[:, 1], *margins)).reshape(b, 1 + 2 * k, p)
    slopes = (values[:, 1::2] - values[:, 2::2]) / (2 * steps)
    by_variance = slopes[:, [1, *range(2 + m, 2 + 2 * m)]] / (2 * np.sqrt(q.variance))
    by_covariance = np.concatenate([np.zeros((b, 1, p)), slopes[:, 2 + 2 * m :]], 1)
    return values[:, 0], slopes[:, [0, *range(2, 2 + m)]], by_variance, by_covariance
