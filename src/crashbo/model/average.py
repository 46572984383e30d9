"""The weighted set of hyperparameters that every prediction and every decision is averaged over."""

import itertools
import math
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from crashbo.errors import NumericalError
from crashbo.model.block import Block, Relations
from crashbo.model.inference import Posterior, infer
from crashbo.model.map import log_varying_fraction
from crashbo.model.numbers import (
    COMBINATIONS,
    LEARNED_EACH,
    LEARNED_MOST,
    LEARNED_SHARE,
    MODELS_TIMES_TRIALS,
    NUMBERS,
    Numbers,
)
from crashbo.model.rows import Hyperparameters, Rows
from crashbo.model.values import ValuePoint, fixed_values, systematic, value_modes, value_points
from crashbo.model.warp import Warp
from crashbo.problem.arrays import Array, Batch

_TOLERANCE, _SWEEPS = 1e-3, 60  # of EP
_GOLDEN = 0.618034  # its multiples, less whole numbers, are spread evenly
_CERTAIN = ((1.0, 1.0),)  # one value, with its prior weight


def learning_size(count: int) -> int:
    """How many of the first `count` trials hyperparameters are learned from.

    In between they are kept, while limits, weights and posteriors follow every trial. What is known depends on the
    trials alone, not on when it was asked for: a restored optimizer suggests what the uninterrupted one would.
    """
    size = min(count, LEARNED_EACH)
    while (larger := size + max(2, size // LEARNED_SHARE)) <= min(count, LEARNED_MOST):
        size = larger
    return size


def _affordable(trials: int) -> int:
    """How many models take the same time, whatever the number of trials."""
    return max(1, MODELS_TIMES_TRIALS // max(1, trials))


@dataclass(frozen=True)
class Candidates(Batch):
    """Hyperparameters to be weighed, `b` of them."""

    at: Hyperparameters
    warps: tuple[Warp, ...]  # of the values
    log_prior: Array  # b, of all of them, times the weight of the sample that they belong to
    sites: Array | None = None  # EP's, where they were learned, as `sites_by_place`; None: not known

    def affordable(self, trials: int) -> "Candidates":
        """As many of them as can be kept up with so many trials."""
        return self.select(np.arange(min(len(self), _affordable(trials))))


def sites_by_place(posterior: Posterior) -> Array:
    """EP's sites by output and point, `b x 2 x outputs x n`; 0 where there is no label."""
    rows = posterior.rows
    found = np.zeros((len(posterior), 2, posterior.at.mixing.shape[1], len(rows.X)))
    found[:, :, rows.label_output, rows.label_point] = posterior.ep.sites.swapaxes(0, 1)
    return found


def start_at(rows: Rows, sites: Array) -> Array:
    """Where EP begins with rows whose first points have these sites by place, `2 x b x m`; new labels begin at 0."""
    grown = np.zeros((*sites.shape[:-1], len(rows.X)))
    grown[..., : sites.shape[-1]] = sites
    return grown[:, :, rows.label_output, rows.label_point].swapaxes(0, 1)


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
    relations, start = _best(block, centre, _relations(block, centre, numbers), numbers)
    if len(block.above):
        each = relations.repeated(len(numbers.lapses))
        lapse, prior = np.tile(np.array(numbers.lapses), (len(relations), 1)).T
        lapsing = replace(each, lapse=lapse, log_prior=each.log_prior + np.log(prior))
        relations, start = _best(block, centre, lapsing, numbers, np.repeat(start, len(numbers.lapses), 1))
    return weigh(_assemble(block, points, relations, numbers), block, np.repeat(start, len(points), 1))


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
    kept = replace(found.candidates, sites=sites_by_place(found.posterior)).select(chosen)
    shift = np.log(shares) - np.log(np.maximum(found.weights[chosen], 1e-300))
    return replace(kept, log_prior=kept.log_prior + shift)


def weigh(candidates: Candidates, block: Block, start: Array | None = None) -> ModelSet:
    """The posteriors and weights of candidates, given trials.

    EP begins from `start`, or from the sites that the candidates were learned with.
    """
    rows = block.rows(np.stack([warp(block.values) for warp in candidates.warps]))
    if start is None and candidates.sites is not None:
        start = start_at(rows, candidates.sites)
    posterior = infer(rows, candidates.at, start=start, tolerance=_TOLERANCE, max_sweeps=_SWEEPS)
    jacobian = np.array([warp.log_jacobian(block.values) for warp in candidates.warps])
    log_weight = posterior.log_evidence + candidates.log_prior + jacobian
    log_weight = np.where(np.isfinite(log_weight), log_weight, -math.inf)
    if not np.isfinite(log_weight).any():
        raise NumericalError("no hyperparameters give the trials a finite evidence.")
    total = float(logsumexp(log_weight))
    return ModelSet(block, candidates, posterior, np.exp(log_weight - total), total)


def reweighted_for_limits(found: ModelSet, numbers: Numbers = NUMBERS) -> ModelSet:
    """The same for a limit to be stated by: the margin may be the value, or no more than related to it.

    Values beyond an unknown limit are never seen, and may grow faster there than the values seen suggest. Models
    whose margin is the value, by which the search goes, are then too sure of the limit. Half of the prior is theirs,
    half that of the positive correlations in `numbers`, with a part of the margin's own that varies over the cube as
    much as the value does.
    """
    related = [(rho, prior) for rho, prior in numbers.correlations if rho > 0]
    related.append((1.0, sum(prior for _, prior in related)))
    each = found.candidates.repeated(len(related))
    rho, prior = np.tile(np.array(related), (len(found.weights), 1)).T
    at, d = each.at, found.block.X.shape[-1]
    own = np.full((len(each), 1, d), numbers.usual_lengthscale(d))
    theta = np.log(np.concatenate([at.lengthscale[:, 0], np.square(at.mixing[:, :1, 0]), at.noise[:, :1]], -1))
    block, (_, deviation) = replace(found.block, self_limited=False), _threshold_prior(found.block, numbers)
    relations = Relations(rho[:, None], own, at.lapse)
    loose = block.hyperparameters(theta, relations, at.threshold[:, 1:], deviation, at.kernel)
    shares = log_varying_fraction(np.log(at.lengthscale[:, 0]))[0] - log_varying_fraction(np.log(own[:, 0]))[0]
    loose.mixing[:, 1, 1] *= np.exp(0.5 * shares)
    return weigh(Candidates(loose, each.warps, each.log_prior + np.log(prior)), block)


def _best(
    block: Block, point: ValuePoint, relations: Relations, numbers: Numbers, start: Array | None = None
) -> tuple[Relations, Array]:
    """The relations that count at one point, the heaviest first, with EP's sites."""
    found = weigh(_assemble(block, [point], relations, numbers), block, start)
    order = np.argsort(-found.weights, kind="stable")[: numbers.most_models]
    used = order[found.weights[order] >= min(0.5 * numbers.smallest_weight, found.weights.max())]
    return relations.select(used), found.posterior.ep.sites[:, used]


def _relations(block: Block, point: ValuePoint, numbers: Numbers) -> Relations:
    """All relations to try, at the smallest lapse rate; of several margins those that count for each on its own."""
    if block.margins <= 1:
        return _one_margin(block, numbers)
    singles = [block.single(margin) for margin in range(block.margins)]
    best = [_best(one, point, _one_margin(one, numbers), numbers)[0] for one in singles]
    combinations = itertools.product(*(range(min(3, len(one))) for one in best))
    places = np.array(list(itertools.islice(combinations, COMBINATIONS))).T
    each = [one.select(place) for one, place in zip(best, places, strict=True)]
    return Relations(
        np.concatenate([one.correlation for one in each], 1),
        np.concatenate([one.lengthscale for one in each], 1),
        each[0].lapse,
        sum(one.log_prior for one in each),
    )


def _one_margin(block: Block, numbers: Numbers) -> Relations:
    d, m = block.X.shape[-1], block.margins
    itself, unrelated = block.self_limited or not m, not len(block.values) or not len(block.above)
    correlations = _CERTAIN if itself else ((0.0, 1.0),) if unrelated else numbers.correlations
    factors = _CERTAIN if itself else numbers.margin_lengthscales
    table = [(rho, factor, a * b) for (rho, a), (factor, b) in itertools.product(correlations, factors) if a * b > 0]
    rho, factor, prior = np.array(table).T
    lengthscale = np.tile((numbers.usual_lengthscale(d) * factor)[:, None, None], (1, m, d))
    return Relations(
        np.repeat(rho[:, None], m, 1), lengthscale, np.full(len(table), numbers.lapses[0][0]), np.log(prior)
    )


def _assemble(block: Block, points: list[ValuePoint], relations: Relations, numbers: Numbers) -> Candidates:
    """Every relation with all of the value's hyperparameters, with their prior."""
    times, each = len(relations), relations.repeated(len(points))
    thetas = np.tile(np.stack([point.theta for point in points]), (times, 1))
    warps, kernels = tuple(point.warp for point in points) * times, tuple(point.kernel for point in points) * times
    mean, deviation = _threshold_prior(block, numbers)
    threshold = np.full((len(thetas), block.margins), mean)
    if block.threshold is not None:
        known = np.array([float(warp(np.array(block.threshold))) for warp in warps])
        threshold, deviation = (known / np.exp(0.5 * thetas[:, -2]))[:, None], 0.0
    at = block.hyperparameters(thetas, each, threshold, deviation, kernels)
    return Candidates(at, warps, np.tile([point.log_prior for point in points], times) + each.log_prior)


def _threshold_prior(block: Block, numbers: Numbers) -> tuple[float, float]:
    """Mean and standard deviation of the limits, in prior standard deviations of what they limit."""
    if block.fixed is None or not block.self_limited or block.fixed.threshold_prior is None:
        return numbers.threshold
    scale = math.sqrt(block.fixed.variance)
    return block.fixed.threshold_prior[0] / scale, block.fixed.threshold_prior[1] / scale
