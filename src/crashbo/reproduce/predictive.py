"""The non-Gaussian predictive density p(f*) (Appendix "Analysis of the predictive distribution"), for pictures."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from crashbo.gp.ep import Labels, propagate
from crashbo.gp.kernel import correlation, squared_distance
from crashbo.strategies.paper.gpcr import GPCR

Array = NDArray[np.float64]


def predictive_density(model: GPCR, X: Array, grid: Array) -> Array:
    """Evaluate p(f*) on a grid of values, one EP per point and value.

    Closer to the truth than q(f*) next to crashes, and far more expensive.

    Math: p(f*) proportional to N(f*; m*, v*) Z_EP(a(f*), B),  a(f*) = m + s (f* - m*) / v*,  B = Sigma - s s' / v*
        (all moments of the labelled latents and f* given the values)

    Args:
        model: with a finite threshold, its hyperparameters in the output's own units.
        X: `p x d`.
        grid: `g`, even and increasing.

    Returns:
        `p x g`, densities that integrate to 1 over the grid (trapezoid rule).
    """
    at, rows, given = model.posterior.at, model.posterior.rows, model.posterior.given
    variance = float(at.mixing[0, 0, 0]) ** 2
    cross = variance * correlation(squared_distance(X, rows.X, at.lengthscale[0, 0]), model.prior.kernel)
    white = solve_triangular(given.factors[0], cross[:, rows.value_point].T, lower=True)
    means = white.T @ given.white[0]
    variances = np.maximum(variance - np.einsum("kp,kp->p", white, white), 1e-12 * variance)
    links = cross[:, rows.label_point] - white.T @ given.half[0]
    found = [_density(model, *one, grid) for one in zip(means, variances, links, strict=True)]
    return np.stack(found)


def _density(model: GPCR, mean: float, variance: float, link: Array, grid: Array) -> Array:
    """p(f*) at one point, `g`."""
    given, sign = model.posterior.given, model.data.sign
    g, m = len(grid), len(sign)
    moved = given.mean + (grid - mean)[:, None] * link / variance
    left = given.covariance - np.outer(link, link) / variance
    zeros = np.zeros((g, m))
    labels = Labels(sign, np.full((g, m), model.threshold), zeros, zeros)
    ep = propagate(moved, np.broadcast_to(left, (g, m, m)), labels, tolerance=1e-4)
    heights = ep.log_partition - 0.5 * np.square(grid - mean) / variance
    density = np.exp(heights - heights.max())
    return np.asarray(density / np.trapezoid(density, grid))
