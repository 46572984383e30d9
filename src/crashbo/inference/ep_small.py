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
    mean: Array
    variance: Array
    gradient: Array
    cavity_mean: Array
    cavity_variance: Array
    log_normaliser: float


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


def _marginals(mean: Array, covariance: Array, precision: Array, shift: Array, stiff_above: float) -> _Marginals:
    """`ep._marginals` in NumPy."""
    prior = covariance.diagonal()
    prior = np.maximum(prior, max(1e-16 * prior.max(), 1e-200))
    active = np.flatnonzero(precision > 0)
    if active.size == 0:
        return _Marginals(mean, prior, np.zeros_like(mean), mean, prior, 0.0)
    columns = covariance if active.size == mean.size else covariance[:, active]
    tau = precision[active]
    root = np.sqrt(tau)
    half = columns * root  # n x a, transposed below into LAPACK's order
    b = half[active] * root[:, None] if active.size != mean.size else half * root[:, None]
    b.flat[:: active.size + 1] += 1.0
    factor, info = lapack.dpotrf(b.T, lower=1, clean=0, overwrite_a=1)
    if info:
        raise NumericalError(
            "`covariance` must be positive semi-definite to double precision; the "
            "factorisation broke down. Add noise or a label width, or remove near-duplicates."
        )
    residual = shift[active] / root - root * mean[active]
    stacked, _ = lapack.dtrtrs(factor, np.concatenate([half, residual[None]]).T, lower=1, overwrite_b=1)
    half, white = stacked[:, :-1], stacked[:, -1]
    solved, _ = lapack.dtrtrs(factor, white, lower=1, trans=1)
    gradient_active = root * solved
    gradient = np.zeros_like(mean)
    gradient[active] = gradient_active
    variance = np.maximum(prior - np.einsum("ij,ij->j", half, half), 1e-14 * prior)
    cavity_variance = variance / np.maximum(1 - precision * variance, 1e-14)
    stiff = tau * prior[active] > stiff_above
    if stiff.any():
        inverse, _ = lapack.dtrtrs(factor, np.eye(active.size, order="F"), lower=1, overwrite_b=1)
        kept = np.einsum("ij,ij->j", inverse, inverse)
        loo = np.minimum(np.maximum(1 - kept, 1e-16) / (tau * kept), prior[active])
        cavity_variance[active[stiff]] = loo[stiff]
    cavity_variance = np.minimum(cavity_variance, prior)
    variance = cavity_variance / (1 + precision * cavity_variance)
    posterior_mean = mean + columns @ gradient_active
    v = cavity_variance[active]
    local = np.log1p(tau * v).sum() + (np.square(gradient_active) * (v + 1 / tau)).sum()
    log_det = 2 * np.log(factor.diagonal()).sum()
    cavity_mean = posterior_mean - cavity_variance * gradient
    return _Marginals(
        posterior_mean, variance, gradient, cavity_mean, cavity_variance, 0.5 * float(local - log_det - white @ white)
    )


class _Anderson:
    """`ep._Anderson` for one problem."""

    def __init__(self, damping: float, memory: int) -> None:
        self.step, self.memory, self.best = damping, memory, math.inf
        self.best_pair: tuple[Array, Array] | None = None
        self.last: tuple[Array, Array] | None = None
        self.dx: list[Array] = []
        self.df: list[Array] = []

    def propose(self, x: Array, f: Array, scale: Array, mismatch: float) -> tuple[Array, Array]:
        failed = False
        if self.last is not None and self.best_pair is not None:
            failed = mismatch > 3 * self.best
            if failed:
                x, f = self.best_pair
                self.step *= 0.5
                self.dx, self.df = [], []
            else:
                self.step = min(1.1 * self.step, 0.9)
                self.dx = [*self.dx, x - self.last[0]][-self.memory :]
                self.df = [*self.df, f - self.last[1]][-self.memory :]
        if mismatch <= self.best and not failed:
            self.best_pair, self.best = (x, f), mismatch
        self.last = (x, f)
        plain = x + self.step * f
        if not self.df:
            return plain, plain
        dx, df = np.array(self.dx), np.array(self.df)
        scaled = df * scale
        gram = scaled @ scaled.T
        diagonal = gram.diagonal()
        gram.flat[:: len(gram) + 1] += 1e-10 * diagonal.max() + 1e-300
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
    options = settings.options
    precision, shift = start
    accelerator = _Anderson(options.damping, options.memory)
    width2 = np.square(width)
    n = len(mean)
    sweeps, done = 0, False
    while True:
        q = _marginals(mean, covariance, precision, shift, settings.stiff_above)
        total = q.cavity_variance + width2
        deviation = np.sqrt(total)
        z = -sign * q.cavity_mean / deviation
        hazard, excess, shrinkage = truncation_small(z)
        kept = width2 + q.cavity_variance * shrinkage
        flat = hazard < 1e-16
        new_precision = np.where(flat, 0.0, hazard * excess / kept)
        new_shift = np.where(flat, 0.0, -sign * deviation * (excess - z * shrinkage) / kept)
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
        x = np.concatenate([precision, shift])
        target = np.concatenate([new_precision, new_shift])
        scale = np.concatenate([q.variance, root_variance])
        proposal, plain = accelerator.propose(x, target - x, scale, change)
        low = 0.2 * np.minimum(plain[:n], new_precision)
        bad = ~(proposal[:n] >= low) | ~np.isfinite(proposal[n:]) | ~np.isfinite(proposal[:n])
        weak = flat & (precision * q.variance < 1e-3)
        moved = np.where(bad, plain[:n], proposal[:n])
        shift = np.where(weak, 0.0, np.where(bad, plain[n:], proposal[n:]))
        precision = np.where(weak, 0.0, np.maximum(moved, 0.0))
    return SmallResult(
        precision,
        shift,
        q.mean,
        q.variance,
        q.gradient,
        float(log_ndtr(z).sum()) + q.log_normaliser,
        sweeps,
        change,
        done,
    )
