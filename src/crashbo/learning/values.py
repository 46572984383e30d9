"""The value's own hyperparameters, from the values alone: modes, and points around them to average over."""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import NumericalError
from crashbo.gp.evidence import log_evidence_of_values
from crashbo.gp.kernel import KernelName
from crashbo.gp.rows import Rows
from crashbo.learning.block import Block
from crashbo.learning.map import Mode, find_mode
from crashbo.learning.priors import log_value_prior, usual_values, value_bounds
from crashbo.learning.warp import Warp, make_warp
from crashbo.numbers import NUMBERS, Numbers

Array = NDArray[np.float64]
Rule = tuple[tuple[float, float], ...]
_STEP = 1e-3  # of the finite differences that give a Hessian
FIVE: Rule = ((1.355626, 0.2220759), (2.856970, 0.0112574))  # Gauss-Hermite nodes and weights beside the middle
THREE: Rule = ((1.732051, 0.1666667),)


@dataclass(frozen=True)
class ValuePoint:
    """The value's hyperparameters, with the log of their prior times the weight of the quadrature."""

    warp: Warp
    kernel: KernelName
    theta: Array
    log_prior: float


@dataclass(frozen=True)
class ValueMode:
    """The value's hyperparameters under one warp: Laplace's approximation of their posterior."""

    warp: Warp
    kernel: KernelName
    log_prior: float
    mode: Mode
    root: Array  # p x p, of the covariance; 0 where nothing is learned
    numbers: Numbers

    def height(self, block: Block) -> float:
        """Log posterior at the mode, comparable between warps."""
        return self.mode.log_posterior + self.log_prior + self.warp.log_jacobian(block.values)

    def centre(self) -> ValuePoint:
        """The mode alone."""
        if not self.root.any():
            return ValuePoint(self.warp, self.kernel, self.mode.theta, 0.0)
        log_prior, _ = log_value_prior(self.mode.theta, self.numbers)
        return ValuePoint(self.warp, self.kernel, self.mode.theta, self.log_prior + float(log_prior) + self.log_volume)

    @property
    def log_volume(self) -> float:
        """Log of the posterior's volume around the mode, in standard Gaussians."""
        return float(np.log(np.diagonal(self.root)).sum())

    def points(self, directions: int | None = None, rule: Rule | None = None) -> list[ValuePoint]:
        """The mode, and points on either side along the least certain directions of the lengthscales, and of the noise.

        Gaussian quadrature in these directions; the other hyperparameters move as they are expected to. Where Laplace's
        approximation is wrong the evidence at each point corrects its weight.

        Args:
            directions: how many; None: as many of the lengthscales as `Numbers.spread` says, and the noise.
            rule: along the first of them; None: that of five points.
        """
        if not self.root.any():
            return [self.centre()]
        d = len(self.mode.theta) - 2
        covariance = self.root @ self.root.T
        values, vectors = np.linalg.eigh(covariance[:d, :d])
        lengths = (covariance[:, :d] @ vectors / np.sqrt(values)).T[::-1]
        noise = covariance[:, -1:].T / math.sqrt(covariance[-1, -1])
        spread = min(d, self.numbers.spread)
        along = np.concatenate([lengths[:spread], noise])[:directions]
        coordinates, weights = _star(len(along), rule or FIVE)
        steps = coordinates @ along
        squared = np.square(coordinates).sum(-1)
        low, high = np.array(value_bounds(d)).T
        thetas = np.clip(self.mode.theta + steps, low, high)
        priors, _ = log_value_prior(thetas, self.numbers)
        logs = self.log_prior + priors + np.log(weights) + 0.5 * squared + self.log_volume
        return [ValuePoint(self.warp, self.kernel, theta, float(log)) for theta, log in zip(thetas, logs, strict=True)]


def _star(directions: int, first: Rule) -> tuple[Array, Array]:
    """Points and weights of a quadrature of a standard Gaussian along some directions, which share their middle.

    One Gauss-Hermite rule along the first direction, that of three points along the others.
    """
    if not directions:
        return np.zeros((1, 0)), np.ones(1)
    points, weights = [np.zeros(directions)], [1.0]
    for direction in range(directions):
        rule = first if direction == 0 else THREE
        for node, weight in rule:
            for sign in (1.0, -1.0):
                point = np.zeros(directions)
                point[direction] = sign * node
                points.append(point)
                weights.append(weight)
                weights[0] -= weight
    return np.array(points), np.maximum(weights, 0.1)


