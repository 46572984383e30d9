"""The same EP as `ep.py` for one small problem on the CPU, in NumPy.

With a hundred trials or fewer, torch spends its time dispatching operations, not computing.
This twin makes the identical sweeps several times faster; tests hold the two equal.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack
from scipy.special import erfcx, log_ndtr

from crashbo.errors import NumericalError
from crashbo.inference.tilted import SERIES_BELOW

Array = NDArray[np.float64]


class SmallSettings(NamedTuple):
    """The options and constants of `ep.py`, so that both make the same decisions."""

    options: Any
    stiff_above: float
    rounding_after: int


class _Marginals(NamedTuple):
    """Posterior and cavities under the sites; the last four belong to the sites that say something."""

    mean: Array
    variance: Array
    gradient: Array
    cavity_mean: Array
    cavity_variance: Array
    active: Any
    precision: Array
    factor: Array
    white: Array

    def log_normaliser(self) -> float:
        """Of the Gaussian with all sites, relative to the cavities."""
        if self.white.size == 0:
            return 0.0
        tau, v = self.precision, self.cavity_variance[self.active]
        local = np.log1p(tau * v).sum() + (np.square(self.gradient[self.active]) * (v + 1 / tau)).sum()
        log_det = 2 * np.log(self.factor.diagonal()).sum()
        return 0.5 * float(local - log_det - self.white @ self.white)


@dataclass
class SmallResult:
    """Raw outcome of `ep_small`; fields as in `EPResult`, relative to the limit."""

    site_precision: Array
    site_shift: Array
    mean: Array
    variance: Array
    gradient: Array
    log_partition: float
    sweeps: int
    last_change: float
    converged: bool

    @classmethod
    def silent(cls, n: int) -> "SmallResult":
        """Of labels that say nothing."""
        zero = np.zeros(n)
        return cls(zero, zero, zero, zero, zero, 0.0, 0, 0.0, True)


def truncation_small(z: Array) -> tuple[Array, Array, Array]:
    """`tilted.truncation` in NumPy."""
    hazard = math.sqrt(2.0 / math.pi) / erfcx(z * -math.sqrt(0.5))
    excess = hazard + z
    shrinkage = 1.0 - hazard * excess
    if z.size and z.min() < SERIES_BELOW:
        tail = z < SERIES_BELOW
        far = z[tail]
        t = 1.0 / np.square(far)
        excess[tail] = (1 + t * (-2 + t * (10 + t * (-74 + t * (706 - 8162 * t))))) / -far
        shrinkage[tail] = t * (1 + t * (-6 + t * (50 + t * (-518 + 6354 * t))))
        hazard[tail] = excess[tail] - far
    return hazard, excess, shrinkage


def _marginals(
    mean: Array, covariance: Array, prior: Array, precision: Array, shift: Array, stiff_above: float
) -> _Marginals:
    """`ep._marginals` in NumPy; `prior` are the variances, kept above 0."""
    n = mean.size
    active: Any = slice(None) if precision.min() > 0 else np.flatnonzero(precision > 0)
    columns, tau, here = covariance[:, active], precision[active], mean[active]
    if tau.size == 0:
        none = np.zeros(0)
        return _Marginals(mean, prior, np.zeros(n), mean, prior, active, none, none, none)
    root = np.sqrt(tau)
    stacked = np.empty((n + 1, tau.size))  # transposed below into LAPACK's order
    half = np.multiply(columns, root, out=stacked[:n])
    stacked[n] = shift[active] / root - root * here
    b = half[active] * root[:, None]
    b.flat[:: tau.size + 1] += 1.0
    factor, info = lapack.dpotrf(b.T, lower=1, clean=0, overwrite_a=1)
    if info:
        raise NumericalError(
            "`covariance` must be positive semi-definite to double precision; the "
            "factorisation broke down. Add noise or a label width, or remove near-duplicates."
        )
    solved, _ = lapack.dtrtrs(factor, stacked.T, lower=1, overwrite_b=1)
    half, white = solved[:, :-1], solved[:, -1]
    gradient_active = root * lapack.dtrtrs(factor, white, lower=1, trans=1)[0]
    gradient = np.zeros(n)
    gradient[active] = gradient_active
    variance = np.maximum(prior - np.einsum("ij,ij->j", half, half), 1e-14 * prior)
    cavity_variance = variance / np.maximum(1 - precision * variance, 1e-14)
    strength = tau * prior[active]
    if strength.max() > stiff_above:
        stiff = strength > stiff_above
        inverse, _ = lapack.dtrtrs(factor, np.eye(tau.size, order="F"), lower=1, overwrite_b=1)
        kept = np.einsum("ij,ij->j", inverse, inverse)
        loo = np.minimum(np.maximum(1 - kept, 1e-16) / (tau * kept), prior[active])
        cavity_variance[np.arange(n)[active][stiff]] = loo[stiff]
    cavity_variance = np.minimum(cavity_variance, prior)
    variance = cavity_variance / (1 + precision * cavity_variance)
    posterior_mean = mean + columns @ gradient_active
    cavity_mean = posterior_mean - cavity_variance * gradient
    return _Marginals(posterior_mean, variance, gradient, cavity_mean, cavity_variance, active, tau, factor, white)


class _Anderson:
    """`ep._Anderson` for one problem."""

    def __init__(self, damping: float, memory: int, size: int) -> None:
        self.step, self.best, self.count = damping, math.inf, 0
        self.best_pair: tuple[Array, Array] | None = None
        self.last: tuple[Array, Array] | None = None
        self.dx, self.df = np.empty((memory, size)), np.empty((memory, size))

    def propose(self, x: Array, f: Array, scale: Array, mismatch: float) -> tuple[Array, Array]:
        failed = False
        if self.last is not None and self.best_pair is not None:
            failed = mismatch > 3 * self.best
            if failed:
                x, f = self.best_pair
                self.step *= 0.5
                self.count = 0
            else:
                self.step = min(1.1 * self.step, 0.9)
                if self.count == len(self.dx):
                    self.dx[:-1], self.df[:-1] = self.dx[1:], self.df[1:]
                    self.count -= 1
                self.dx[self.count], self.df[self.count] = x - self.last[0], f - self.last[1]
                self.count += 1
        if mismatch <= self.best and not failed:
            self.best_pair, self.best = (x, f), mismatch
        self.last = (x, f)
        plain = x + self.step * f
        if not self.count:
            return plain, plain
        dx, df = self.dx[: self.count], self.df[: self.count]
        scaled = df * scale
        gram = scaled @ scaled.T
        gram.flat[:: len(gram) + 1] += 1e-10 * gram.diagonal().max() + 1e-300
        _, gamma, info = lapack.dposv(gram, scaled @ (f * scale), lower=1)
        if info:
            return plain, plain
        return plain - gamma @ (dx + self.step * df), plain


def ep_small(
    mean: Array, covariance: Array, sign: Array, width: Array, start: tuple[Array, Array], settings: SmallSettings
) -> SmallResult:
    """Run EP on one problem whose limits are at 0.

    Args:
        mean, sign, width: `n`.
        covariance: `n x n`, C order.
        start: site precisions and shifts.
        settings: the constants of `ep.py`, so that both make the same decisions.
    """
    options, n = settings.options, len(mean)
    sites = np.concatenate(start)
    accelerator = _Anderson(options.damping, options.memory, 2 * n)
    width2, flip = np.square(width), -sign
    prior = covariance.diagonal()
    prior = np.maximum(prior, max(1e-16 * prior.max(initial=0.0), 1e-200))
    sweeps, done = 0, False
    while True:
        precision, shift = sites[:n], sites[n:]
        q = _marginals(mean, covariance, prior, precision, shift, settings.stiff_above)
        deviation = np.sqrt(q.cavity_variance + width2)
        z = flip * q.cavity_mean / deviation
        hazard, excess, shrinkage = truncation_small(z)
        kept = width2 + q.cavity_variance * shrinkage
        target = np.empty(2 * n)
        new_precision, new_shift = target[:n], target[n:]
        np.divide(hazard * excess, kept, out=new_precision)
        np.divide(flip * deviation * (excess - z * shrinkage), kept, out=new_shift)
        flat = hazard < 1e-16 if hazard.min(initial=1.0) < 1e-16 else None
        if flat is not None:
            new_precision[flat] = new_shift[flat] = 0.0
        ratio = 1 + q.cavity_variance * new_precision
        tilted = q.cavity_mean + q.cavity_variance * (new_shift - new_precision * q.cavity_mean) / ratio
        root_variance = np.sqrt(q.variance)
        mean_gap = np.abs(tilted - q.mean) / root_variance
        change = float(np.maximum(mean_gap, np.abs(q.cavity_variance / ratio / q.variance - 1)).sum())
        sweeps += 1
        done = change <= options.tolerance
        if not done and sweeps >= settings.rounding_after:
            rounding = 1e-15 * (np.abs(covariance) @ np.abs(q.gradient)) / root_variance
            done = change <= min(float(rounding.sum()), 1e-4)
        if done or sweeps >= options.max_sweeps:
            break
        scale = np.concatenate([q.variance, root_variance])
        moved, plain = accelerator.propose(sites, target - sites, scale, change)
        good = moved[:n] >= 0.2 * np.minimum(plain[:n], new_precision)
        if not (good.all() and math.isfinite(moved.sum())):
            bad = ~good | ~np.isfinite(moved[n:]) | ~np.isfinite(moved[:n])
            moved = np.where(np.concatenate([bad, bad]), plain, moved)
        np.maximum(moved[:n], 0.0, out=moved[:n])
        if flat is not None:
            weak = flat & (precision * q.variance < 1e-3)
            moved[:n][weak] = moved[n:][weak] = 0.0
        sites = moved
    return SmallResult(
        precision,
        shift,
        q.mean,
        q.variance,
        q.gradient,
        float(log_ndtr(z).sum()) + q.log_normaliser(),
        sweeps,
        change,
        done,
    )
