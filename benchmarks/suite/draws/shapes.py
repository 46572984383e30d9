"""Monotone functions of a field: what makes its values heavy-tailed or flat without moving its minima."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from benchmarks.suite.draws.recipes import log_uniform
from benchmarks.suite.problem import Array

Shape: TypeAlias = Callable[[Array], Array]


def make_shape(kind: str, values: Array, rng: np.random.Generator) -> Shape:
    """Return a function that never decreases, and increases below the tenth percentile of `values`.

    Args:
        kind: a key of `recipes.SHAPES`. "wall" is a square beyond a quantile, "outliers" a jump, "plateau" and
            "steps" are flat beyond one.
        values: of the field where trials succeed, for the quantiles.
        rng: for the sizes.
    """
    if kind == "exponential":
        middle, rate = float(np.median(values)), float(rng.uniform(1.0, 3.0))
        return lambda z: np.exp(rate * (z - middle))
    if kind == "wall":
        edge, height = _quantile(values, rng, 0.5, 0.9), log_uniform(rng, 10, 1000)
        return lambda z: z + height * np.square(np.maximum(z - edge, 0))
    if kind == "outliers":
        edge, height = _quantile(values, rng, 0.8, 0.95), log_uniform(rng, 10, 300)
        return lambda z: z + height * (z > edge)
    if kind == "plateau":
        edge = _quantile(values, rng, 0.3, 0.7)
        return lambda z: np.minimum(z, edge)
    if kind == "steps":
        edge, height = _quantile(values, rng, 0.1, 0.4), float(rng.uniform(0.3, 1.0))
        return lambda z: np.where(z > edge, edge + height * np.ceil((z - edge) / height), z)
    return lambda z: z


def _quantile(values: Array, rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.quantile(values, rng.uniform(low, high)))
