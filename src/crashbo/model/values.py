"""The value's own hyperparameters, from the values alone: modes, and samples around them to average over.

Values are standardised, so it is their variation over the cube that has a variance near 1, not the GP: with long
lengthscales most of the GP's variance is a level that all points share. The vectors that are learned, `seen`, hold
logs of lengthscales, of the variance that shows as variation, and of the noise variance; `theta` has the GP's variance
instead. In these coordinates the posterior is closer to a Gaussian, and a bowl may be smooth and deep.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp, ndtri

from crashbo.errors import NumericalError
from crashbo.model.block import Block
from crashbo.model.inference import log_evidence_of_values
from crashbo.model.kernel import KERNELS, Kernel
from crashbo.model.map import (
    LogPosterior,
    Mode,
    find_mode,
    log_value_prior,
    log_varying_fraction,
    usual_values,
    value_bounds,
)
from crashbo.model.numbers import SAMPLES, WIDER, Numbers
from crashbo.model.rows import Rows
from crashbo.model.warp import Warp, make_warp
from crashbo.problem.arrays import Array, Indices
from crashbo.problem.sobol import sobol

_STEP = 1e-3  # of the finite differences that give a Hessian


@dataclass(frozen=True)
class ValuePoint:
    """The value's hyperparameters, with the log of their prior times the weight of the sample."""

    warp: Warp
    kernel: Kernel
    theta: Array
    log_prior: float


@dataclass(frozen=True)
class ValueMode:
    """The value's hyperparameters under one warp and kernel: Laplace's approximation of their posterior."""

    warp: Warp
    kernel: Kernel
    log_prior: float  # of warp and kernel
    height: float  # log posterior at the mode, comparable between warps
    mode: Mode
    root: Array  # p x p, of the covariance, lower triangular
    numbers: Numbers

    def centre(self) -> ValuePoint:
        """The mode alone."""
        log_prior, _ = log_value_prior(self.mode.theta, self.numbers)
        theta = to_theta(self.mode.theta)
        return ValuePoint(self.warp, self.kernel, theta, self.log_prior + float(log_prior) + self.log_volume)

    @property
    def log_volume(self) -> float:
        """Log of the posterior's volume around the mode, in standard Gaussians."""
        return float(np.log(np.diagonal(self.root)).sum())

    def sampled(self, block: Block) -> tuple[list[ValuePoint], Array]:
        """Quasi-random points of a Gaussian somewhat wider than Laplace's approximation, by lengthscale.

        Returns:
            the points, whose weight makes up for how often they are sampled, and their log posterior.
        """
        p = len(self.mode.theta)
        steps = WIDER * ndtri(np.clip(sobol(SAMPLES, p, 0), 1e-6, 1 - 1e-6))
        low, high = np.array(value_bounds(p - 2)).T
        seen = self.mode.theta + steps @ self.root.T
        inside = np.flatnonzero(((low <= seen) & (seen <= high)).all(-1))
        if not len(inside):  # many modes at their bounds: half of the samples are lost for each
            seen, inside = np.clip(seen, low, high), np.arange(len(seen))
        order = inside[np.argsort(seen[inside, :-2].sum(-1), kind="stable")]
        seen, steps = seen[order], steps[order]
        priors, _ = log_value_prior(seen, self.numbers)
        volume = self.log_volume + p * math.log(WIDER) - math.log(SAMPLES)
        logs = self.log_prior + priors + 0.5 * np.square(steps / WIDER).sum(-1) + volume
        rows, jacobian = _values_alone(block, self.warp(block.values)), self.warp.log_jacobian(block.values)
        thetas = to_theta(seen)
        evidence = np.array([_log_evidence(rows, theta, self.kernel) for theta in thetas])
        points = [ValuePoint(self.warp, self.kernel, one, float(log)) for one, log in zip(thetas, logs, strict=True)]
        return points, logs + evidence + jacobian


def value_points(block: Block, modes: list[ValueMode], numbers: Numbers) -> list[ValuePoint]:
    """Hyperparameters that stand for the posterior given the values: importance sampling around the modes.

    Of all that were sampled a few are kept by systematic sampling; given the values these are equally probable.
    """
    if numbers.most_models == 1:
        return [modes[0].centre()]
    found = [mode.sampled(block) for mode in modes]
    points, logs = [point for some, _ in found for point in some], np.concatenate([log for _, log in found])
    total = float(logsumexp(logs))
    chosen, shares = systematic(np.exp(logs - total), numbers.most_models)
    shifts = total - logs[chosen] + np.log(shares)
    return [
        replace(points[i], log_prior=points[i].log_prior + float(shift))
        for i, shift in zip(chosen.tolist(), shifts, strict=True)
    ]