def fixed_values(block: Block) -> ValueMode:
    """Hyperparameters of the value that are not learned: one point, nothing around it."""
    fixed, d = block.fixed, block.X.shape[-1]
    assert fixed is not None
    theta = np.log([*[fixed.lengthscale] * d, fixed.variance, fixed.noise_std**2])
    return ValueMode(Warp(), fixed.kernel, 0.0, Mode(theta, 0.0, 0), np.zeros((d + 2, d + 2)), NUMBERS)


def value_modes(block: Block, numbers: Numbers) -> list[ValueMode]:
    """Laplace's approximation for the warps and kernels that the values support, the most probable first.

    All warps with the first kernel, then the other kernels with the most probable warp.
    """
    (kernel, share), *others = numbers.kernels
    found = [_value_mode(block, strength, kernel, prior * share, None, numbers) for strength, prior in numbers.warps]
    sound = _ordered(block, [one for one in found if one is not None])
    if not sound:
        raise NumericalError("no hyperparameters give the values a finite evidence.")
    best = sound[0]
    prior = dict(numbers.warps)[best.warp.strength]
    for kernel, share in others:
        other = _value_mode(block, best.warp.strength, kernel, prior * share, best.mode.theta, numbers)
        sound = sound if other is None else [*sound, other]
    ordered = _ordered(block, sound)
    least = ordered[0].height(block) + math.log(numbers.smallest_weight)
    return [one for one in ordered if one.height(block) > least]


def _ordered(block: Block, modes: list[ValueMode]) -> list[ValueMode]:
    return sorted(modes, key=lambda one: -one.height(block))


def _value_mode(
    block: Block, strength: float, kernel: KernelName, prior: float, start: Array | None, numbers: Numbers
) -> ValueMode | None:
    """Laplace's approximation under one warp and kernel; None where it has no sound one."""
    d, warp = block.X.shape[-1], make_warp(block.values, strength)
    if warp is None or prior <= 0:
        return None
    rows = _values_alone(block, warp(block.values))

    def log_posterior(theta: Array) -> tuple[float, Array]:
        value, gradient = _log_posteriors(rows, theta[None], kernel, numbers)
        return float(value[0]), gradient[0]

    mode = find_mode(log_posterior, usual_values(d) if start is None else start, value_bounds(d), precision=1e-4)
    if not math.isfinite(mode.log_posterior):
        return None
    return ValueMode(warp, kernel, math.log(prior), mode, _laplace_root(rows, mode, kernel, numbers), numbers)


def _values_alone(block: Block, values: Array) -> Rows:
    none = block.below[:0]
    points = np.arange(len(block.value_point))
    alone = replace(block, X=block.X[block.value_point], value_point=points, below=none, above=none, above_margin=none)
    return alone.rows(values)


def _log_posteriors(rows: Rows, thetas: Array, kernel: KernelName, numbers: Numbers) -> tuple[Array, Array]:
    """Log evidence of the values plus log prior, `b`, and gradients, `b x p`."""
    each = [log_evidence_of_values(rows, theta, kernel) for theta in thetas]
    evidence, slopes = (np.array(one) for one in zip(*each, strict=True))
    prior, by_prior = log_value_prior(thetas, numbers)
    return evidence + prior, slopes + by_prior


def _laplace_root(rows: Rows, mode: Mode, kernel: KernelName, numbers: Numbers) -> Array:
    """Root of the covariance of Laplace's approximation; no direction wider than the prior allows."""
    p = len(mode.theta)
    steps = np.concatenate([mode.theta + _STEP * np.eye(p), mode.theta - _STEP * np.eye(p)])
    _, slopes = _log_posteriors(rows, steps, kernel, numbers)
    hessian = (slopes[p:] - slopes[:p]) / (2 * _STEP)
    hessian = 0.5 * (hessian + hessian.T)
    values, vectors = np.linalg.eigh(hessian)
    widest = max(numbers.lengthscale[1] * math.sqrt(p), numbers.noise[1])
    deviations = 1 / np.sqrt(np.maximum(values, 1 / widest**2))
    # The factor of this product is lower triangular, its diagonal positive.
    _, upper = np.linalg.qr((vectors * deviations).T)
    return np.asarray(upper.T * np.sign(np.diagonal(upper)))
