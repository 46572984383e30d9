"""Small models to test with."""

import numpy as np
from numpy.typing import NDArray

from crashbo.gp.kernel import correlation, squared_distance
from crashbo.problems.synthetic import branin, circle, gardner
from crashbo.strategies.paper.data import Data
from crashbo.strategies.paper.gpcr import GPCR, Prior

Array = NDArray[np.float64]


def example1(prior: tuple[float, float] | None = None) -> GPCR:
    """The paper's Example 1."""
    X = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]])
    above = np.array([False, False, False, True, True])
    data = Data(X, np.arange(3), np.array([0.5, 2.0, 1.0]), above, np.arange(5))
    return GPCR.fit(data, Prior(np.array([0.2]), 0.5, 0.02**2, prior, "matern32"))


def simulation1(n: int = 12, seed: int = 0) -> GPCR:
    """Simulation I after some random trials, with fixed hyperparameters."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    costs = gardner(X[:, 0], X[:, 1])
    seen = np.flatnonzero(costs <= 1.5)
    data = Data(X, seen, costs[seen] + 0.01 * rng.standard_normal(len(seen)), costs > 1.5, np.arange(n))
    return GPCR.fit(data, Prior(np.full(2, 0.25), 1.0, 1e-4, (0.0, 5.0), "matern32"))


def simulation2(n: int = 12, seed: int = 0) -> tuple[GPCR, GPCR]:
    """Objective, a standard GP, and constraint of Simulation II after some random trials."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    limits = [circle(*x) for x in X.tolist()]
    above = np.array([one is None for one in limits])
    values = np.array([one for one in limits if one is not None])
    none = np.arange(0)
    cost = Data(X, np.arange(n), branin(X[:, 0], X[:, 1]), np.zeros(n, dtype=bool), none, np.inf)
    held = Data(X, np.flatnonzero(~above), values, above, np.arange(n))
    return (
        GPCR.fit(cost, Prior(np.full(2, 0.25), 1e4, 1e-4, None, "matern32")),
        GPCR.fit(held, Prior(np.full(2, 0.25), 0.25, 1e-4, (0.0, 2.0), "matern32")),
    )


def joint(model: GPCR, X: Array) -> tuple[Array, Array]:
    """Posterior mean and covariance at `p x d`, by the textbook formula on values and EP's sites."""
    at, rows, ep = model.posterior.at, model.posterior.rows, model.posterior.ep
    variance = float(at.mixing[0, 0, 0]) ** 2

    def prior(A: Array, B: Array) -> Array:
        return variance * correlation(squared_distance(A, B, at.lengthscale[0, 0]), model.prior.kernel)

    used = ep.precision[0] > 0
    points = np.concatenate([rows.X[rows.value_point], rows.X[rows.label_point][used]])
    limit = model.threshold
    targets = np.concatenate([rows.values, limit + ep.shift[0, used] / ep.precision[0, used]])
    noise = np.concatenate([np.full(len(rows.values), model.noise), 1 / ep.precision[0, used]])
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