def systematic(weights: Array, count: int) -> tuple[Indices, Array]:
    """At most so many of the entries of weights that add up to 1, and the share of each: systematic sampling."""
    drawn = np.searchsorted(np.cumsum(weights), (np.arange(count) + 0.5) / count)
    chosen, times = np.unique(np.minimum(drawn, len(weights) - 1), return_counts=True)
    return chosen, times / count


def fixed_values(block: Block) -> ValuePoint:
    """Hyperparameters of the value that are not learned."""
    fixed, d = block.fixed, block.X.shape[-1]
    assert fixed is not None
    theta = np.log([*[fixed.lengthscale] * d, fixed.variance, fixed.noise_std**2])
    return ValuePoint(Warp(), KERNELS[fixed.kernel], theta, 0.0)


def value_modes(block: Block, numbers: Numbers) -> list[ValueMode]:
    """Laplace's approximation for the warps and kernels that the values support, the most probable first.

    All warps with the first kernel, then the other kernels with the most probable warp.
    """
    (kernel, share), *others = ((KERNELS[name], share) for name, share in numbers.kernels)
    found = [_value_mode(block, strength, kernel, prior * share, None, numbers) for strength, prior in numbers.warps]
    sound = [one for one in found if one is not None]
    if not sound:
        raise NumericalError("no hyperparameters give the values a finite evidence.")
    best = max(sound, key=lambda one: one.height)
    strength, prior = best.warp.strength, dict(numbers.warps)[best.warp.strength]
    found += [_value_mode(block, strength, one, prior * share, best.mode.theta, numbers) for one, share in others]
    ordered = sorted((one for one in found if one is not None), key=lambda one: -one.height)
    least = ordered[0].height + math.log(numbers.smallest_weight)
    return [one for one in ordered if one.height > least]


def _value_mode(
    block: Block, strength: float, kernel: Kernel, prior: float, start: Array | None, numbers: Numbers
) -> ValueMode | None:
    """Laplace's approximation under one warp and kernel; None where it has no sound one."""
    d, warp = block.X.shape[-1], make_warp(block.values, strength)
    if warp is None or prior <= 0:
        return None
    rows = _values_alone(block, warp(block.values))

    def log_posterior(seen: Array) -> tuple[float, Array]:
        evidence, slope = log_evidence_of_values(rows, to_theta(seen), kernel)
        slope[:-2] -= slope[-2] * log_varying_fraction(seen[:-2])[1]
        log_prior, by_prior = log_value_prior(seen, numbers)
        return evidence + float(log_prior), slope + by_prior

    mode = find_mode(log_posterior, usual_values(d) if start is None else start, value_bounds(d), precision=1e-4)
    if not math.isfinite(mode.log_posterior):
        return None
    height = mode.log_posterior + math.log(prior) + warp.log_jacobian(block.values)
    root = _laplace_root(log_posterior, mode.theta, numbers)
    return ValueMode(warp, kernel, math.log(prior), height, mode, root, numbers)


def _laplace_root(log_posterior: LogPosterior, mode: Array, numbers: Numbers) -> Array:
    """Root of the covariance of Laplace's approximation; no direction wider than the prior allows."""
    steps = _STEP * np.eye(len(mode))
    down, up = (np.array([log_posterior(one)[1] for one in ends]) for ends in (mode - steps, mode + steps))
    hessian = (down - up) / (2 * _STEP)
    values, vectors = np.linalg.eigh(0.5 * (hessian + hessian.T))
    widest = max(numbers.lengthscale[1] * math.sqrt(len(mode)), numbers.noise[1])
    deviations = 1 / np.sqrt(np.maximum(values, 1 / widest**2))
    # The factor of this product is lower triangular, its diagonal positive.
    _, upper = np.linalg.qr((vectors * deviations).T)
    return np.asarray(upper.T * np.sign(np.diagonal(upper)))


def _values_alone(block: Block, values: Array) -> Rows:
    k, none = len(block.values), block.below[:0]
    return Rows(block.X[block.value_point], np.arange(k), np.zeros(k, np.int64), values, none, none, np.zeros(0))


def to_theta(seen: Array) -> Array:
    """Hyperparameters of the GP, `... x p`, from the vectors that are learned."""
    theta = seen.copy()
    theta[..., -2] -= log_varying_fraction(seen[..., :-2])[0]
    return theta


def _log_evidence(rows: Rows, theta: Array, kernel: Kernel) -> float:
    """Of the values; -inf where it cannot be computed."""
    try:
        return log_evidence_of_values(rows, theta, kernel)[0]
    except NumericalError:
        return -math.inf
