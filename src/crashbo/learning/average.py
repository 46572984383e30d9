"""The weighted set of hyperparameters that every prediction and every decision is averaged over."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crashbo.errors import NumericalError
from crashbo.gp.inference import Posterior, evidence_gradient, infer
from crashbo.gp.prediction import Predictor
from crashbo.gp.kernel import KernelName
from crashbo.gp.rows import Hyperparameters, Rows
from crashbo.learning.block import Block, Relations
from crashbo.learning.map import Mode, find_mode
from crashbo.learning.priors import log_value_prior, usual_values, value_bounds
from crashbo.learning.warp import Warp, make_warp
from crashbo.numbers import NUMBERS, Numbers

Array = NDArray[np.float64]
Pair = tuple["_Point", "_Relation"]
Sites = tuple[Array, Array]
_TOLERANCE, _SWEEPS = 1e-3, 60  # of EP
_STEP = 1e-3  # of the finite differences that give a Hessian
_AFFORDED = 600  # models times trials
_COMBINATIONS = 27  # of the relations of several margins
Rule = tuple[tuple[float, float], ...]
_FIVE: Rule = ((1.355626, 0.2220759), (2.856970, 0.0112574))  # Gauss-Hermite nodes and weights beside the middle
_THREE: Rule = ((1.732051, 0.1666667),)


@dataclass(frozen=True)
class Candidates:
    """Hyperparameters to be weighed, `b` of them.

    Attributes:
        at: the settings.
        warps: of the values.
        log_prior: `b`, of all of them, times the weight of the quadrature that they belong to.
    """

    at: Hyperparameters
    warps: tuple[Warp, ...]
    log_prior: Array

    def __len__(self) -> int:
        return len(self.log_prior)

    def affordable(self, trials: int) -> "Candidates":
        """As many of them as can be kept up with so many trials."""
        return self.select(np.arange(min(len(self), max(1, _AFFORDED // trials))))

    def select(self, index: NDArray[np.int64]) -> "Candidates":
        """Some of them."""
        return Candidates(self.at.select(index), tuple(self.warps[i] for i in index.tolist()), self.log_prior[index])


@dataclass(frozen=True)
class ModelSet:
    """Posteriors of one output under several hyperparameters, with their weights.

    Attributes:
        block: the trials.
        candidates: the hyperparameters.
        posterior: `b`, in the units of each warp.
        weights: `b`, they add up to 1.
        log_evidence: of all of them together, up to a constant that depends on the candidates alone.
    """

    block: Block
    candidates: Candidates
    posterior: Posterior
    weights: Array
    log_evidence: float

    @property
    def warps(self) -> tuple[Warp, ...]:
        """Of the values."""
        return self.candidates.warps

    @property
    def correlation(self) -> Array:
        """`b x margins`, of value and margin."""
        return self.posterior.at.mixing[:, 1:, 0]

    def limits(self) -> tuple[Array, Array]:
        """Mean and standard deviation of the limits, `b x margins` each, in prior standard deviations of the value."""
        at, m = self.posterior.at, self.block.margins
        mean, deviation = at.threshold[:, 1:].copy(), np.zeros_like(at.threshold[:, 1:])
        own = 0 if self.block.self_limited else m
        if at.mixing.shape[-1] > 1 + own:
            picked = np.zeros((len(mean), m, at.mixing.shape[-1]))
            margin = np.arange(m)
            picked[:, margin, 1 + own + margin] = -at.mixing[:, 1 + margin, 1 + own + margin]
            q = Predictor(self.posterior, picked)(self.block.X[:1])
            mean, deviation = mean + q.mean[..., 0], np.sqrt(q.variance[..., 0])
        return mean, deviation


def learn(block: Block, numbers: Numbers = NUMBERS) -> Candidates:
    """Find the hyperparameters that matter, a pure function of the trials.

    First the value's own, from the values alone: the mode for every warp, and points around it by Laplace's approximation.
    Then, in three rounds that each go on with what counts so far: all relations of margins and value; lapse rates and
    warps; points around the modes. Each candidate is weighed by its evidence.
    """
    return _resample(weigh_all(block, numbers), numbers.most_models)


def weigh_all(block: Block, numbers: Numbers = NUMBERS) -> "ModelSet":
    """All candidates that matter, with their weights; see `learn`."""
    modes = [_fixed_values(block)] if block.fixed is not None else _value_modes(block, numbers)
    best = modes[0]
    pairs = [(best.centre(), relation) for relation in _relations(block, best.centre(), numbers)]
    pairs, start = _best(block, pairs, None, numbers)
    if len(block.above):
        pairs = [(one, relation.lapsing(lapse, prior)) for one, relation in pairs for lapse, prior in numbers.lapses]
        pairs, start = _best(block, pairs, _repeat(start, len(numbers.lapses)), numbers)
    points = best.points() + [point for mode in modes[1:] for point in mode.points(directions=1, rule=_THREE)]
    spread = [(point, relation) for _, relation in pairs for point in points]
    return weigh(_assemble(block, spread, numbers), block, _repeat(start, len(points)))


def _resample(found: "ModelSet", count: int) -> Candidates:
    """Few candidates that stand for all, the heaviest first: systematic sampling of the weights, by relation.

    Taking the heaviest alone would leave out what many light ones agree on.
    """
    at = found.posterior.at
    order = np.lexsort((at.lengthscale[:, 0].mean(-1), at.lapse, at.lengthscale[:, min(1, at.lengthscale.shape[1] - 1)].mean(-1), at.mixing[:, -1, 0]))
    drawn = np.searchsorted(np.cumsum(found.weights[order]), (np.arange(count) + 0.5) / count)
    chosen, times = np.unique(order[np.minimum(drawn, len(order) - 1)], return_counts=True)
    heaviest = np.argsort(-times, kind="stable")
    chosen, times = chosen[heaviest], times[heaviest]
    kept = found.candidates.select(chosen)
    shift = np.log(times / count) - np.log(np.maximum(found.weights[chosen], 1e-300))
    return replace(kept, log_prior=kept.log_prior + shift)


def _best(block: Block, pairs: list[Pair], start: Sites | None, numbers: Numbers) -> tuple[list[Pair], Sites]:
    """The candidates that count, with EP's sites."""
    found = weigh(_assemble(block, pairs, numbers), block, start)
    used = _largest(found.weights, 0.5 * numbers.smallest_weight, numbers.most_models)
    kept = [pairs[i] for i in used.tolist()]
    return kept, (found.posterior.ep.precision[used], found.posterior.ep.shift[used])


