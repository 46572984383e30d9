"""The posterior of all rows: values by conditioning, labels by expectation propagation, and the log evidence."""

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import numpy as np
from scipy.linalg import lapack

from crashbo.model.ep import WIDTH_FLOOR, Effort, EPResult, Labels, propagate
from crashbo.model.kernel import Kernel
from crashbo.model.rows import NOISE_FLOOR, Hyperparameters, Rows, joint_covariance
from crashbo.model.sites import cholesky, factor_sites
from crashbo.problem.arrays import Array

_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True)
class Conditioned:
    """The labelled rows given the values, `b` times: a Gaussian, and the evidence of the values."""

    mean: Array  # b x m
    covariance: Array  # b x m x m
    log_evidence: Array  # b, log N(values; 0, K_vv + noise); the paper's log alpha
    factors: list[Array]  # of K_vv + noise; none without values
    half: Array  # b x k x m, factor^-1 K_vl
    white: Array  # b x k, factor^-1 values
    deviation: Array  # b x m, prior standard deviations of the labelled rows

    @property
    def smallest_width(self) -> Array:
        """`b x m`, label width below which rounding would decide."""
        return WIDTH_FLOOR * self.deviation

    @property
    def residual_std(self) -> Array:
        """`b x m`, standard deviations given the values, above what rounding leaves of them."""
        return np.sqrt(np.maximum(np.einsum("bii->bi", self.covariance), np.square(self.smallest_width)))


def condition_on_values(covariance: Array, values: Array, noise: Array) -> Conditioned:
    """Condition the labelled rows on the values (Appendix "Product of Gaussians", corrected).

    Math: A = K_vv + noise,  mean = K_lv A^-1 y,  covariance = K_ll - K_lv A^-1 K_vl,  log_evidence = log N(y; 0, A)

    Shapes: covariance `b x r x r`, values first; values `k` or `b x k`; noise `b x k`.

    Raises:
        NumericalError: A is not positive definite to double precision.
    """
    (b, r, _), k = covariance.shape, noise.shape[-1]
    values = np.broadcast_to(values, (b, k))
    half, white, log_evidence = np.empty((b, k, r - k)), np.empty((b, k)), np.zeros(b)
    factors = [_factor_values(covariance[i, :k, :k], noise[i]) for i in range(b if k else 0)]
    for i, factor in enumerate(factors):
        stacked = np.concatenate([covariance[i, k:, :k], values[i : i + 1]])
        solved, _ = lapack.dtrtrs(factor, stacked.T, lower=1, overwrite_b=1)
        half[i], white[i] = solved[:, :-1], solved[:, -1]
        log_det = 2 * np.log(factor.diagonal()).sum()
        log_evidence[i] = -0.5 * (white[i] @ white[i] + log_det + k * _LOG_2PI)
    mean = np.einsum("bkm,bk->bm", half, white)
    left = covariance[:, k:, k:] - half.swapaxes(-1, -2) @ half
    deviation = np.sqrt(np.einsum("bii->bi", covariance)[:, k:])
    return Conditioned(mean, left, log_evidence, factors, half, white, deviation)


def _factor_values(covariance: Array, noise: Array | float) -> Array:
    """Cholesky factor of the covariance of values with their noise."""
    noisy = covariance.copy()
    noisy.flat[:: len(noisy) + 1] += noise
    return cholesky(
        noisy.T,
        "the covariance of the observed values is not positive definite to double precision. "
        "Raise the noise, or shorten the lengthscales.",
    )


@dataclass(frozen=True)
class Solution:
    """The Gaussian that stands for the posterior of rows, `b` times: an exact GP on values and sites.

    Math: with b the `weights` and G = half' half,
        E[u] = k_u' b,  Cov[u, w] = k_uw - k_u' G k_w     for any latents u, w with covariances k_u, k_w to the rows
    """

    weights: Array  # b x r
    log_evidence: Array  # b, of values and labels together
    ep: EPResult  # of the labels
    given: Conditioned  # the labelled rows given the values

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def half(self) -> Array:
        """`b x r x r`, lower triangular, half' half = G.

        Math: [[La^-1, 0], [-T K_lv A^-1, T]],  A = La La',  T = Lb^-1 S^(1/2)
        """
        (b, r), k = self.weights.shape, self.given.white.shape[-1]
        found = np.zeros((b, r, r))
        for i in range(b):
            if k:
                found[i, :k, :k], _ = lapack.dtrtri(self.given.factors[i], lower=1)
            if r > k:
                root = np.sqrt(self.ep.precision[i])
                below, _ = lapack.dtrtri(factor_sites(self.given.covariance[i], root), lower=1)
                found[i, k:, k:] = below = below * root
                found[i, k:, :k] = -below @ (self.given.half[i].T @ found[i, :k, :k])
        return found


