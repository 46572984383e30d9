"""Hyperparameters of the costs alone by MAP: a quick first guess, and a judge of how costs should be scaled."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from crashbo.errors import NumericalError
from crashbo.inference.costs_small import SmallCosts
from crashbo.models.hyperparameters import NOISE_PRIOR, NOISE_RANGE, SCALE_RANGE, SHORTEST, log_lengthscale_prior

Array = NDArray[np.float64]
SCALE_PRIOR = (0.0, 1.0)  # of the log variance of standardised costs
_EFFORT = {"maxiter": 60, "ftol": 1e-6, "gtol": 1e-3}  # of L-BFGS-B


@dataclass(frozen=True)
class CostModel:
    """What costs alone say about their model.

    Attributes:
        theta: `d + 2`, logs of lengthscales, variance and noise variance.
        log_posterior: log evidence plus log prior, up to a constant; -inf if there is no sound model.
        evidence: of the costs.
    """

    theta: Array
    log_posterior: float
    evidence: SmallCosts

    def leave_one_out(self) -> Array:
        """Log density of each cost given all others, `n`."""
        d = len(self.theta) - 2
        return self.evidence.leave_one_out(np.exp(self.theta[:d]), math.exp(self.theta[d]), math.exp(self.theta[d + 1]))


def usual_costs(dimension: int) -> Array:
    """Where to begin, as `CostModel.theta`."""
    return np.log([*[0.3 * math.sqrt(dimension)] * dimension, 1.0, 4e-4])


def cost_bounds(dimension: int) -> list[tuple[float, float]]:
    """Of `CostModel.theta`."""
    lengths = [(math.log(SHORTEST), math.log(1e3))] * dimension
    return lengths + [(math.log(low), math.log(high)) for low, high in (SCALE_RANGE, NOISE_RANGE)]


def log_cost_prior(theta: Array) -> tuple[float, Array]:
    """Log prior of `CostModel.theta` up to a constant, and its gradient."""
    d = len(theta) - 2
    slope = np.zeros_like(theta)
    total, slope[:d] = log_lengthscale_prior(theta[:d])
    for index, (mean, deviation) in ((d, SCALE_PRIOR), (d + 1, NOISE_PRIOR)):
        z = (theta[index] - mean) / deviation
        total -= 0.5 * z**2
        slope[index] = -z / deviation
    return total, slope


def learn_costs(X: Array, costs: Array) -> CostModel:
    """Fit a Gaussian process to standardised costs.

    Args:
        X: `n x d`.
        costs: `n`.
    """
    evidence, d = SmallCosts(X, costs), X.shape[-1]
    best = CostModel(usual_costs(d), -math.inf, evidence)

    def negative(theta: Array) -> tuple[float, Array]:
        nonlocal best
        try:
            value, gradient = evidence(np.exp(theta[:d]), math.exp(theta[d]), math.exp(theta[d + 1]))
        except NumericalError:
            return 1e12, np.zeros_like(theta)
        prior, slope = log_cost_prior(theta)
        if value + prior > best.log_posterior:
            best = CostModel(theta.copy(), value + prior, evidence)
        return -value - prior, -gradient - slope

    minimize(negative, best.theta, jac=True, method="L-BFGS-B", bounds=cost_bounds(d), options=_EFFORT)
    return best