def _repeat(sites: Sites, times: int) -> Sites:
    return np.repeat(sites[0], times, 0), np.repeat(sites[1], times, 0)


def weigh(candidates: Candidates, block: Block, start: Sites | None = None) -> ModelSet:
    """The posteriors and weights of candidates, given trials."""
    values = np.stack([warp(block.values) for warp in candidates.warps])
    posterior = infer(block.rows(values), candidates.at, start=start, tolerance=_TOLERANCE, max_sweeps=_SWEEPS)
    jacobian = np.array([warp.log_jacobian(block.values) for warp in candidates.warps])
    log_weight = posterior.log_evidence + candidates.log_prior + jacobian
    log_weight = np.where(np.isfinite(log_weight), log_weight, -math.inf)
    if not np.isfinite(log_weight).any():
        raise NumericalError("no hyperparameters give the trials a finite evidence.")
    total = float(logsumexp(log_weight))
    return ModelSet(block, candidates, posterior, np.exp(log_weight - total), total)


def _largest(weights: Array, smallest: float, most: int) -> NDArray[np.int64]:
    """The heaviest entries, heaviest first."""
    order = np.argsort(-weights, kind="stable")[:most]
    return order[weights[order] >= min(smallest, weights.max())]


@dataclass(frozen=True)
class _Values:
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

    def centre(self) -> "_Point":
        """The mode alone."""
        if not self.root.any():
            return _Point(self.warp, self.kernel, self.mode.theta, 0.0)
        log_prior, _ = log_value_prior(self.mode.theta, self.numbers)
        return _Point(self.warp, self.kernel, self.mode.theta, self.log_prior + float(log_prior) + self.log_volume)

    @property
    def log_volume(self) -> float:
        """Log of the posterior's volume around the mode, in standard Gaussians."""
        return float(np.log(np.diagonal(self.root)).sum())

    def points(self, directions: int | None = None, rule: "Rule | None" = None) -> list["_Point"]:
        """The mode, and points on either side along the least certain directions of the lengthscales.

        Gaussian quadrature in these directions; the other hyperparameters move as they are expected to. Where Laplace's
        approximation is wrong the evidence at each point corrects its weight.

        Args:
            directions: how many; None: as many as `Numbers.spread` says.
            rule: along the first of them; None: that of five points.
        """
        if not self.root.any():
            return [self.centre()]
        d = len(self.mode.theta) - 2
        covariance = self.root @ self.root.T
        values, vectors = np.linalg.eigh(covariance[:d, :d])
        along = (covariance[:, :d] @ vectors / np.sqrt(values)).T[::-1]
        count = self.numbers.spread if directions is None else min(directions, self.numbers.spread)
        coordinates, weights = _star(min(d, count), rule or _FIVE)
        steps = coordinates @ along[: coordinates.shape[-1]]
        squared = np.square(coordinates).sum(-1)
        low, high = np.array(value_bounds(d)).T
        thetas = np.clip(self.mode.theta + steps, low, high)
        priors, _ = log_value_prior(thetas, self.numbers)
        logs = self.log_prior + priors + np.log(weights) + 0.5 * squared + self.log_volume
        return [_Point(self.warp, self.kernel, theta, float(log)) for theta, log in zip(thetas, logs, strict=True)]


