"""The weighted set of hyperparameters that every prediction and every decision is averaged over."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from crashbo.arrays import Array, Indices
from crashbo.errors import NumericalError
from crashbo.gp.inference import Posterior, infer
from crashbo.gp.rows import Hyperparameters, Rows
from crashbo.learning.block import Block, Relations
from crashbo.learning.priors import log_visible_share
from crashbo.learning.values import ValuePoint, fixed_values, systematic, value_modes, value_points
from crashbo.learning.warp import Warp
from crashbo.numbers import NUMBERS, Numbers

_TOLERANCE, _SWEEPS = 1e-3, 60  # of EP
_AFFORDED = 320  # models times trials
_GOLDEN = 0.618034  # its multiples, less whole numbers, are spread evenly
_COMBINATIONS = 27  # of the relations of several margins


@dataclass(frozen=True)
class KnownSites:
    """EP's sites by place, `2 x b x outputs x n` (0 where there was no label), to begin from with more trials."""

    by_place: Array

    @classmethod
    def of(cls, posterior: Posterior) -> "KnownSites":
        """Those of posteriors, by output and point."""
        rows = posterior.rows
        by_place = np.zeros((2, len(posterior), posterior.at.mixing.shape[1], len(rows.X)))
        by_place[:, :, rows.label_output, rows.label_point] = posterior.ep.sites
        return cls(by_place)

    def start(self, rows: Rows) -> Array:
        """For the labels of rows whose first points are those known here, `2 x b x m`; new labels begin at 0."""
        known = np.flatnonzero(rows.label_point < self.by_place.shape[-1])
        start = np.zeros((2, self.by_place.shape[1], len(rows.label_point)))
        start[..., known] = self.by_place[:, :, rows.label_output[known], rows.label_point[known]]
        return start


@dataclass(frozen=True)
class Candidates:
    """Hyperparameters to be weighed, `b` of them."""

    at: Hyperparameters
    warps: tuple[Warp, ...]  # of the values
    log_prior: Array  # b, of all of them, times the weight of the sample that they belong to
    sites: KnownSites | None = None  # EP's, where they were learned; None: not known

    def __len__(self) -> int:
        return len(self.log_prior)

    def affordable(self, trials: int) -> "Candidates":
        """As many of them as can be kept up with so many trials."""
        return self.select(np.arange(min(len(self), _affordable(trials))))

    def select(self, index: Indices) -> "Candidates":
        """Some of them."""
        warps = tuple(self.warps[i] for i in index.tolist())
        sites = None if self.sites is None else KnownSites(self.sites.by_place[:, index])
        return Candidates(self.at.select(index), warps, self.log_prior[index], sites)


@dataclass(frozen=True)
class ModelSet:
    """Posteriors of one output under several hyperparameters, with their weights."""

    block: Block  # the trials
    candidates: Candidates  # the hyperparameters
    posterior: Posterior  # b, in the units of each warp
    weights: Array  # b, they add up to 1
    log_evidence: float  # of all of them together, up to a constant that depends on the candidates alone

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
            latent = 1 + own + np.arange(m)
            scale = -at.mixing[:, 1 + np.arange(m), latent]
            shared = at.mixing[:, self.posterior.rows.output][..., latent]  # these latents are constant over the points
            mean = mean + scale * np.einsum("brm,br->bm", shared, self.posterior.weights)
            left = 1 - np.square(self.posterior.half @ shared).sum(1)
            deviation = np.abs(scale) * np.sqrt(np.maximum(left, 1e-12))
        return mean, deviation