@dataclass(frozen=True)
class Posterior(Solution):
    """A solution with what it was made from."""

    rows: Rows
    at: Hyperparameters


def solve(given: Conditioned, labels: Labels, **effort: Unpack[Effort]) -> Solution:
    """Add the labels to values that were conditioned on; widths below `given.smallest_width` count as that."""
    resolved = replace(labels, width=np.maximum(labels.width, given.smallest_width))
    ep = propagate(given.mean, given.covariance, resolved, **effort)
    # The weights are K^-1 times the posterior mean: of the labels their gradient g, of the values A^-1 (y - K_vl g).
    own = given.white - np.einsum("bkm,bm->bk", given.half, ep.gradient)
    for i, factor in enumerate(given.factors):
        own[i] = lapack.dtrtrs(factor, own[i], lower=1, trans=1)[0]
    weights = np.concatenate([own, ep.gradient], -1)
    return Solution(weights, given.log_evidence + ep.log_partition, ep, given)


def infer(rows: Rows, at: Hyperparameters, *, width: float = 0.0, **effort: Unpack[Effort]) -> Posterior:
    """Compute the posterior and the log evidence of all rows; `width` is the probit width of the labels."""
    given = condition_on_values(joint_covariance(rows, at), rows.values, at.row_noise(rows))
    lapse = at.lapse[:, None] if rows.soft is None else np.where(rows.soft, 0.5, at.lapse[:, None])
    labels = Labels(rows.sign, at.threshold[:, rows.label_output], width, lapse, rows.soft)
    found = solve(given, labels, **effort)
    return Posterior(found.weights, found.log_evidence, found.ep, given, rows, at)


def evidence_slope(solution: Solution) -> Array:
    """Derivative of the log evidence by the rows' prior covariance, `b x r x r`.

    Exact where EP has converged, whose fixed point is stationary in the sites; approximate where a lapse rate has set
    the precision of a site to 0, because there only the mean is matched (see `match_moments`).

    Math: (b b' - G) / 2
    """
    half, weights = solution.half, solution.weights
    return 0.5 * (weights[:, :, None] * weights[:, None, :] - half.swapaxes(-1, -2) @ half)


def evidence_gradient(posterior: Posterior) -> Array:
    """Derivatives of the log evidence of one setting whose outputs are all multiples of one latent, `d + 3`.

    By the logs of the lengthscales, of the values' variance and of their noise variance, and by the labels' threshold.

    Math: sum_rs slope_rs dK_rs / d theta,  slope as in `evidence_slope`
    """
    rows, at, k = posterior.rows, posterior.at, posterior.rows.n_values
    mixing, precision = at.mixing[0, rows.output, 0], np.square(1 / at.lengthscale[0, 0])
    slope = evidence_slope(posterior)[0]
    shape, fall = at.latents.kernels[0].correlation_and_slope(rows.squared_distances(precision))
    weighed = slope * mixing[:, None] * mixing
    by_length = rows.weighed_gaps(rows.incidence.T @ weighed @ rows.incidence * fall) * precision
    by_variance = (weighed * shape[rows.point[:, None], rows.point])[:k].sum()
    by_noise = slope.diagonal()[:k] @ at.row_noise(rows)[0]
    return np.array([*by_length, by_variance, by_noise, -posterior.weights[0, k:].sum()])


def log_evidence_of_values(rows: Rows, theta: Array, kernel: Kernel) -> tuple[float, Array]:
    """Log evidence of a standard GP on one value per point, and its gradient: `evidence_gradient` with less overhead.

    `theta` are `d + 2` logs, of lengthscales, variance and noise variance.

    Math: log N(y; 0, A),  A = variance R + noise I;  by A: (b b' - A^-1) / 2,  b = A^-1 y
    """
    n, values = len(rows.X), rows.values
    if not n:
        return 0.0, np.zeros_like(theta)
    precision, variance = np.exp(-2 * theta[:-2]), math.exp(theta[-2])
    noise = max(math.exp(theta[-1]), NOISE_FLOOR * variance)
    shape, fall = kernel.correlation_and_slope(rows.squared_distances(precision))
    shape = variance * shape
    factor = _factor_values(shape, noise)
    log_det = 2 * float(np.log(factor.diagonal()).sum())
    weights, _ = lapack.dpotrs(factor, values, lower=1)
    inverse, _ = lapack.dtrtri(factor, lower=1, overwrite_c=1)
    slope = 0.5 * (np.multiply.outer(weights, weights) - inverse.T @ inverse)
    by_length = rows.weighed_gaps(slope * fall) * precision * variance
    gradient = np.array([*by_length, np.vdot(slope, shape), noise * np.trace(slope)])
    return -0.5 * (float(values @ weights) + log_det + n * _LOG_2PI), gradient
