"""Expectation propagation for Gaussians with one-sided labels, many at once.

The Gaussian is arbitrary, so labels may sit on any latent. Sites are stored relative to their limit, as Gaussians
exp(shift u - precision u^2 / 2) in u = f - limit, which makes them good starting points when only the limit moves.
"""

from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np

from crashbo.model.anderson import Anderson
from crashbo.model.sites import Marginals, condition_on_sites
from crashbo.model.truncation import Site, match_moments
from crashbo.problem.arrays import Array, Batch, Bools, Indices

WIDTH_FLOOR = 1e-4  # smallest probit width, in standard deviations: contradicting labels at one point stay proper
_ROUNDING_AFTER = 30  # sweeps after which rounding may be what is left of the mismatch


@dataclass(frozen=True)
class Labels:
    """One-sided labels of `n` latents: f <= limit where `sign` is +1, f > limit where -1."""

    sign: Array  # n
    limit: Array | float  # this, width and lapse: anything that broadcasts to b x n
    width: Array | float = 0.0  # probit width; 0 is the paper's step
    lapse: Array | float = 0.0  # probability that a trial within its limit is labelled as beyond it all the same
    soft: Bools | None = None  # n, labels at or below their limit that may lapse as well; None: none


@dataclass(frozen=True)
class EPResult(Batch):
    """The Gaussian approximation of `b` problems, and how it was reached."""

    precision: Array  # b x n, the sites, relative to the limits
    shift: Array  # b x n
    mean: Array  # b x n, marginal moments
    variance: Array  # b x n
    gradient: Array  # b x n, derivative of log Z by the base mean
    log_partition: Array  # b, log Z, never above 0
    kept: Array  # b x n, probability that a label did not lapse
    log_mass: Array  # b x n, log probability of each label given all others
    sweeps: Indices  # b
    change: Array  # b, mismatch of tilted and marginal moments at the end
    converged: Bools  # b

    @property
    def sites(self) -> Array:
        """`2 x b x n`, precisions and shifts: what another EP can begin from."""
        return np.stack([self.precision, self.shift])


class Effort(TypedDict, total=False):
    """How EP runs; see `propagate`."""

    start: Array | None
    tolerance: float
    max_sweeps: int


def propagate(
    mean: Array,
    covariance: Array,
    labels: Labels,
    *,
    start: Array | None = None,
    tolerance: float = 1e-6,
    max_sweeps: int = 200,
) -> EPResult:
    """Approximate N(f; mean, covariance) times one-sided labels by a Gaussian, for `b` problems.

    Parallel sweeps with Anderson acceleration. Problems are independent of each other and are left alone once they have
    converged. Labels that say nothing cost nothing.

    Args:
        mean, covariance: `b x n` and `b x n x n`, positive semi-definite.
        labels: of all problems; a width below `WIDTH_FLOOR` standard deviations counts as that.
        start: `2 x b x n`, site precisions and shifts to begin from.
        tolerance: summed mismatch of moments, in standard deviations, at which EP has converged.
        max_sweeps: before EP gives up and says so.

    Raises:
        NumericalError: a covariance is not positive semi-definite to double precision.
    """
    b, n = mean.shape
    sites = np.zeros((b, 2 * n)) if start is None else np.concatenate(start, -1)
    diagonal = np.diagonal(covariance, axis1=-2, axis2=-1)
    # A latent that cannot vary still has a distribution.
    prior = np.maximum(diagonal, np.maximum(1e-16 * diagonal.max(-1, initial=0.0, keepdims=True), 1e-200))
    widest = np.sqrt(prior.max(-1, initial=0.0, keepdims=True))
    width = np.maximum(labels.width, WIDTH_FLOOR * widest)
    huge = 1e3 * (widest + np.abs(mean).max(-1, initial=0.0, keepdims=True))
    limit = np.where(np.isinf(labels.limit), np.sign(labels.limit) * huge, labels.limit)
    lapse = np.broadcast_to(labels.lapse, (b, n))
    given = _Problems(mean - limit, covariance, prior, width, lapse, sites)
    first, same = given.distinct()
    found = _sweep(given.select(first), labels, tolerance, max_sweeps).select(same)
    return replace(found, mean=found.mean + limit)


