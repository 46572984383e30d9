"""The non-Gaussian predictive density p(f*) of a GPCR (Appendix "Analysis of the predictive distribution")."""

import numpy as np

from crashbo.model import density
from crashbo.model.ep import Labels
from crashbo.model.kernel import squared_distance
from crashbo.problem.arrays import Array
from crashbo.search.paper.model import GPCR


def predictive_density(model: GPCR, X: Array, grid: Array) -> Array:
    """Evaluate p(f*) on a grid of values; see `crashbo.model.density`.

    Args:
        model: with a finite threshold, its hyperparameters in the output's own units.
        X: `p x d`.
        grid: `g`, increasing.

    Returns:
        `p x g`, densities that integrate to 1 over the grid (trapezoid rule).
    """
    posterior, unit = model.posterior, model.deviation
    near = model.point.kernel.correlation(squared_distance(X, posterior.rows.X, posterior.at.lengthscale[0, 0]))
    cross = near[:, posterior.rows.point] * posterior.at.mixing[0, posterior.rows.output, 0]
    labels = Labels(posterior.rows.sign, model.threshold / unit, 0.0)
    return density.predictive_density(posterior.given, labels, cross, np.ones(len(X)), grid / unit) / unit
