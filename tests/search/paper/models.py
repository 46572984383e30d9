"""Small models to test with."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crashbo.model.block import Block
from crashbo.model.kernel import squared_distance
from crashbo.model.values import fixed_values
from crashbo.problem.options import FixedModel
from crashbo.research.problems.synthetic import branin, circle, gardner
from crashbo.search.paper.model import GPCR, fit

Array = NDArray[np.float64]


def make_block(X: Array, values: list[float | None], fixed: FixedModel | None = None, **settings: Any) -> Block:
    """Trials of an output that absorbs its failures, which have no value."""
    failed = np.array([one is None for one in values])
    seen, bad = np.flatnonzero(~failed), np.flatnonzero(failed)
    numbers, margins = np.array([one for one in values if one is not None]), np.zeros(len(bad), dtype=int)
    return Block(X, seen, numbers, seen, bad, margins, **{"self_limited": True, "fixed": fixed, **settings})


def fixed_fit(block: Block) -> GPCR:
    """With the hyperparameters that the block fixes."""
    return fit(block, fixed_values(block))


def example1(prior: tuple[float, float] | None = None) -> GPCR:
    """The paper's Example 1."""
    X = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]])
    return fixed_fit(make_block(X, [0.5, 2.0, 1.0, None, None], FixedModel(0.2, 0.5, 0.02, prior)))


def simulation1(n: int = 12, seed: int = 0) -> GPCR:
    """Simulation I after some random trials, with fixed hyperparameters."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    costs = gardner(X[:, 0], X[:, 1])
    held = costs <= 1.5
    costs[held] += 0.01 * rng.standard_normal(held.sum())
    told = [cost if ok else None for cost, ok in zip(costs.tolist(), held, strict=True)]
    return fixed_fit(make_block(X, told, FixedModel(0.25, 1.0)))


def simulation2(n: int = 12, seed: int = 0) -> tuple[GPCR, GPCR]:
    """Objective, a standard GP, and constraint of Simulation II after some random trials."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    costs = branin(X[:, 0], X[:, 1]).tolist()
    objective = make_block(X, costs, FixedModel(0.25, 1e4), margins=0)
    constraint = make_block(X, [circle(*x) for x in X.tolist()], FixedModel(0.25, 0.25, threshold_prior=(0.0, 2.0)))
    return fixed_fit(objective), fixed_fit(constraint)


def joint(model: GPCR, X: Array) -> tuple[Array, Array]:
    """Posterior mean and covariance at `p x d`, by the textbook formula on values and EP's sites."""
    at, rows, ep = model.posterior.at, model.posterior.rows, model.posterior.ep
    unit = model.deviation  # labels are counted in it

    def prior(A: Array, B: Array) -> Array:
        return unit**2 * model.point.kernel.correlation(squared_distance(A, B, at.lengthscale[0, 0]))

    used = ep.precision[0] > 0
    points = np.concatenate([rows.X[rows.value_point], rows.X[rows.label_point][used]])
    targets = np.concatenate([rows.values, model.threshold + unit * ep.shift[0, used] / ep.precision[0, used]])
    noise = np.concatenate([np.full(len(rows.values), model.noise), unit**2 / ep.precision[0, used]])
    gain = np.linalg.solve(prior(points, points) + np.diag(noise), prior(points, X)).T
    return gain @ targets, prior(X, X) - gain @ prior(points, X)


def grid_minima(objective: GPCR, constraints: list[GPCR], count: int, side: int = 41, seed: int = 0) -> Array:
    """Minima of exact posterior samples on a grid, where the constraints' samples hold."""
    axis = np.linspace(0, 1, side)
    X = np.stack(np.meshgrid(axis, axis), -1).reshape(-1, 2)
    rng = np.random.default_rng(seed)

    def draw(model: GPCR) -> Array:
        mean, spread = joint(model, X)
        values, vectors = np.linalg.eigh(spread)
        return mean + rng.standard_normal((count, len(X))) @ (vectors * np.sqrt(np.maximum(values, 0.0))).T

    cost, holds = draw(objective), np.ones((count, len(X)), dtype=bool)
    for one in constraints:
        holds &= draw(one) <= one.threshold
    return np.where(holds, cost, np.inf).min(-1)[holds.any(-1)]
