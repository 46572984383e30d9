"""Small sets of trials, and brute-force integration over their hyperparameters."""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from crashbo.model.average import Candidates, ModelSet, weigh
from crashbo.model.belief import Output
from crashbo.model.block import Block, Relations
from crashbo.model.kernel import KERNELS
from crashbo.model.map import value_bounds
from crashbo.model.numbers import NUMBERS, Numbers
from crashbo.model.values import to_theta
from crashbo.model.warp import make_warp

Array = NDArray[np.float64]


def make_block(X: Array, cost: Array, crashed: NDArray[np.bool_], **more: object) -> Block:
    ok, bad = np.flatnonzero(~crashed), np.flatnonzero(crashed)
    return Block(X, ok, cost[ok], ok, bad, np.zeros(len(bad), dtype=np.int64), **more)  # type: ignore[arg-type]


def small_block(seed: int, n: int, d: int, relation: str) -> Block:
    """Two crashes among `n` trials: of a margin of their own, of high costs, or of low ones."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    cost = np.sin(5 * X[:, 0] + seed) + X.sum(1) * rng.normal() + (np.cos(3 * X[:, 1]) if d > 1 else 0.0)
    margin = {"own": np.cos(4 * X[:, 0] + 2 * seed), "high": cost, "low": -cost}[relation]
    return make_block(X, cost, margin > np.sort(margin)[-3])


def integrate(block: Block, points: Array, count: int = 4000, numbers: Numbers = NUMBERS) -> tuple[Array, Array, Array]:
    """Mean, standard deviation and success probability at points, by importance sampling from the prior."""
    rng = np.random.default_rng(0)
    candidates = _from_prior(block, count, numbers, rng)
    sets = [weigh(candidates.select(np.arange(i, i + 500)), block) for i in range(0, count, 500)]
    logs = np.array([one.log_evidence for one in sets])
    shares = np.exp(logs - logsumexp(logs))
    mean, square, success = (np.zeros(len(points)) for _ in range(3))
    for one, share in zip(sets, shares, strict=True):
        output = _heaviest(one)
        m, s = output.moments(points)
        mean += share * m
        square += share * (m**2 + s**2)
        success += share * output.success(points)
    return mean, np.sqrt(square - mean**2), success


def _heaviest(models: ModelSet) -> Output:
    kept = np.flatnonzero(models.weights > 1e-6)
    return Output(weigh(models.candidates.select(kept), models.block))


def _from_prior(block: Block, count: int, numbers: Numbers, rng: np.random.Generator) -> Candidates:
    d = block.X.shape[-1]
    centre, common, own = numbers.lengthscale
    theta = np.empty((count, d + 2))
    shared = rng.normal(size=(count, 1)) * common
    theta[:, :d] = centre + 0.5 * math.log(d) + shared + own * rng.normal(size=(count, d))
    theta[:, d] = rng.normal(*numbers.variance, count)
    theta[:, d + 1] = rng.normal(*numbers.noise, count)
    theta = to_theta(np.clip(theta, *np.array(value_bounds(d)).T))

    def drawn(table: tuple[tuple[object, float], ...]) -> list[object]:
        shares = np.array([share for _, share in table])
        return [table[i][0] for i in rng.choice(len(table), count, p=shares / shares.sum())]

    correlation = np.array(drawn(numbers.correlations), dtype=float)[:, None]
    factor = np.array(drawn(numbers.margin_lengthscales), dtype=float)
    lengthscale = np.repeat((math.exp(centre) * math.sqrt(d) * factor)[:, None, None], d, 2)
    relations = Relations(correlation, lengthscale, np.array(drawn(numbers.lapses), dtype=float))
    made = {strength: make_warp(block.values, strength) for strength, _ in numbers.warps}
    known = tuple((strength, share) for strength, share in numbers.warps if made[strength] is not None)
    warps = tuple(made[strength] for strength in drawn(known))  # type: ignore[index]
    mean, deviation = numbers.threshold
    at = block.hyperparameters(
        theta, relations, np.full((count, 1), mean), deviation, tuple(KERNELS[name] for name in drawn(numbers.kernels))
    )
    return Candidates(at, warps, np.zeros(count))  # type: ignore[arg-type]
