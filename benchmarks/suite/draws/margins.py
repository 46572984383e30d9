"""Margins of drawn problems: a trial crashes where one of them is above the limit."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from benchmarks.suite.draws.fields import Field, gp_draw, shortest, standardised
from benchmarks.suite.draws.recipes import Recipe, log_uniform
from benchmarks.suite.problem import Array

Margins: TypeAlias = Callable[[Array], Array]
"""`n x d` points of the unit cube in, `n x m` margins out."""


def make_margins(recipe: Recipe, cost: Field, points: Array, rng: np.random.Generator) -> Margins:
    """Return the margins of a recipe.

    Args:
        recipe: its relation and correlation decide.
        cost: the cost's field, standardised over the points.
        points: spread over the space.
        rng: for everything random.
    """
    d = recipe.dimension
    if recipe.correlation is not None:
        return _columns(correlated(cost, recipe.correlation, points, rng))
    makers = {"discs": discs, "islands": islands, "half-spaces": half_spaces, "tube": tube, "bands": bands}
    fields = makers[recipe.relation](d, rng)
    if recipe.relation == "bands" and rng.random() < 0.4:
        fields = (*fields, _smooth(d, rng))
    return _columns(*(standardised(field, points) for field in fields))


def correlated(cost: Field, correlation: float, points: Array, rng: np.random.Generator) -> Field:
    """Return a field with exactly this correlation with the cost's over the points.

    Math: `correlation cost + sqrt(1 - correlation^2) own`, where `own` is a smooth GP draw less its regression on the
    cost, standardised.
    """
    own = _smooth(points.shape[1], rng)
    base = cost(points)
    slope = float(base @ own(points)) / float(base @ base)
    rest = standardised(lambda U: own(U) - slope * cost(U), points)
    if correlation == 1.0:
        return cost
    return lambda U: correlation * cost(U) + np.sqrt(1 - correlation**2) * rest(U)


def discs(d: int, rng: np.random.Generator) -> tuple[Field, ...]:
    """Crashes near one to six centres."""
    nearest = _nearest(d, int(rng.integers(1, 7)), rng)
    return (lambda U: -nearest(U),)


def islands(d: int, rng: np.random.Generator) -> tuple[Field, ...]:
    """Crashes everywhere but near two to four centres."""
    return (_nearest(d, int(rng.integers(2, 5)), rng),)


def half_spaces(d: int, rng: np.random.Generator) -> tuple[Field, ...]:
    """Crashes beyond one to three planes; the planes' places follow from the limit they share."""
    return tuple(_slope(d, rng) for _ in range(int(rng.integers(1, 4))))


def tube(d: int, rng: np.random.Generator) -> tuple[Field, ...]:
    """Crashes away from a bent sheet, a narrow tube in two dimensions."""
    slope, across = _slope(d, rng), _slope(d, rng)
    bend, place, phase = rng.uniform(0, 0.3), rng.uniform(-0.2, 0.2), rng.uniform(0, 2 * np.pi)
    return (lambda U: np.abs(slope(U) - place + bend * np.sin(4 * across(U) + phase)),)


def bands(d: int, rng: np.random.Generator) -> tuple[Field, ...]:
    """Crashes in one to four parallel bands, which split the rest."""
    slope, count, phase = _slope(d, rng), rng.uniform(1, 4), rng.uniform(0, 2 * np.pi)
    return (lambda U: np.cos(2 * np.pi * count * slope(U) + phase),)


def _smooth(d: int, rng: np.random.Generator) -> Field:
    return gp_draw(d, log_uniform(rng, max(0.2, shortest(d)), 1.0), rng)


def _slope(d: int, rng: np.random.Generator) -> Field:
    """A linear field around the middle of the cube, of length 1 along a random direction."""
    direction = rng.standard_normal(d)
    direction /= np.linalg.norm(direction)
    return lambda U: (U - 0.5) @ direction


def _nearest(d: int, count: int, rng: np.random.Generator) -> Field:
    """The distance from the nearest of some centres, in units of its radius."""
    centres, radii = rng.uniform(0, 1, (count, d)), rng.uniform(0.6, 1.6, count)
    return lambda U: np.asarray((np.sqrt(np.square(U[:, None] - centres).sum(-1)) / radii).min(-1))


def _columns(*fields: Field) -> Margins:
    return lambda U: np.column_stack([field(U) for field in fields])
