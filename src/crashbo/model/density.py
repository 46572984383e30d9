"""The non-Gaussian predictive density of Appendix B, for analysis and plots."""

from dataclasses import replace

import numpy as np
from scipy.integrate import trapezoid
from scipy.linalg import solve_triangular

from crashbo.model.ep import Labels, propagate
from crashbo.model.inference import Conditioned
from crashbo.problem.arrays import Array

_CHUNK = 4096  # EP problems solved at once
_SMALLEST = 1e-12  # of a variance, relative to the prior's


def predictive_density(given: Conditioned, labels: Labels, cross: Array, variance: Array, grid: Array) -> Array:
    """Evaluate p(f*) of Appendix B on a grid, one EP per point and value.

    Closer to the truth than the Gaussian q(f*) of (14) next to crashes, and far more expensive: for pictures and
    checks, not for search.

    Math: (m, S the moments of labelled rows and f* given the values; s the covariances with f*)
        p(f*) proportional to N(f*; m*, v*) Z_EP(a(f*), B),   a(f*) = m + s (f* - m*) / v*,   B = S - s s' / v*

    Args:
        given: the labelled rows given the values, one setting.
        labels: of them, one problem.
        cross: `p x r`, prior covariances of test points and rows, values first.
        variance: `p`, prior variances of the test points.
        grid: `g`, increasing values of f*.

    Returns:
        `p x g`, densities that integrate to 1 over the grid (trapezoid rule).
    """
    step = max(1, _CHUNK // max(1, len(grid)))
    parts = [
        _log_density(given, labels, cross[i : i + step], variance[i : i + step], grid)
        for i in range(0, len(cross), step)
    ]
    logs = np.concatenate(parts)
    density = np.exp(logs - logs.max(-1, keepdims=True))
    return np.asarray(density / trapezoid(density, grid, axis=-1)[:, None])


def _log_density(given: Conditioned, labels: Labels, cross: Array, variance: Array, grid: Array) -> Array:
    """Up to a constant per point, `p x g`."""
    k, m = given.half[0].shape
    p, g = len(cross), len(grid)
    white = solve_triangular(given.factors[0], cross[:, :k].T, lower=True).T if k else np.zeros((p, 0))
    centre = white @ given.white[0]
    left = np.maximum(variance - np.square(white).sum(-1), _SMALLEST * variance)
    shared = cross[:, k:] - white @ given.half[0]  # covariances with the labelled rows given the values
    slope = shared / left[:, None]
    covariance = given.covariance - slope[:, :, None] * shared[:, None, :]
    mean = given.mean[:, None] + slope[:, None, :] * (grid - centre[:, None])[..., None]
    resolved = replace(labels, width=np.maximum(labels.width, given.smallest_width))
    ep = propagate(mean.reshape(p * g, m), np.repeat(covariance, g, 0), resolved, tolerance=1e-4)
    return np.asarray(ep.log_partition.reshape(p, g) - 0.5 * np.square(grid - centre[:, None]) / left[:, None])
