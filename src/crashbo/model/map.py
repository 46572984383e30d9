"""Maximum a posteriori: priors of hyperparameters, and the one driver for every log posterior with a gradient."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from crashbo.errors import NumericalError
from crashbo.model.numbers import LEAST_FRACTION, LENGTHSCALE_RANGE, NOISE_RANGE, VARIANCE_RANGE, Numbers
from crashbo.problem.arrays import Array

LogPosterior = Callable[[Array], tuple[float, Array]]  # with its gradient
_REFUSED = 1e12  # stands for a log posterior that cannot be computed


def log_normal(x: Array, mean: float, deviation: float) -> tuple[Array, Array]:
    """Log density of a normal at `x` up to a constant, and its derivative."""
    z = (x - mean) / deviation
    return -0.5 * np.square(z), -z / deviation


def log_lengthscale_prior(logs: Array, numbers: Numbers) -> tuple[Array, Array]:
    """Log density of log lengthscales `... x d`, and its gradient.

    All share one unknown size, each deviates a little: with few trials the kernel stays close to isotropic, where
    independent priors would let one lucky axis explain everything.

    Math: log l ~ N(centre + log(d) / 2, common^2 1 1' + own^2 I)
    """
    d = logs.shape[-1]
    centre, common, own = numbers.lengthscale
    gap = logs - centre - 0.5 * math.log(d)
    shared = gap.sum(-1, keepdims=True) * common**2 / (own**2 * (own**2 + d * common**2))
    pull = gap / own**2 - shared
    return -0.5 * (gap * pull).sum(-1), -pull


def log_value_prior(theta: Array, numbers: Numbers) -> tuple[Array, Array]:
    """Log density of `theta`, logs of lengthscales, variance and noise variance `... x (d + 2)`, and its gradient."""
    lengths, by_length = log_lengthscale_prior(theta[..., :-2], numbers)
    variance, by_variance = log_normal(theta[..., -2], *numbers.variance)
    noise, by_noise = log_normal(theta[..., -1], *numbers.noise)
    return lengths + variance + noise, np.concatenate([by_length, by_variance[..., None], by_noise[..., None]], -1)


def log_varying_fraction(logs: Array) -> tuple[Array, Array]:
    """Log of the share of a GP's variance that shows over the cube, by log lengthscales `... x d`, and its gradient.

    The rest is a level that all points share. That of a squared exponential kernel at points with the uniform
    distribution's variance, 1/12, along every coordinate; close enough for other kernels. It is at least
    `LEAST_FRACTION`.

    Math: 1 - E[k(x, x')] = 1 - prod_i (1 + 1 / (6 l_i^2))^(-1/2)
    """
    ratio = np.exp(-2 * logs) / 6
    log_level = -0.5 * np.log1p(ratio).sum(-1)
    share = LEAST_FRACTION - np.expm1(log_level)
    return np.log(share), -(np.exp(log_level) / share)[..., None] * ratio / (1 + ratio)


def value_bounds(d: int) -> list[tuple[float, float]]:
    """Bounds of `theta` as in `log_value_prior`."""
    ranges = [LENGTHSCALE_RANGE] * d + [VARIANCE_RANGE, NOISE_RANGE]
    return [(math.log(low), math.log(high)) for low, high in ranges]


def usual_values(d: int) -> Array:
    """Where to begin, as `theta` in `log_value_prior`."""
    return np.log([*[0.3 * math.sqrt(d)] * d, 1.0, 4e-4])


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
