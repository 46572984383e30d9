"""Moments of cost and margins at points, and the probability that every margin is within its limit."""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from crashbo.model.prediction import Prediction
from crashbo.problem.arrays import Array


@dataclass(frozen=True)
class Moments:
    """Of the cost and then of the margins, `b x o x p` each; covariances are those with the cost."""

    mean: Array
    deviation: Array
    covariance: Array

    @classmethod
    def of(cls, q: Prediction) -> "Moments":
        return cls(q.mean, np.sqrt(q.variance), q.covariance)


def log_held(at: Moments, threshold: Array) -> Array:
    """Log probability that every margin is within its limit, `b x p`."""
    return np.asarray(log_ndtr((threshold - at.mean[:, 1:]) / at.deviation[:, 1:]).sum(1))