def _affordable(trials: int) -> int:
    """How many models take the same time, whatever the number of trials."""
    return max(1, _AFFORDED // max(1, trials))


@dataclass(frozen=True)
class _Relation:
    """How margins relate to the value."""

    correlation: Array  # margins
    lengthscale: Array  # margins x d
    lapse: float  # rate of random crashes
    log_prior: float  # of all this


def learn(block: Block, numbers: Numbers = NUMBERS) -> Candidates:
    """Find the hyperparameters that matter, a pure function of the trials.

    First the value's own, from the values alone: the mode for every warp, and samples around it.
    Then, in three rounds that each go on with what counts so far: all relations of margins and value; lapse rates;
    the samples. Each candidate is weighed by its evidence.
    """
    return _resample(weigh_all(block, numbers), min(numbers.most_models, _affordable(len(block.X))))


def weigh_all(block: Block, numbers: Numbers = NUMBERS) -> ModelSet:
    """All candidates that matter, with their weights; see `learn`."""
    if block.fixed is not None:
        points = [centre := fixed_values(block)]
    else:
        modes = value_modes(block, numbers)
        centre, points = modes[0].centre(), value_points(block, modes, numbers)
    relations, start = _best(block, centre, _relations(block, centre, numbers), None, numbers)
    if len(block.above):
        lapsing = [
            replace(relation, lapse=lapse, log_prior=relation.log_prior + math.log(prior))
            for relation in relations
            for lapse, prior in numbers.lapses
        ]
        relations, start = _best(block, centre, lapsing, np.repeat(start, len(numbers.lapses), 1), numbers)
    pairs = [(point, relation) for relation in relations for point in points]
    return weigh(_assemble(block, pairs, numbers), block, np.repeat(start, len(points), 1))


def _resample(found: ModelSet, count: int) -> Candidates:
    """Few candidates that stand for all, the heaviest first: systematic sampling of the weights, by relation.

    Taking the heaviest alone would leave out what many light ones agree on.
    """
    at = found.posterior.at
    lengths = at.lengthscale.mean(-1)
    order = np.lexsort((lengths[:, 0], at.lapse, lengths[:, min(1, lengths.shape[1] - 1)], at.mixing[:, -1, 0]))
    drawn, shares = systematic(found.weights[order], count)
    scattered = np.arange(len(shares)) * _GOLDEN % 1
    heaviest = np.lexsort((scattered, -shares))  # so that the first of equally heavy ones stand for the others
    chosen, shares = order[drawn[heaviest]], shares[heaviest]
    kept = replace(found.candidates, sites=KnownSites.of(found.posterior)).select(chosen)
    shift = np.log(shares) - np.log(np.maximum(found.weights[chosen], 1e-300))
    return replace(kept, log_prior=kept.log_prior + shift)


def weigh(candidates: Candidates, block: Block, start: Array | None = None) -> ModelSet:
    """The posteriors and weights of candidates, given trials.

    EP begins from `start`, or from the sites that the candidates were learned with.
    """
    values = np.stack([warp(block.values) for warp in candidates.warps])
    rows = block.rows(values)
    if start is None and candidates.sites is not None:
        start = candidates.sites.start(rows)
    posterior = infer(rows, candidates.at, start=start, tolerance=_TOLERANCE, max_sweeps=_SWEEPS)
    jacobian = np.array([warp.log_jacobian(block.values) for warp in candidates.warps])
    log_weight = posterior.log_evidence + candidates.log_prior + jacobian
    log_weight = np.where(np.isfinite(log_weight), log_weight, -math.inf)
    if not np.isfinite(log_weight).any():
        raise NumericalError("no hyperparameters give the trials a finite evidence.")
    total = float(logsumexp(log_weight))
    return ModelSet(block, candidates, posterior, np.exp(log_weight - total), total)


def loosened(found: ModelSet, numbers: Numbers = NUMBERS) -> ModelSet:
    """The same for a limit to be stated by: the margin may be the value, or no more than related to it.

    Values beyond an unknown limit are never seen, and may grow faster there than those within it let expect. Models
    whose margin is the value, by which the search goes, are then too sure of the limit. Half of the prior is theirs,
    half that of the positive correlations in `numbers`, with a part of the margin's own that varies over the cube as
    much as the value does.
    """
    related = [(rho, prior) for rho, prior in numbers.correlations if rho > 0]
    related.append((1.0, sum(prior for _, prior in related)))
    d, index = found.block.X.shape[-1], np.repeat(np.arange(len(found.weights)), len(related))
    at, log_prior = found.posterior.at.select(index), found.candidates.log_prior[index]
    rho, prior = np.tile(np.array(related), (len(found.weights), 1)).T
    own = np.full((len(index), 1, d), math.exp(numbers.lengthscale[0]) * math.sqrt(d))
    theta = np.log(np.concatenate([at.lengthscale[:, 0], np.square(at.mixing[:, :1, 0]), at.noise[:, :1]], -1))
    block, (_, deviation) = replace(found.block, self_limited=False), _threshold_prior(found.block, numbers)
    loose = block.hyperparameters(
        theta, Relations(rho[:, None], own, at.lapse), at.threshold[:, 1:], deviation, at.kernel
    )
    shares = log_visible_share(np.log(at.lengthscale[:, 0]))[0] - log_visible_share(np.log(own[:, 0]))[0]
    loose.mixing[:, 1, 1] *= np.exp(0.5 * shares)
    warps = tuple(found.warps[i] for i in index.tolist())
    return weigh(Candidates(loose, warps, log_prior + np.log(prior)), block)


def _best(
    block: Block, point: ValuePoint, relations: list[_Relation], start: Array | None, numbers: Numbers
) -> tuple[list[_Relation], Array]:
    """The relations that count at one point, the heaviest first, with EP's sites."""
    found = weigh(_assemble(block, [(point, one) for one in relations], numbers), block, start)
    order = np.argsort(-found.weights, kind="stable")[: numbers.most_models]
    used = order[found.weights[order] >= min(0.5 * numbers.smallest_weight, found.weights.max())]
    return [relations[i] for i in used.tolist()], found.posterior.ep.sites[:, used]


def _relations(block: Block, point: ValuePoint, numbers: Numbers) -> list[_Relation]:
    """All relations to try, at the smallest lapse rate; of several margins those that count for each on its own."""
    if block.margins <= 1:
        return _one_margin(block, numbers)
    singles = [block.single(margin) for margin in range(block.margins)]
    each = [_best(one, point, _one_margin(one, numbers), None, numbers)[0][:3] for one in singles]
    return [
        _Relation(
            np.concatenate([one.correlation for one in several]),
            np.concatenate([one.lengthscale for one in several]),
            several[0].lapse,
            sum(one.log_prior for one in several),
        )
        for several in itertools.islice(itertools.product(*each), _COMBINATIONS)
    ]


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


def _assemble(block: Block, pairs: list[tuple[ValuePoint, _Relation]], numbers: Numbers) -> Candidates:
    """Every pair of the value's hyperparameters and a relation, with their prior."""
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