def _star(directions: int, first: "Rule") -> tuple[Array, Array]:
    """Points and weights of a quadrature of a standard Gaussian along some directions, which share their middle.

    One Gauss-Hermite rule along the first direction, that of three points along the others.
    """
    if not directions:
        return np.zeros((1, 0)), np.ones(1)
    points, weights = [np.zeros(directions)], [1.0]
    for direction in range(directions):
        rule = first if direction == 0 else _THREE
        for node, weight in rule:
            for sign in (1.0, -1.0):
                point = np.zeros(directions)
                point[direction] = sign * node
                points.append(point)
                weights.append(weight)
                weights[0] -= weight
    return np.array(points), np.maximum(weights, 0.1)


def _fixed_values(block: Block) -> _Values:
    """Hyperparameters of the value that are not learned: one point, nothing around it."""
    fixed, d = block.fixed, block.X.shape[-1]
    assert fixed is not None
    theta = np.log([*[fixed.lengthscale] * d, fixed.variance, fixed.noise_std**2])
    return _Values(Warp(), fixed.kernel, 0.0, Mode(theta, 0.0, 0), np.zeros((d + 2, d + 2)), NUMBERS)


@dataclass(frozen=True)
class _Point:
    """The value's hyperparameters, with the log of their prior times the weight of the quadrature."""

    warp: Warp
    kernel: KernelName
    theta: Array
    log_prior: float


def _value_modes(block: Block, numbers: Numbers) -> list[_Values]:
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


def _ordered(block: Block, modes: list[_Values]) -> list[_Values]:
    return sorted(modes, key=lambda one: -one.height(block))


def _value_mode(
    block: Block, strength: float, kernel: KernelName, prior: float, start: Array | None, numbers: Numbers
) -> _Values | None:
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
    return _Values(warp, kernel, math.log(prior), mode, _laplace_root(rows, mode, kernel, numbers), numbers)


def _values_alone(block: Block, values: Array) -> Rows:
    return replace(block, below=block.below[:0], above=block.above[:0], above_margin=block.above[:0]).rows(values)


def _settings(thetas: Array, kernel: KernelName) -> Hyperparameters:
    """Of a standard GP."""
    b = len(thetas)
    return Hyperparameters(
        np.exp(thetas[:, None, :-2]),
        np.exp(0.5 * thetas[:, -2])[:, None, None],
        np.exp(thetas[:, -1:]),
        np.zeros((b, 1)),
        np.zeros(b),
        kernel,
    )


