"""Log evidence and its gradient for one small problem on the CPU, in NumPy.

The twin of the differentiable torch evidence for scaled Matern and RBF kernels, many times
faster where n is small; tests hold the two equal.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from crashbo.errors import NumericalError
from crashbo.inference.base import NOISE_FLOOR, WIDTH_FLOOR
from crashbo.inference.ep import EPOptions, small_settings
from crashbo.inference.ep_small import ep_small

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Hyperparameters:
    """One choice of kernel, noise and threshold, in natural units."""

    lengthscale: Array
    outputscale: float
    noise_variance: float
    threshold: float


@dataclass(frozen=True)
class Evidence:
    """Log evidence with its gradient.

    Attributes:
        value: log alpha + log Z_EP.
        log_lengthscale: `d`, derivative with respect to each log lengthscale.
        log_outputscale, log_noise, threshold: derivatives.
        converged: whether EP did.
    """

    value: float
    log_lengthscale: Array
    log_outputscale: float
    log_noise: float
    threshold: float
    converged: bool


class SmallEvidence:
    """Evaluates the evidence of fixed trials at many hyperparameters, EP warm-started."""

    def __init__(self, X: Array, sign: Array, observed: NDArray[np.int64], costs: Array, *, nu: float, width: float):
        """Prepare.

        Args:
            X: `n x d`.
            sign: `n`, +1 below the threshold, -1 above.
            observed: `n_s`, rows with a cost.
            costs: `n_s`.
            nu: smoothness of the Matern kernel: 1.5, 2.5, or inf for RBF.
            width: probit width of the labels.
        """
        self.squares = np.square(X[:, None, :] - X[None, :, :]).transpose(2, 0, 1).copy()
        self.sign, self.observed, self.costs, self.nu, self.width = sign, observed, costs, nu, width
        self.sites = (np.zeros(len(X)), np.zeros(len(X)))
        self.settings = small_settings(EPOptions(tolerance=1e-4, max_sweeps=50))

    def _kernel(self, at: Hyperparameters) -> tuple[Array, Array]:
        """K, and F with dK / d log lengthscale_j = F * squares_j / lengthscale_j^2."""
        distance2 = np.tensordot(1.0 / np.square(at.lengthscale), self.squares, 1)
        if math.isinf(self.nu):
            kernel = at.outputscale * np.exp(-0.5 * distance2)
            return kernel, kernel
        r = np.sqrt(2 * self.nu * distance2)
        decay = at.outputscale * np.exp(-r)
        if self.nu == 1.5:
            return (1 + r) * decay, 3 * decay
        return (1 + r + np.square(r) / 3) * decay, (5 / 3) * (1 + r) * decay

    def __call__(self, at: Hyperparameters) -> Evidence:
        """Evaluate.

        Math: (T total site precisions, labels and costs; y~ their targets)
            G = T^(1/2) (I + T^(1/2) K T^(1/2))^-1 T^(1/2),  b = G y~
            d log evidence / dK     = (b b' - G) / 2
            d log evidence / d noise = sum over costs of ((y - m)^2 + v - noise) / (2 noise^2)
            d log evidence / dc     = -sum of the label sites' gradients

        Raises:
            NumericalError: a covariance is not positive definite to double precision.
        """
        kernel, slope = self._kernel(at)
        noise = max(at.noise_variance, NOISE_FLOOR * at.outputscale)
        mean, covariance, log_alpha = self._base(kernel, noise)
        n = len(mean)
        largest = math.sqrt(max(float(covariance.diagonal().max()), 1e-300))
        limit = at.threshold
        if math.isinf(limit):
            limit = math.copysign(1e3 * (largest + float(np.abs(mean).max(initial=0.0))), limit)
        width = np.full(n, max(self.width, WIDTH_FLOOR * math.sqrt(at.outputscale)))
        ep = ep_small(mean - limit, covariance, self.sign, width, self.sites, self.settings)
        self.sites = (ep.site_precision, ep.site_shift)
        total = ep.site_precision.copy()
        weighted = ep.site_precision * limit + ep.site_shift
        total[self.observed] += 1 / noise
        weighted[self.observed] += self.costs / noise
        half_slope = self._slope(kernel, total, weighted)
        shaped = half_slope * slope
        residual = self.costs - (ep.mean[self.observed] + limit)
        by_noise = np.sum(np.square(residual) + ep.variance[self.observed] - noise) / (2 * noise)
        return Evidence(
            value=log_alpha + min(ep.log_partition, 0.0),
            log_lengthscale=np.tensordot(self.squares, shaped, 2) / np.square(at.lengthscale),
            log_outputscale=float((half_slope * kernel).sum()),
            log_noise=float(by_noise),
            threshold=-float(ep.gradient.sum()),
            converged=ep.converged,
        )

    def _base(self, kernel: Array, noise: float) -> tuple[Array, Array, float]:
        """`condition_on_costs` in NumPy."""
        s = self.observed
        if not len(s):
            return np.zeros(len(kernel)), kernel, 0.0
        block = kernel[np.ix_(s, s)]
        block.flat[:: len(s) + 1] += noise
        factor, info = lapack.dpotrf(block.T, lower=1, clean=0, overwrite_a=1)
        if info:
            raise NumericalError("the covariance of the observed costs is not positive definite.")
        stacked = np.column_stack([kernel[:, s].T, self.costs])
        half, _ = lapack.dtrtrs(factor, np.asfortranarray(stacked), lower=1, overwrite_b=1)
        rows, white = half[:, :-1], half[:, -1]
        log_det = 2 * np.log(factor.diagonal()).sum()
        log_alpha = -0.5 * float(white @ white + log_det + len(s) * math.log(2 * math.pi))
        covariance = np.ascontiguousarray(kernel - rows.T @ rows)
        return rows.T @ white, covariance, log_alpha

    @staticmethod
    def _slope(kernel: Array, total: Array, weighted: Array) -> Array:
        """(b b' - G) / 2 over the sites that say something."""
        active = np.flatnonzero(total > 0)
        slope = np.zeros_like(kernel)
        if not len(active):
            return slope
        root = np.sqrt(total[active])
        b = kernel[np.ix_(active, active)] * root * root[:, None]
        b.flat[:: len(active) + 1] += 1.0
        factor, info = lapack.dpotrf(b.T, lower=1, clean=1, overwrite_a=1)
        if info:
            raise NumericalError("the covariance of the sites is not positive definite.")
        half, _ = lapack.dtrtrs(factor, np.diag(root), lower=1)
        g = half.T @ half
        gradient = g @ (weighted[active] / total[active])
        slope[np.ix_(active, active)] = 0.5 * (np.outer(gradient, gradient) - g)
        return slope
