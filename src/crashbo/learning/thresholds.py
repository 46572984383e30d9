"""Limits as hyperparameters: the most probable ones, and how wide their posterior is."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from crashbo.gp.ep import factor_sites
from crashbo.gp.inference import Posterior, infer_from
from crashbo.gp.rows import Hyperparameters, Rows, joint_covariance

Array = NDArray[np.float64]
_STEPS = 4
_LONGEST = 1.5  # step of a limit, in prior standard deviations of what it limits
_ROUGH, _FINE = 3e-2, 1e-3  # tolerance of EP on the way, and at the end
_SWEEPS = 60


@dataclass(frozen=True)
class Limited:
    """Posteriors at the most probable limits.

    Attributes:
        posterior: `b` of them.
        deviation: `b x o`, of the limits, by Laplace's approximation; 0 where one is known.
        log_weight: `b`, log evidence with the limits integrated out.
    """

    posterior: Posterior
    deviation: Array
    log_weight: Array


def fit_thresholds(
    rows: Rows, at: Hyperparameters, prior: tuple[float, float], *, known: bool, start: tuple[Array, Array] | None = None
) -> Limited:
    """Find the limits that maximise log evidence plus log prior, by Newton's method with EP inside.

    Math: d log Z / d c_o = -sum of the weights of the labels on output o;  second derivative about -1' G 1 over them

    Args:
        rows, at: the model; `at.threshold` is where to begin.
        prior: mean and standard deviation of every limit.
        known: whether limits stay as they are.
        start: sites of EP to begin from.
    """
    covariance = joint_covariance(rows, at)
    mean, deviation = prior
    outputs = np.unique(rows.label_output)
    if known or not len(outputs):
        posterior = infer_from(covariance, rows, at, None, start, _FINE, _SWEEPS)
        return Limited(posterior, np.zeros_like(at.threshold), posterior.log_evidence)
    member = (rows.label_output[:, None] == np.arange(at.threshold.shape[-1])).astype(np.float64)  # m x o
    posterior, curvature = None, None
    for _ in range(_STEPS):
        posterior = infer_from(covariance, rows, at, None, start, _ROUGH, _SWEEPS)
        slope, curvature = _slope(posterior, member, prior)
        step = np.clip(slope / curvature, -_LONGEST, _LONGEST)
        step[:, member.sum(0) == 0] = 0.0
        at = at.with_threshold(at.threshold + step)
        start = (posterior.ep.precision, posterior.ep.shift)
        if np.abs(step).max() < 0.02:
            break
    posterior = infer_from(covariance, rows, at, None, start, _FINE, _SWEEPS)
    _, curvature = _slope(posterior, member, prior)
    gap = (at.threshold - mean) / deviation
    each = -0.5 * np.square(gap) - 0.5 * np.log(curvature) - np.log(deviation)
    log_weight = posterior.log_evidence + each[:, outputs].sum(-1)
    spread = np.where(member.sum(0) > 0, 1 / np.sqrt(curvature), 0.0)
    return Limited(posterior, spread, log_weight)


def _slope(posterior: Posterior, member: Array, prior: tuple[float, float]) -> tuple[Array, Array]:
    """Derivative of the log posterior by every limit, and minus its second derivative, `b x o` each."""
    k = posterior.rows.n_values
    slope = -posterior.weights[:, k:] @ member - (posterior.at.threshold - prior[0]) / prior[1] ** 2
    curvature = np.full_like(slope, 1 / prior[1] ** 2)
    for i in range(len(posterior)):
        root = np.sqrt(posterior.ep.precision[i])
        factor = factor_sites(posterior.given.covariance[i], root)
        half, _ = lapack.dtrtrs(factor, np.asfortranarray(root[:, None] * member), lower=1)
        curvature[i] += np.einsum("mo,mo->o", half, half)
    return slope, curvature
