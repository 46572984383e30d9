"""The log evidence of values alone with its gradient: what `inference` says without labels, with less overhead."""

import math

import numpy as np
from scipy.linalg import lapack

from crashbo.arrays import Array
from crashbo.gp.kernel import KernelName, correlation_and_slope
from crashbo.gp.rows import NOISE_FLOOR, Rows, factor_values, weighed_gaps

_LOG_2PI = math.log(2 * math.pi)


def log_evidence_of_values(rows: Rows, theta: Array, kernel: KernelName) -> tuple[float, Array]:
    """Log evidence of a standard GP on one value per point, and its gradient.

    Math: (A = variance R + noise I,  b = A^-1 y,  S = (b b' - A^-1) / 2)
        log N(y; 0, A);  by A: S

    Args:
        rows: values alone.
        theta: `d + 2`, logs of lengthscales, variance and noise variance.
        kernel: of the GP.
    """
    n, values = len(rows.X), rows.values
    precision, variance = np.exp(-2 * theta[:-2]), math.exp(theta[-2])
    noise = max(math.exp(theta[-1]), NOISE_FLOOR * variance)
    shape, fall = correlation_and_slope(rows.squared_distances(precision[None])[0], kernel)
    shape = variance * shape
    if not n:
        return 0.0, np.zeros_like(theta)
    factor = factor_values(shape, noise)
    log_det = 2 * float(np.log(factor.diagonal()).sum())
    weights, _ = lapack.dpotrs(factor, values, lower=1)
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    slope = 0.5 * (np.multiply.outer(weights, weights) - inverse.T @ inverse)
    by_length = weighed_gaps(rows, (slope * fall)[None])[0] * precision * variance
    gradient = np.array([*by_length, np.vdot(slope, shape), noise * np.trace(slope)])
    return -0.5 * (float(values @ weights) + log_det + n * _LOG_2PI), gradient
