"""Spaces of drawn problems, and their maps between rows of values and points of the unit cube."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite.draws.recipes import Recipe, log_uniform
from benchmarks.suite.problem import Array
from crashbo.problem.space import Categorical, Float, Int, Parameter, Space


@dataclass(frozen=True)
class Axis:
    """One parameter and where its values lie in [0, 1].

    Attributes:
        parameter: as the space has it.
        places: of each choice, so that neighbours in the list need not be alike; empty for numbers.
    """

    parameter: Parameter
    places: tuple[float, ...] = ()

    def row(self, share: Array) -> Array:
        """Return the values at shares in [0, 1] of the range; integers and choices have cells of one width."""
        one = self.parameter
        if isinstance(one, Categorical):
            return np.minimum(np.floor(share * one.size), one.size - 1)
        if isinstance(one, Int):
            return one.low + np.minimum(np.floor(share * one.size), one.size - 1)
        if one.log:
            return (one.low * np.exp(share * math.log(one.high / one.low))).clip(one.low, one.high)
        return (one.low + share * (one.high - one.low)).clip(one.low, one.high)

    def place(self, values: Array) -> Array:
        """Return where values lie in [0, 1], as the fields see them."""
        one = self.parameter
        if isinstance(one, Categorical):
            return np.asarray(self.places)[values.astype(int)]
        if isinstance(one, Float) and one.log:
            return np.log(values / one.low) / math.log(one.high / one.low)
        return (values - one.low) / (one.high - one.low)


@dataclass(frozen=True)
class Axes:
    """All parameters of a draw."""

    axes: tuple[Axis, ...]

    @property
    def space(self) -> Space:
        """The space, its parameters named x1, x2, ..."""
        return Space({f"x{index + 1}": axis.parameter for index, axis in enumerate(self.axes)})

    @property
    def continuous(self) -> NDArray[np.bool_]:
        """Which parameters are a continuum."""
        return np.array([isinstance(axis.parameter, Float) for axis in self.axes])

    def rows(self, shares: Array) -> Array:
        """Return `n x d` values at points of the unit cube, evenly spread ones for evenly spread points."""
        return np.column_stack([axis.row(shares[:, index]) for index, axis in enumerate(self.axes)])

    def points(self, rows: Array) -> Array:
        """Return the `n x d` points of the unit cube where the fields are evaluated for these values."""
        return np.column_stack([axis.place(rows[:, index]) for index, axis in enumerate(self.axes)])


def make_axes(recipe: Recipe, rng: np.random.Generator) -> Axes:
    """Return the parameters: plain ranges; if discrete, one to all of them of another kind.

    One parameter is always a continuum, and at most one is a choice.
    """
    d = recipe.dimension
    kinds = ["float"] * d
    if recipe.discrete:
        kinds[0] = "log" if d == 1 else str(rng.choice(["log", "float"]))
        for index in range(1, d):
            kinds[index] = str(rng.choice(["int", "choice", "log", "float"]))
        if d > 1 and not {"int", "choice"} & set(kinds):
            kinds[1] = str(rng.choice(["int", "choice"]))
    first = kinds.index("choice") if "choice" in kinds else -1
    kinds = ["int" if kind == "choice" and index != first else kind for index, kind in enumerate(kinds)]
    order = rng.permutation(d)
    return Axes(tuple(_axis(kinds[index], rng) for index in order))


def _axis(kind: str, rng: np.random.Generator) -> Axis:
    if kind == "choice":
        count = int(rng.integers(2, 6))
        places = rng.permutation((np.arange(count) + rng.uniform(0.2, 0.8, count)) / count)
        return Axis(Categorical([f"choice {index}" for index in range(count)]), tuple(places.tolist()))
    if kind == "int":
        first = int(rng.integers(-5, 11))
        return Axis(Int(first, first + int(rng.integers(3, 41))))
    if kind == "log":
        low = log_uniform(rng, 1e-4, 1.0)
        return Axis(Float(low, low * log_uniform(rng, 30, 1e4), log=True))
    if rng.random() < 0.5:
        return Axis(Float(0.0, 1.0))
    low, width = float(rng.normal(0, 3)), log_uniform(rng, 0.1, 100)
    return Axis(Float(round(low, 3), round(low + width, 3)))
