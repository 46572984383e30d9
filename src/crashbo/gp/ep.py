"""Expectation propagation for Gaussians with one-sided labels, many at once.

The Gaussian is arbitrary, so labels may sit on any latent. Sites are stored relative to their limit, as Gaussians
exp(shift u - precision u^2 / 2) in u = f - limit, which makes them good starting points when only the limit moves.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

from crashbo.errors import NumericalError
from crashbo.gp.anderson import Anderson
from crashbo.gp.truncation import Site, match_moments

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
WIDTH_FLOOR = 1e-4  # smallest probit width, in standard deviations: contradicting labels at one point stay proper
_STIFF = 1e5  # precision times prior variance beyond which variances come from leave-one-out forms
_ROUNDING_AFTER = 30  # sweeps after which rounding may be what is left of the mismatch
_MANY = 500  # problems that are factored in one call


@dataclass(frozen=True)
class Labels:
    """One-sided labels of `n` latents: f <= limit where `sign` is +1, f > limit where -1.

    Attributes:
        sign: `n`.
        limit: `b x n`.
        width: `b x n`, probit width; 0 is the paper's step.
        lapse: `b x n`, probability that a trial within its limit is labelled as beyond it all the same.
        soft: `n`, labels at or below their limit that may lapse as well; None: none.
    """

    sign: Array
    limit: Array
    width: Array
    lapse: Array
    soft: Bools | None = None


@dataclass(frozen=True)
class EPResult:
    """The Gaussian approximation of `b` problems, and how it was reached.

    Attributes:
        precision, shift: `b x n`, the sites, relative to the limits.
        mean, variance: `b x n`, marginal moments.
        gradient: `b x n`, derivative of log Z by the base mean.
        log_partition: `b`, log Z, never above 0.
        kept: `b x n`, probability that a label did not lapse.
        log_mass: `b x n`, log probability of each label given all others.
        sweeps: sweeps made.
        change: `b`, mismatch of tilted and marginal moments at the end.
        converged: `b`.
    """

    precision: Array
    shift: Array
    mean: Array
    variance: Array
    gradient: Array
    log_partition: Array
    kept: Array
    log_mass: Array
    sweeps: int
    change: Array
    converged: Bools

    @classmethod
    def empty(cls, b: int) -> "EPResult":
        """Of problems without labels."""
        none, zero = np.zeros((b, 0)), np.zeros(b)
        return cls(none, none, none, none, none, zero, none, none, 0, zero, np.ones(b, dtype=bool))


class _Marginals(NamedTuple):
    """Posterior and cavities under the sites, `b x n`, and the log normaliser, `b`."""

    mean: Array
    variance: Array
    gradient: Array
    cavity_mean: Array
    cavity_variance: Array
    log_normaliser: Array

    def put(self, index: NDArray[np.int64], some: "_Marginals") -> None:
        """Fill in some of the problems."""
        for target, value in zip(self, some, strict=True):
            target[index] = value


def propagate(
    mean: Array,
    covariance: Array,
    labels: Labels,
    *,
    start: tuple[Array, Array] | None = None,
    tolerance: float = 1e-6,
    max_sweeps: int = 200,
) -> EPResult:
    """Approximate N(f; mean, covariance) times one-sided labels by a Gaussian, for `b` problems.

    Parallel sweeps with Anderson acceleration. Problems are independent of each other and are left alone once they have
    converged. Labels that say nothing cost nothing.

    Args:
        mean: `b x n`.
        covariance: `b x n x n`, positive semi-definite.
        labels: of all problems; a width below `WIDTH_FLOOR` standard deviations counts as that.
        start: site precisions and shifts to begin from, `b x n` each.
        tolerance: summed mismatch of moments, in standard deviations, at which EP has converged.
        max_sweeps: before EP gives up and says so.

    Raises:
        NumericalError: a covariance is not positive semi-definite to double precision.
    """
    b, n = mean.shape
    if not n:
        return EPResult.empty(b)
    prior = _variances(covariance)
    widest = np.sqrt(prior.max(-1, initial=0.0, keepdims=True))
    width = np.maximum(labels.width, WIDTH_FLOOR * widest)
    huge = 1e3 * (widest + np.abs(mean).max(-1, initial=0.0, keepdims=True))
    limit = np.where(np.isinf(labels.limit), np.sign(labels.limit) * huge, labels.limit)
    centred = mean - limit
    sign = np.broadcast_to(labels.sign, (b, n))
    x = np.zeros((b, 2 * n)) if start is None else np.concatenate(start, -1)
    q = _Marginals(*[np.zeros(shape) for shape in [(b, n)] * 5 + [(b,)]])
    accelerator = Anderson(b)
    done, sweeps, change = np.zeros(b, dtype=bool), 0, np.zeros(b)
    while True:
        todo = np.flatnonzero(~done)
        every = len(todo) == b  # saves copies of the covariances
        part = (centred, covariance, prior, x) if every else (centred[todo], covariance[todo], prior[todo], x[todo])
        q.put(todo, _condition(*part[:3], part[3][:, :n], part[3][:, n:]))
        site = match_moments(q.cavity_mean, q.cavity_variance, sign, width, labels.lapse, labels.soft)
        change = _mismatch(q, site)
        sweeps += 1
        done = done | (change <= tolerance)
        if sweeps >= _ROUNDING_AFTER:
            done = done | (change <= _rounding(covariance, q))
        if done.all() or sweeps >= max_sweeps:
            break
        x = _step(accelerator, q, x, site, change, done)
    raw = site.log_mass.sum(-1) + q.log_normaliser
    return EPResult(
        precision=x[:, :n],
        shift=x[:, n:],
        mean=q.mean + limit,
        variance=q.variance,
        gradient=q.gradient,
        log_partition=np.minimum(raw, 0.0),
        kept=site.kept,
        log_mass=site.log_mass,
        sweeps=sweeps,
        change=change,
        converged=done & (raw <= 1e-6),
    )


def _variances(covariance: Array) -> Array:
    """The diagonals, kept above zero: a latent that cannot vary still has a distribution."""
    diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
    return np.maximum(diagonal, np.maximum(1e-16 * diagonal.max(-1, initial=0.0, keepdims=True), 1e-200))


def factor_sites(covariance: Array, root: Array) -> Array:
    """Cholesky factor of I + S^(1/2) covariance S^(1/2), eigenvalues >= 1 up to rounding; `root` is S^(1/2)."""
    b = covariance * root
    b *= root[:, None]
    b.flat[:: len(root) + 1] += 1.0
    factor, info = lapack.dpotrf(b.T, lower=1, clean=1, overwrite_a=1)
    if info:
        raise _broken()
    return np.asarray(factor)


def _broken() -> NumericalError:
    return NumericalError(
        "the covariance of the labelled latents must be positive semi-definite to double precision; its "
        "factorisation broke down. Add noise or a label width, or remove near-duplicates."
    )


def _condition(mean: Array, covariance: Array, prior: Array, precision: Array, shift: Array) -> _Marginals:
    """Condition `b` Gaussians on their sites; latents whose sites have no precision anywhere are not factored.

    Math: (h shifts of sites without precision; m' = mean + covariance h; r = S^(-1/2) shift - S^(1/2) m'; g gradient)
        g = S^(1/2) B^-1 r, or the shift itself for sites without precision
        posterior mean     = mean + covariance g
        posterior variance = diag(covariance - covariance S^(1/2) B^-1 S^(1/2) covariance)
        cavity variance    = variance / (1 - precision variance),   cavity mean = posterior mean - cavity variance g
    """
    positive = precision > 0
    gradient = np.where(positive, 0.0, shift)
    extra = np.zeros(len(mean))
    if gradient.any():
        moved = (covariance @ gradient[..., None])[..., 0]
        extra = np.einsum("bn,bn->b", gradient, mean + 0.5 * moved)
        mean = mean + moved
    active = np.flatnonzero(positive.any(0))
    if len(active) == 0:
        cavity = mean - prior * gradient
        return _Marginals(mean, prior, gradient, cavity, prior, extra - _tilted_mass(gradient, cavity, prior))
    rows = covariance if len(active) == mean.shape[-1] else covariance[:, active]
    some, tau = positive[:, active], precision[:, active]
    root, safe = np.sqrt(tau), np.where(some, tau, 1.0)
    residual = np.where(some, shift[:, active] / np.sqrt(safe) - root * mean[:, active], 0.0)
    solved = _Solved.of(rows, active, root, residual)
    g = root * solved.back
    variance = np.maximum(prior - solved.explained, 1e-14 * prior)
    cavity_variance = variance / np.maximum(1 - precision * variance, 1e-14)
    prior_here = prior[:, active]
    stiff = tau * prior_here > _STIFF
    if stiff.any():
        kept = solved.inverse_diagonal(np.flatnonzero(stiff.any(-1)))
        left_out = np.minimum(np.maximum(1 - kept, 1e-16) / (safe * kept), prior_here)
        cavity_variance[:, active] = np.where(stiff, left_out, cavity_variance[:, active])
    cavity_variance = np.minimum(cavity_variance, prior)
    variance = cavity_variance / (1 + precision * cavity_variance)
    posterior_mean = mean + (g[:, None, :] @ rows)[:, 0]
    tilted = gradient
    gradient = gradient.copy()
    gradient[:, active] += g
    cavity_mean = posterior_mean - cavity_variance * gradient
    v = cavity_variance[:, active]
    local = np.log1p(tau * v) + np.square(g) * (v + np.where(some, 1 / safe, 0.0))
    log_normaliser = 0.5 * (local.sum(-1) - solved.log_det - np.einsum("bn,bn->b", solved.white, solved.white))
    log_normaliser += extra - _tilted_mass(tilted, cavity_mean, cavity_variance)
    return _Marginals(posterior_mean, variance, gradient, cavity_mean, cavity_variance, log_normaliser)


@dataclass(frozen=True)
class _Solved:
    """What the factors of `B = I + S^(1/2) covariance S^(1/2)` of `b` problems give.

    Attributes:
        factors: of B.
        white, back: `b x a`, factor^-1 residual, and B^-1 residual.
        explained: `b x n`, diag(covariance S^(1/2) B^-1 S^(1/2) covariance).
        log_det: `b`, of B.
    """

    factors: list[Array]
    white: Array
    back: Array
    explained: Array
    log_det: Array

    @classmethod
    def of(cls, rows: Array, active: NDArray[np.int64], root: Array, residual: Array) -> "_Solved":
        """Factor and solve.

        Args:
            rows: `b x a x n`, covariances of the active latents with all.
            active: `a`.
            root, residual: `b x a`.
        """
        b, a, n = rows.shape
        if b > _MANY:
            return cls._at_once(rows[..., active], rows * root[..., None], root, residual)
        white, back, explained, log_det = np.empty((b, a)), np.empty((b, a)), np.empty((b, n)), np.empty(b)
        factors = []
        for i in range(b):
            factor = factor_sites(rows[i] if a == n else rows[i][:, active], root[i])
            stacked = np.empty((n + 1, a))
            np.multiply(rows[i].T, root[i], out=stacked[:n])
            stacked[n] = residual[i]
            solved, _ = lapack.dtrtrs(factor, stacked.T, lower=1, overwrite_b=1)
            white[i] = solved[:, n]
            back[i] = lapack.dtrtrs(factor, white[i], lower=1, trans=1)[0]
            explained[i] = np.einsum("ij,ij->j", solved[:, :n], solved[:, :n])
            log_det[i] = 2 * np.log(factor.diagonal()).sum()
            factors.append(factor)
        return cls(factors, white, back, explained, log_det)

    @classmethod
    def _at_once(cls, own: Array, scaled: Array, root: Array, residual: Array) -> "_Solved":
        """The same for very many problems, which are small: all in one call each."""
        try:
            factors = np.linalg.cholesky(own * root[..., None] * root[:, None, :] + np.eye(own.shape[-1]))
        except np.linalg.LinAlgError as error:
            raise _broken() from error
        solved = np.linalg.solve(factors, np.concatenate([scaled, residual[..., None]], -1))
        white, explained = solved[..., -1], np.einsum("ban,ban->bn", solved[..., :-1], solved[..., :-1])
        back = np.linalg.solve(factors.swapaxes(-1, -2), white[..., None])[..., 0]
        return cls(list(factors), white, back, explained, 2 * np.log(np.einsum("baa->ba", factors)).sum(-1))

    def inverse_diagonal(self, problems: NDArray[np.int64]) -> Array:
        """diag(B^-1) of some problems, 1 for the others, `b x a`."""
        found = np.ones_like(self.white)
        for i in problems.tolist():
            half, _ = lapack.dtrtri(self.factors[i], lower=1)
            found[i] = np.einsum("ij,ij->j", half, half)
        return found


def _tilted_mass(shift: Array, mean: Array, variance: Array) -> Array:
    """Log mass of sites exp(shift u) under their cavities, summed, `b`."""
    result: Array = (shift * mean + 0.5 * np.square(shift) * variance).sum(-1)
    return result


def _mismatch(q: _Marginals, site: Site) -> Array:
    """Summed difference between tilted and marginal moments, `b`.

    A sum, because sites at nearby points err together: n small gaps can hide a large one.
    """
    v = q.cavity_variance
    kept = 1 + v * site.precision
    tilted = q.cavity_mean + v * (site.shift - site.precision * q.cavity_mean) / kept
    mean_gap = np.abs(tilted - q.mean) / np.sqrt(q.variance)
    result: Array = np.maximum(mean_gap, np.abs(v / kept / q.variance - 1)).sum(-1)
    return result


def _rounding(covariance: Array, q: _Marginals) -> Array:
    """Mismatch that rounding alone can cause where opposing labels nearly coincide, `b`."""
    error = 1e-15 * (np.abs(covariance) @ np.abs(q.gradient)[..., None])[..., 0]
    result: Array = np.minimum((error / np.sqrt(q.variance)).sum(-1), 1e-4)
    return result


def _step(accelerator: Anderson, q: _Marginals, x: Array, site: Site, change: Array, done: Bools) -> Array:
    """Move the sites of every unfinished problem one accelerated step."""
    n = x.shape[-1] // 2
    target = np.concatenate([site.precision, site.shift], -1)
    scale = np.concatenate([q.variance, np.sqrt(q.variance)], -1)
    moved, plain = accelerator.propose(x, target - x, scale, change)
    # A precision must stay non-negative: where the extrapolation leaves the safe side, that site takes the plain
    # damped step. A weak site whose target is flat becomes exactly flat.
    low = 0.2 * np.minimum(plain[:, :n], site.precision)
    bad = (moved[:, :n] < low) | ~np.isfinite(moved[:, :n]) | ~np.isfinite(moved[:, n:])
    precision = np.maximum(np.where(bad, plain[:, :n], moved[:, :n]), 0.0)
    shift = np.where(bad, plain[:, n:], moved[:, n:])
    weak = (site.precision == 0) & (x[:, :n] * q.variance < 1e-3)
    if weak.any():
        precision = np.where(weak, 0.0, precision)
        shift = np.where(weak & (site.shift == 0), 0.0, shift)
    stepped = np.concatenate([precision, shift], -1)
    return np.where(done[:, None], x, stepped)
