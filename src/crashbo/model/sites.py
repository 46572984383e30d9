"""Gaussians times Gaussian sites: moments, cavities and normalisers, many at once."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import lapack

from crashbo.errors import NumericalError
from crashbo.problem.arrays import Array, Indices

_STIFF = 1e5  # precision times prior variance beyond which variances come from leave-one-out forms
_INDEFINITE = (
    "the covariance of the labelled latents must be positive semi-definite to double precision; its factorisation "
    "broke down. Add noise or a label width, or remove near-duplicates."
)


class Marginals(NamedTuple):
    """Posterior and cavities under the sites, `b x n`, and the log normaliser, `b`."""

    mean: Array
    variance: Array
    gradient: Array
    cavity_mean: Array
    cavity_variance: Array
    log_normaliser: Array


def cholesky(matrix: Array, complaint: str = _INDEFINITE) -> Array:
    """Lower factor, in place of a matrix in LAPACK's order.

    Raises:
        NumericalError: it is not positive definite to double precision.
    """
    factor, info = lapack.dpotrf(matrix, lower=1, clean=1, overwrite_a=1)
    if info:
        raise NumericalError(complaint)
    return factor


def factor_sites(covariance: Array, root: Array) -> Array:
    """Cholesky factor of I + S^(1/2) covariance S^(1/2), eigenvalues >= 1 up to rounding; `root` is S^(1/2)."""
    b = covariance * root
    b *= root[:, None]
    b.flat[:: len(root) + 1] += 1.0
    return cholesky(b.T)


def condition_on_sites(mean: Array, covariance: Array, prior: Array, precision: Array, shift: Array) -> Marginals:
    """Condition `b` Gaussians on their sites; latents whose sites have no precision anywhere are not factored.

    Math: (h shifts of sites without precision; m' = mean + covariance h; r = S^(-1/2) shift - S^(1/2) m'; g gradient)
        g = S^(1/2) B^-1 r, or the shift itself for sites without precision
        posterior mean     = mean + covariance g
        posterior variance = diag(covariance - covariance S^(1/2) B^-1 S^(1/2) covariance)
        cavity variance    = variance / (1 - precision variance),   cavity mean = posterior mean - cavity variance g
    """
    positive = precision > 0
    flat = np.where(positive, 0.0, shift)  # h
    extra = np.zeros(len(mean))
    if flat.any():
        moved = (covariance @ flat[..., None])[..., 0]
        extra = np.einsum("bn,bn->b", flat, mean + 0.5 * moved)
        mean = mean + moved
    active = np.flatnonzero(positive.any(0))
    if len(active) == 0:
        cavity = mean - prior * flat
        return Marginals(mean, prior, flat, cavity, prior, extra - _site_mass(flat, cavity, prior))
    rows = covariance if len(active) == mean.shape[-1] else covariance[:, active]
    some, tau = positive[:, active], precision[:, active]
    root, safe = np.sqrt(tau), np.where(some, tau, 1.0)
    residual = np.where(some, shift[:, active] / np.sqrt(safe) - root * mean[:, active], 0.0)
    factors, white, back, explained = _solve(rows, active, root, residual)
    g = root * back
    variance = np.maximum(prior - explained, 1e-14 * prior)
    cavity_variance = variance / np.maximum(1 - precision * variance, 1e-14)
    prior_here = prior[:, active]
    stiff = tau * prior_here > _STIFF
    if stiff.any():
        kept = np.ones_like(tau)  # diag(B^-1)
        for i in np.flatnonzero(stiff.any(-1)).tolist():
            half, _ = lapack.dtrtri(factors[i], lower=1)
            kept[i] = np.einsum("ij,ij->j", half, half)
        left_out = np.minimum(np.maximum(1 - kept, 1e-16) / (safe * kept), prior_here)
        cavity_variance[:, active] = np.where(stiff, left_out, cavity_variance[:, active])
    cavity_variance = np.minimum(cavity_variance, prior)
    variance = cavity_variance / (1 + precision * cavity_variance)
    posterior_mean = mean + (g[:, None, :] @ rows)[:, 0]
    gradient = flat.copy()
    gradient[:, active] += g
    cavity_mean = posterior_mean - cavity_variance * gradient
    v = cavity_variance[:, active]
    local = np.log1p(tau * v) + np.square(g) * (v + np.where(some, 1 / safe, 0.0))
    log_det = 2 * np.log(np.einsum("baa->ba", factors)).sum(-1)
    log_normaliser = 0.5 * (local.sum(-1) - log_det - np.einsum("bn,bn->b", white, white))
    log_normaliser += extra - _site_mass(flat, cavity_mean, cavity_variance)
    return Marginals(posterior_mean, variance, gradient, cavity_mean, cavity_variance, log_normaliser)


def _solve(rows: Array, active: Indices, root: Array, residual: Array) -> tuple[Array, Array, Array, Array]:
    """Factor B = I + S^(1/2) covariance S^(1/2) and solve; `rows` are covariances of the active latents with all.

    Returns:
        lower factors of B `b x a x a`, factor^-1 residual and B^-1 residual `b x a`, and
        diag(covariance S^(1/2) B^-1 S^(1/2) covariance) `b x n`.
    """
    b, a, n = rows.shape
    # In LAPACK's order, so that it works in place: each matrix here is the transpose of what it sees.
    stacked = np.empty((b, n + 1, a))
    np.multiply(rows.swapaxes(-1, -2), root[:, None, :], out=stacked[:, :n])
    stacked[:, n] = residual
    matrices = np.multiply(stacked[:, active], root[..., None], order="C")
    np.einsum("baa->ba", matrices)[:] += 1.0
    back = np.empty((b, a))
    for i in range(b):
        factor = cholesky(matrices[i].T)
        lapack.dtrtrs(factor, stacked[i].T, lower=1, overwrite_b=1)  # in place
        back[i] = lapack.dtrtrs(factor, stacked[i, n], lower=1, trans=1)[0]
    explained = np.einsum("bna,bna->bn", stacked[:, :n], stacked[:, :n])
    return matrices.swapaxes(-1, -2), stacked[:, n], back, explained


def _site_mass(shift: Array, mean: Array, variance: Array) -> Array:
    """Log mass of sites exp(shift u) under their cavities, summed, `b`."""
    return (shift * mean + 0.5 * np.square(shift) * variance).sum(-1)
