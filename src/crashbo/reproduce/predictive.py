"""The non-Gaussian predictive density p(f*) of a GPCR (Appendix "Analysis of the predictive distribution")."""

import numpy as np
from numpy.typing import NDArray

from crashbo.botorch import density
from crashbo.gp.kernel import correlation, squared_distance
from crashbo.learning.threshold import make_labels
from crashbo.strategies.paper.gpcr import GPCR

Array = NDArray[np.float64]


def predictive_density(model: GPCR, X: Array, grid: Array) -> Array:
    """Evaluate p(f*) on a grid of values; see `crashbo.botorch.density`.

    Args:
        model: with a finite threshold, its hyperparameters in the output's own units.
        X: `p x d`.
        grid: `g`, increasing.

    Returns:
        `p x g`, densities that integrate to 1 over the grid (trapezoid rule).
    """
    at, rows = model.posterior.at, model.posterior.rows
    variance = float(at.mixing[0, 0, 0]) ** 2
    cross = variance * correlation(squared_distance(X, rows.X, at.lengthscale[0, 0]), model.prior.kernel)
    labels = make_labels(model.data.sign, model.threshold, 0.0)
    return density.predictive_density(
        model.posterior.given, labels, cross[:, rows.point], np.full(len(X), variance), grid
    )