def _log_posteriors(rows: Rows, thetas: Array, kernel: KernelName, numbers: Numbers) -> tuple[Array, Array]:
    """Log evidence of the values plus log prior, `b`, and gradients, `b x p`."""
    posterior = infer(rows, _settings(thetas, kernel))
    slope = evidence_gradient(posterior)
    prior, by_prior = log_value_prior(thetas, numbers)
    by_variance = 0.5 * slope.mixing[:, 0] * np.exp(0.5 * thetas[:, -2:-1])
    gradient = np.concatenate([slope.log_lengthscale[:, 0], by_variance, slope.log_noise], -1)
    return posterior.log_evidence + prior, gradient + by_prior


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


@dataclass(frozen=True)
class _Relation:
    """How margins relate to the value.

    Attributes:
        correlation: `margins`.
        lengthscale: `margins x d`.
        lapse: rate of random crashes.
        log_prior: of all this.
    """

    correlation: Array
    lengthscale: Array
    lapse: float
    log_prior: float

    def lapsing(self, lapse: float, prior: float) -> "_Relation":
        """The same with another lapse rate."""
        return replace(self, lapse=lapse, log_prior=self.log_prior + math.log(prior))


def _relations(block: Block, point: _Point, numbers: Numbers) -> list[_Relation]:
    """All relations to try, at the smallest lapse rate; of several margins those that count for each on its own."""
    if block.margins <= 1:
        return _one_margin(block, numbers)
    each = []
    for margin in range(block.margins):
        single = block.single(margin)
        pairs = [(point, relation) for relation in _one_margin(single, numbers)]
        kept, _ = _best(single, pairs, None, numbers)
        each.append([relation for _, relation in kept[:3]])
    return [_joined(combination) for combination in itertools.islice(itertools.product(*each), _COMBINATIONS)]


def _joined(relations: tuple[_Relation, ...]) -> _Relation:
    """The relations of several margins as one."""
    return _Relation(
        np.concatenate([one.correlation for one in relations]),
        np.concatenate([one.lengthscale for one in relations]),
        relations[0].lapse,
        sum(one.log_prior for one in relations),
    )


def _one_margin(block: Block, numbers: Numbers) -> list[_Relation]:
    d, m = block.X.shape[-1], block.margins
    centre = math.exp(numbers.lengthscale[0]) * math.sqrt(d)
    lapse = numbers.lapses[0][0]
    if m == 0:
        return [_Relation(np.zeros(0), np.zeros((0, d)), lapse, 0.0)]
    unrelated = not len(block.values) or not len(block.above)
    correlations = ((1.0, 1.0),) if block.self_limited else ((0.0, 1.0),) if unrelated else numbers.correlations
    factors = ((1.0, 1.0),) if block.self_limited else numbers.margin_lengthscales
    return [
        _Relation(np.full(m, rho), np.full((m, d), centre * factor), lapse, math.log(a * b))
        for (rho, a), (factor, b) in itertools.product(correlations, factors)
        if a * b > 0
    ]


def _assemble(block: Block, pairs: list[Pair], numbers: Numbers) -> Candidates:
    thetas = np.stack([point.theta for point, _ in pairs])
    relations = Relations(
        np.stack([relation.correlation for _, relation in pairs]),
        np.stack([relation.lengthscale for _, relation in pairs]),
        np.array([relation.lapse for _, relation in pairs]),
    )
    mean, deviation = _threshold_prior(block, numbers)
    threshold = np.full((len(pairs), block.margins), mean)
    if block.threshold is not None:
        known = np.array([float(point.warp(np.array(block.threshold))) for point, _ in pairs])
        threshold, deviation = (known / np.exp(0.5 * thetas[:, -2]))[:, None], 0.0
    at = block.hyperparameters(thetas, relations, threshold, deviation, tuple(point.kernel for point, _ in pairs))
    log_prior = np.array([point.log_prior + relation.log_prior for point, relation in pairs])
    return Candidates(at, tuple(point.warp for point, _ in pairs), log_prior)


def _threshold_prior(block: Block, numbers: Numbers) -> tuple[float, float]:
    """Mean and standard deviation of the limits, in prior standard deviations of what they limit."""
    if block.fixed is None or not block.self_limited or block.fixed.threshold_prior is None:
        return numbers.threshold
    scale = math.sqrt(block.fixed.variance)
    return block.fixed.threshold_prior[0] / scale, block.fixed.threshold_prior[1] / scale