@dataclass(frozen=True)
class _Problems(Batch):
    """What `b` problems begin with, relative to their limits."""

    mean: Array
    covariance: Array
    prior: Array
    width: Array
    lapse: Array
    sites: Array

    def distinct(self) -> tuple[Indices, Indices]:
        """The problems that differ, and for each problem its place among these.

        Margins that are independent of the values pose the same problem whatever the values' hyperparameters are.
        """
        places: dict[tuple[bytes, ...], int] = {}
        keys = [tuple(value[i].tobytes() for value in vars(self).values()) for i in range(len(self.mean))]
        same = np.array([places.setdefault(key, len(places)) for key in keys])
        return np.unique(same, return_index=True)[1], same


def _sweep(given: _Problems, labels: Labels, tolerance: float, max_sweeps: int) -> EPResult:
    """Sweep until every problem has converged; means are relative to the limits."""
    b, n = given.mean.shape
    left, x, accelerator = np.arange(b), given.sites, Anderson(b, 2 * n)
    found: EPResult | None = None
    sweeps = 0
    while True:
        sweeps += 1
        q = condition_on_sites(given.mean, given.covariance, given.prior, x[:, :n], x[:, n:])
        site = match_moments(q.cavity_mean, q.cavity_variance, labels.sign, given.width, given.lapse, labels.soft)
        change = _mismatch(q, site)
        done = change <= tolerance
        if sweeps >= _ROUNDING_AFTER:
            done |= change <= _rounding(given.covariance, q)
        out = np.flatnonzero(done | (sweeps >= max_sweeps))
        if len(out):
            now = _result(x, q, site, sweeps, change, done)
            found = found or now.select(left)  # room for all
            for name, value in vars(now).items():
                getattr(found, name)[left[out]] = value[out]
            if len(out) == len(left):
                return found
        x = _step(accelerator, q, x, site, change)
        if len(out):
            on = np.flatnonzero(~done)
            given, left, x = given.select(on), left[on], x[on]
            accelerator.keep(on)


def _result(x: Array, q: Marginals, site: Site, sweeps: int, change: Array, done: Bools) -> EPResult:
    precision, shift = np.split(x, 2, -1)
    log_z = site.log_mass.sum(-1) + q.log_normaliser
    sound, count = done & (log_z <= 1e-6), np.full(len(x), sweeps)
    moments = q.mean, q.variance, q.gradient, np.minimum(log_z, 0.0)
    return EPResult(precision, shift, *moments, site.kept, site.log_mass, count, change, sound)


def _mismatch(q: Marginals, site: Site) -> Array:
    """Summed difference between tilted and marginal moments, `b`.

    A sum, because sites at nearby points err together: n small gaps can hide a large one.
    """
    v = q.cavity_variance
    kept = 1 + v * site.precision
    tilted = q.cavity_mean + v * (site.shift - site.precision * q.cavity_mean) / kept
    mean_gap = np.abs(tilted - q.mean) / np.sqrt(q.variance)
    return np.maximum(mean_gap, np.abs(v / kept / q.variance - 1)).sum(-1)


def _rounding(covariance: Array, q: Marginals) -> Array:
    """Mismatch that rounding alone can cause where opposing labels nearly coincide, `b`."""
    error = 1e-15 * (np.abs(covariance) @ np.abs(q.gradient)[..., None])[..., 0]
    return np.minimum((error / np.sqrt(q.variance)).sum(-1), 1e-4)


def _step(accelerator: Anderson, q: Marginals, x: Array, site: Site, change: Array) -> Array:
    """Move the sites of every problem one accelerated step."""
    n = x.shape[-1] // 2
    target = np.concatenate([site.precision, site.shift], -1)
    scale = np.concatenate([q.variance, np.sqrt(q.variance)], -1)
    moved, plain = accelerator.propose(x, target - x, scale, change)
    # A precision must stay non-negative: where the extrapolation leaves the safe side, that site takes the plain
    # damped step. A weak site whose target is flat becomes exactly flat.
    low = 0.2 * np.minimum(plain[:, :n], site.precision)
    sound = (moved[:, :n] >= low) & np.isfinite(moved[:, n:])
    precision = np.maximum(np.where(sound, moved[:, :n], plain[:, :n]), 0.0)
    shift = np.where(sound, moved[:, n:], plain[:, n:])
    weak = (site.precision == 0) & (x[:, :n] * q.variance < 1e-3)
    if weak.any():
        precision = np.where(weak, 0.0, precision)
        shift = np.where(weak & (site.shift == 0), 0.0, shift)
    return np.concatenate([precision, shift], -1)
