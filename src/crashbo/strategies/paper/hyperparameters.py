"""Hyperparameters of one output: fixed by the user, or learned by MAP together with the threshold."""

import math

import numpy as np
from numpy.typing import NDArray

from crashbo.gp.inference import evidence_gradient, infer
from crashbo.gp.rows import Rows
from crashbo.learning.map import find_mode
from crashbo.learning.priors import log_normal, log_value_prior, usual_values, value_bounds
from crashbo.learning.warp import Warp, make_warp
from crashbo.numbers import NUMBERS
from crashbo.options import FixedModel
from crashbo.strategies.paper.data import Data
from crashbo.strategies.paper.gpcr import Prior

Array = NDArray[np.float64]
_HYPERPRIOR = (0.0, 5.0)  # of the threshold, on standardised values: wide
_THRESHOLDS = (-50.0, 50.0)
_HEADROOM = 0.3  # of the first threshold tried, above the highest standardised value


def fixed_prior(fixed: FixedModel, dimension: int) -> Prior:
    """The hyperparameters that a user fixed, in the output's own units."""
    return Prior(
        np.full(dimension, fixed.lengthscale), fixed.variance, fixed.noise_std**2, fixed.threshold_prior, fixed.kernel
    )


def learned_prior(data: Data) -> Prior:
    """The most probable hyperparameters of standardised values, Matern-5/2; the usual ones while there is no value.

    Math: argmax over (lengthscales, variance, noise, c) of log alpha + log Z_EP + log p(all of them),
        alpha the regression evidence of the stable points (Appendix "Product of two multivariate Gaussians", corrected)
    """
    d = data.X.shape[-1]
    if not data.any_stable:
        return _prior(usual_values(d), Warp())
    scaling = make_warp(data.values, 0.0)
    assert scaling is not None
    values = scaling(data.values)
    start, bounds = usual_values(d), value_bounds(d)
    searched = data.limit is None
    known = math.inf if data.limit is None else float(scaling(np.array(data.limit)))
    if searched:
        start, bounds = np.append(start, values.max() + _HEADROOM), [*bounds, _THRESHOLDS]
    rows = data.rows(values)
    mode = find_mode(lambda theta: _log_posterior(rows, theta, None if searched else known), start, bounds)
    return _prior(mode.theta[: d + 2], scaling)


def _prior(theta: Array, scaling: Warp) -> Prior:
    lengths, variance, noise = np.exp(theta[:-2]), math.exp(theta[-2]), math.exp(theta[-1])
    return Prior(lengths, variance, noise, _HYPERPRIOR, "matern52", scaling)


def _log_posterior(rows: Rows, theta: Array, known: float | None) -> tuple[float, Array]:
    """Log evidence plus log priors, and the gradient; `theta` ends with the threshold unless it is known."""
    logs, threshold = (theta, known) if known is not None else (theta[:-1], float(theta[-1]))
    posterior = infer(rows, _prior(logs, Warp()).settings(threshold), tolerance=1e-5, max_sweeps=100)
    slope = evidence_gradient(posterior)
    prior, by_prior = log_value_prior(logs, NUMBERS)
    by_variance = 0.5 * slope.mixing[0, 0] * math.exp(0.5 * logs[-2])
    gradient = np.concatenate([slope.log_lengthscale[0, 0], by_variance, slope.log_noise[0]]) + by_prior
    total = float(posterior.log_evidence[0]) + float(prior)
    if known is not None:
        return total, gradient
    hyperprior, by_threshold = log_normal(np.array(threshold), *_HYPERPRIOR)
    return total + float(hyperprior), np.append(gradient, slope.threshold[0, 0] + by_threshold)
