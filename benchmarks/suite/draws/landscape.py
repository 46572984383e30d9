"""A drawn problem with its truth laid open: fields, limit and units."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import qmc

from benchmarks.suite.draws.fields import Field, cost_field, standardised
from benchmarks.suite.draws.margins import Margins, make_margins
from benchmarks.suite.draws.recipes import Recipe, generator, log_uniform, recipe
from benchmarks.suite.draws.shapes import Shape, make_shape
from benchmarks.suite.draws.spaces import Axes, make_axes
from benchmarks.suite.problem import Array

_POINTS = 12  # log2 of the points the limit and the spread are taken from


@dataclass(frozen=True)
class Landscape:
    """What a draw is made of.

    Attributes:
        recipe: its ingredients.
        axes: its parameters.
        field: of the cost, standardised over the space.
        margins: a trial crashes where one of them is above the limit.
        limit: of the margins.
        shape: monotone function of the field.
        offset, scale: the cost is `offset + scale shape(field)`.
        spread: of the cost where trials succeed: the range of a Gaussian's standard deviation, from its 10th and
            90th percentile, so that walls and outliers do not count.
    """

    recipe: Recipe
    axes: Axes
    field: Field
    margins: Margins
    limit: float
    shape: Shape
    offset: float
    scale: float
    spread: float

    def truth(self, rows: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return costs of `n x d` rows of values, and whether each succeeds."""
        points = self.axes.points(rows)
        return self.cost(self.field(points)), np.asarray((self.margins(points) <= self.limit).all(-1))

    def cost(self, field: Array) -> Array:
        """Return the cost where the field has these values."""
        return self.offset + self.scale * self.shape(field)


def make_landscape(number: int) -> Landscape:
    """Return the landscape of a draw."""
    one = recipe(number)
    axes = make_axes(one, generator(number, 1))
    rows = axes.rows(_spread_out(one))
    points = axes.points(rows)
    field = standardised(cost_field(one.cost, one.dimension, generator(number, 2)), points)
    margins = make_margins(one, field, points, generator(number, 3))
    highest = margins(points).max(-1)
    limit = float(np.quantile(highest, 1 - one.share))
    values = field(points[highest <= limit])
    shape = make_shape(one.shape, values, generator(number, 4))
    offset, scale = _units(generator(number, 5))
    spread = _spread(offset + scale * shape(values))
    return Landscape(one, axes, field, margins, limit, shape, offset, scale, spread)


def _spread_out(one: Recipe) -> Array:
    return np.asarray(qmc.Sobol(one.dimension, seed=generator(one.number, 6)).random_base2(_POINTS))


def _units(rng: np.random.Generator) -> tuple[float, float]:
    scale = log_uniform(rng, 1e-3, 1e4)
    return float(scale * rng.choice([0.0, 1.0, 10.0, 100.0]) * rng.standard_normal()), scale


def _spread(costs: Array) -> float:
    low, high = np.quantile(costs, [0.1, 0.9])
    return float((high - low) / 2.563) or float(costs.std())
