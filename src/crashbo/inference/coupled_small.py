"""Log evidence of costs and crash labels whose latents are correlated, with its gradient, in NumPy.

A trial's cost is `f(x)` plus noise; it succeeds while its margin `g(x)` stays at or below a
threshold. The margin is partly the cost, partly something of its own:

Math: g(x) = rho f(x) / s + sqrt(1 - rho^2) h(x),   f ~ GP(0, s^2 R_f),  h ~ GP(0, R_h)

`rho` = 1 is GPCR (a crash means a high cost), 0 two separate models, below 0 says that crashes
lie where costs are low. Given the costs, the margins of all trials are jointly Gaussian, so the
same EP runs on them.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from crashbo.errors import NumericalError
from crashbo.inference.base import NOISE_FLOOR, WIDTH_FLOOR
from crashbo.inference.costs_small import inverse_of, matern52, squared_differences
from crashbo.inference.ep import EPOptions, small_settings
from crashbo.inference.ep_small import SmallResult, ep_small

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Coupling:
    """Hyperparameters of the pair, costs standardised.

    Attributes:
        cost_lengthscale, margin_lengthscale: `d` each, of f and h.
        cost_variance: s^2.
        noise_variance: of the costs.
        correlation: rho, between -1 and 1.
        threshold: of the margin, whose prior variance is 1.
    """

    cost_lengthscale: Array
    margin_lengthscale: Array
    cost_variance: float
    noise_variance: float
    correlation: float
    threshold: float


@dataclass(frozen=True)
class CoupledEvidence:
    """Log evidence with its gradient.

    Attributes:
        value: log evidence of costs and labels.
        gradient: `2 d + 4`, by the logs of cost lengthscales, margin lengthscales, cost variance and
            noise variance, then by correlation and threshold.
        ep: EP's result for the margins, relative to the threshold.
    """

    value: float
    gradient: Array
    ep: SmallResult


class SmallCoupled:
    """Evaluates the evidence of fixed trials at many hyperparameters, EP warm-started."""

    def __init__(self, X: Array, sign: Array, observed: NDArray[np.int64], costs: Array, *, tolerance: float = 1e-4):
        """Prepare.

        Args:
            X: `n x d`.
            sign: `n`, +1 for success, -1 for a crash.
            observed: `n_s`, rows with a cost.
            costs: `n_s`.
            tolerance: of EP.
        """
        self.squares = squared_differences(X)
        self.sign, self.observed, self.costs = sign, observed, costs
        self.pairs = np.ix_(observed, observed)
        self.settings = small_settings(EPOptions(tolerance=tolerance, max_sweeps=50))
        self.forget()

    def forget(self) -> None:
        """Start EP afresh next time."""
        self.sites = (np.zeros(len(self.sign)), np.zeros(len(self.sign)))

    def remember(self, ep: SmallResult) -> None:
        """Start EP from an earlier result, of all these trials or the first of them."""
        rest = np.zeros(len(self.sign) - len(ep.site_precision))
        self.sites = (np.concatenate([ep.site_precision, rest]), np.concatenate([ep.site_shift, rest]))

    def solve(self, at: Coupling) -> SmallResult:
        """EP's result alone."""
        rf, _ = matern52(self.squares, at.cost_lengthscale)
        rh, _ = matern52(self.squares, at.margin_lengthscale)
        return self._solve(at, rf, at.correlation**2 * rf + (1 - at.correlation**2) * rh)[0]

    def _solve(self, at: Coupling, rf: Array, margins: Array) -> tuple[SmallResult, float]:
        """EP's result, and the log evidence of the costs."""
        s, rho, seen = math.sqrt(at.cost_variance), at.correlation, self.observed
        block, cross = s**2 * rf[self.pairs], rho * s * rf[seen]
        mean, covariance, log_alpha = _condition(block, cross, margins, self.costs, _noise(at))
        width = np.full(len(mean), WIDTH_FLOOR)
        ep = ep_small(mean - at.threshold, covariance, self.sign, width, self.sites, self.settings)
        self.sites = (ep.site_precision, ep.site_shift)
        return ep, log_alpha

    def __call__(self, at: Coupling) -> CoupledEvidence:
        """Evaluate.

        Math: (M covariance of costs and margins together, D their noise and sites' variances, z targets)
            log evidence = log N(y; 0, s^2 R_f + noise) + log Z_EP(margins given y)
            d log evidence / dM = (b b' - (M + D)^-1) / 2,   b = (M + D)^-1 z

        Raises:
            NumericalError: a covariance is not positive definite to double precision.
        """
        rf, slope_f = matern52(self.squares, at.cost_lengthscale)
        rh, slope_h = matern52(self.squares, at.margin_lengthscale)
        s, rho, own = math.sqrt(at.cost_variance), at.correlation, 1 - at.correlation**2
        noise = _noise(at)
        seen = self.observed
        margins = rho**2 * rf + own * rh
        ep, log_alpha = self._solve(at, rf, margins)
        slope = self._slope(rf, margins, at, noise, ep)
        k = len(seen)
        costs, cross, own_part = slope[:k, :k], slope[:k, k:], slope[k:, k:]
        # Weight of every element of R_f: it stands in costs, in margins, and twice between them.
        on_f = rho**2 * own_part
        on_f[self.pairs] += s**2 * costs
        on_f[seen] += 2 * rho * s * cross  # twice in the rows, for the squares are symmetric
        between = s * float(np.vdot(cross, rf[seen]))
        gradient = np.concatenate(
            [
                np.tensordot(self.squares, on_f * slope_f, 2) / np.square(at.cost_lengthscale),
                own * np.tensordot(self.squares, own_part * slope_h, 2) / np.square(at.margin_lengthscale),
                [
                    s**2 * float((costs * rf[self.pairs]).sum()) + rho * between,
                    noise * float(costs.trace()),
                    2 * between + 2 * rho * float((own_part * (rf - rh)).sum()),
                    -float(ep.gradient.sum()),
                ],
            ]
        )
        return CoupledEvidence(log_alpha + min(ep.log_partition, 0.0), gradient, ep)

    def _slope(self, rf: Array, margins: Array, at: Coupling, noise: float, ep: SmallResult) -> Array:
        """(b b' - (M + D)^-1) / 2 over costs and margins; 0 for sites that say nothing."""
        seen, k = self.observed, len(self.observed)
        s, rho = math.sqrt(at.cost_variance), at.correlation
        total = np.concatenate([np.full(k, 1 / noise), ep.site_precision])
        target = np.concatenate([self.costs / noise, ep.site_precision * at.threshold + ep.site_shift])
        joint = np.empty((k + len(rf), k + len(rf)))
        joint[:k, :k] = s**2 * rf[self.pairs]
        joint[:k, k:] = rho * s * rf[seen]
        joint[k:, :k] = joint[:k, k:].T
        joint[k:, k:] = margins
        active: Any = slice(None)
        if not total.all():
            active = np.flatnonzero(total > 0)
            joint, total, target = joint[np.ix_(active, active)], total[active], target[active]
        root = np.sqrt(total)
        joint *= root
        joint *= root[:, None]
        joint.flat[:: len(total) + 1] += 1.0
        factor, info = lapack.dpotrf(joint.T, lower=1, clean=1, overwrite_a=1)
        if info:
            raise NumericalError("the covariance of costs and margins is not positive definite.")
        g = inverse_of(factor)
        g *= root
        g *= root[:, None]
        b = g @ (target / total)
        found = 0.5 * (np.outer(b, b) - g)
        if isinstance(active, slice):
            return found
        slope = np.zeros((k + len(rf), k + len(rf)))
        slope[np.ix_(active, active)] = found
        return slope


def _noise(at: Coupling) -> float:
    return max(at.noise_variance, NOISE_FLOOR * at.cost_variance)


def _condition(block: Array, cross: Array, margins: Array, costs: Array, noise: float) -> tuple[Array, Array, float]:
    """Margins given the costs: mean, covariance, and the log evidence of the costs.

    Args:
        block: `n_s x n_s`, prior covariance of the observed costs' latents; changed.
        cross: `n_s x n`, of costs and margins.
        margins: `n x n`.
        costs: `n_s`.
        noise: variance.
    """
    k = len(costs)
    if not k:
        return np.zeros(len(margins)), margins, 0.0
    block.flat[:: k + 1] += noise
    factor, info = lapack.dpotrf(block.T, lower=1, clean=0)
    if info:
        raise NumericalError("the covariance of the observed costs is not positive definite.")
    half, _ = lapack.dtrtrs(factor, np.column_stack([cross, costs]), lower=1)
    rows, white = half[:, :-1], half[:, -1]
    log_alpha = -0.5 * float(white @ white + 2 * np.log(factor.diagonal()).sum() + k * math.log(2 * math.pi))
    return rows.T @ white, np.ascontiguousarray(margins - rows.T @ rows), log_alpha
