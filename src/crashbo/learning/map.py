"""Maximum a posteriori: the one driver for every log posterior that has a gradient."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from crashbo.arrays import Array
from crashbo.errors import NumericalError

LogPosterior = Callable[[Array], tuple[float, Array]]  # with its gradient
_REFUSED = 1e12  # stands for a log posterior that cannot be computed


@dataclass(frozen=True)
class Mode:
    """The most probable hyperparameters found."""

    theta: Array
    log_posterior: float  # there, up to a constant; -inf if it could not be computed anywhere


def find_mode(
    log_posterior: LogPosterior,
    start: Array,
    bounds: Sequence[tuple[float, float]],
    *,
    iterations: int = 60,
    precision: float = 1e-5,
    steepest: float = 1e-3,
) -> Mode:
    """Maximise a log posterior by L-BFGS-B, remembering the best point seen.

    It may raise `NumericalError` where it has no value. The search ends after so many iterations, where the value
    changes by less than `precision`, relative, or where no derivative exceeds `steepest`.
    """
    best = Mode(np.asarray(start, dtype=np.float64), -math.inf)

    def negative(theta: Array) -> tuple[float, Array]:
        nonlocal best
        try:
            value, gradient = log_posterior(theta)
        except NumericalError:
            value, gradient = math.nan, theta
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            return _REFUSED, np.zeros_like(theta)
        if value > best.log_posterior:
            best = Mode(theta.copy(), value)
        return -value, -gradient

    effort = {"maxiter": iterations, "ftol": precision, "gtol": steepest}
    inside = np.clip(best.theta, *np.array(bounds).T)
    minimize(negative, inside, jac=True, method="L-BFGS-B", bounds=bounds, options=effort)
    return best
