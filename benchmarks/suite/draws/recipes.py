"""What goes into a drawn problem: one frozen record per number, and the shares of every ingredient."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

DIMENSIONS = {1: 0.16, 2: 0.22, 3: 0.18, 4: 0.15, 5: 0.09, 6: 0.08, 7: 0.06, 8: 0.06}
COSTS = {"bowl": 0.25, "basins": 0.15, "waves": 0.15, "rough": 0.3, "two scales": 0.15}
SHAPES = {"plain": 0.4, "exponential": 0.15, "wall": 0.15, "outliers": 0.1, "plateau": 0.1, "steps": 0.1}
RELATIONS = {
    "cost": 0.2,
    "related": 0.15,
    "independent": 0.15,
    "opposed": 0.12,
    "discs": 0.1,
    "islands": 0.08,
    "half-spaces": 0.07,
    "tube": 0.06,
    "bands": 0.07,
}
NOISY, UNLUCKY, DISCRETE = 0.25, 0.15, 0.2
_SHARES = {"tube": (0.6, 0.8), "islands": (0.4, 0.8)}  # of the space that crashes; others: 5 to 80 %


@dataclass(frozen=True)
class Recipe:
    """The ingredients of a drawn problem.

    Attributes:
        number: of the draw.
        dimension: parameters.
        cost: kind of the cost's field, a key of `COSTS`.
        shape: monotone function of that field, a key of `SHAPES`.
        relation: what crashes have to do with the cost, a key of `RELATIONS`.
        correlation: of the margin with the cost's field over the space; None where the relation does not fix it.
        share: of the space that crashes.
        noise: standard deviation over the spread of the cost where trials succeed; 0 for exact costs.
        crash_rate: of crashes that depend on nothing.
        discrete: whether some parameters are integers, choices or on a log scale.
    """

    number: int
    dimension: int
    cost: str
    shape: str
    relation: str
    correlation: float | None
    share: float
    noise: float
    crash_rate: float
    discrete: bool


def generator(number: int, stage: int) -> np.random.Generator:
    """Return the generator of one stage of a draw, so that stages do not depend on how much others draw."""
    return np.random.default_rng([14, number, stage])


def recipe(number: int) -> Recipe:
    """Return the ingredients of a draw."""
    rng = generator(number, 0)
    dimension = int(_choose(rng, {str(d): weight for d, weight in DIMENSIONS.items()}))
    cost, shape, relation = _choose(rng, COSTS), _choose(rng, SHAPES), _choose(rng, RELATIONS)
    correlation = _correlation(rng, relation)
    share = float(rng.uniform(*_SHARES.get(relation, (0.05, 0.8))))
    noise = log_uniform(rng, 1e-3, 0.05) if rng.random() < NOISY else 0.0
    crash_rate = float(rng.uniform(0.05, 0.25)) if rng.random() < UNLUCKY else 0.0
    discrete = bool(rng.random() < DISCRETE)
    return Recipe(number, dimension, cost, shape, relation, correlation, share, noise, crash_rate, discrete)


def log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a number between the two, evenly spread on a log scale."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def _correlation(rng: np.random.Generator, relation: str) -> float | None:
    between, opposed = float(rng.uniform(0.3, 0.95)), float(rng.uniform(-0.9, -0.4))
    exact = rng.random() < 0.5
    found = {"cost": 1.0, "related": between, "independent": 0.0, "opposed": -0.7 if exact else opposed}
    return found.get(relation)


def _choose(rng: np.random.Generator, weights: Mapping[str, float]) -> str:
    shares = np.array(list(weights.values()))
    return str(rng.choice(list(weights), p=shares / shares.sum()))
