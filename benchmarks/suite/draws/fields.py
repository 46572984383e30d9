"""Random fields on the unit cube, the costs and margins of drawn problems are made of."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from benchmarks.suite.draws.recipes import log_uniform
from benchmarks.suite.problem import Array

Field: TypeAlias = Callable[[Array], Array]
"""`n x d` points of the unit cube in, n values out."""
_FEATURES = 200


def cost_field(kind: str, d: int, rng: np.random.Generator) -> Field:
    """Return a field of a kind of `recipes.COSTS`."""
    makers = {"bowl": bowl, "basins": basins, "waves": waves, "rough": rough, "two scales": two_scales}
    return makers[kind](d, rng)


def bowl(d: int, rng: np.random.Generator) -> Field:
    """A power 1 to 4 of the distance from a centre, in or a little outside the cube, along turned or straight axes.

    Math: `|A (x - centre)|^power`
    """
    centre, power = rng.uniform(-0.1, 1.1, d), float(rng.choice([1.0, 2.0, 2.0, 4.0]))
    axes = _axes(d, rng)
    return lambda U: np.square((U - centre) @ axes).sum(-1) ** (power / 2)


def basins(d: int, rng: np.random.Generator) -> Field:
    """The lowest of two to five bowls of different depth and width."""
    count = int(rng.integers(2, 6))
    centres, depths = rng.uniform(0, 1, (count, d)), rng.uniform(0, 0.3, count)
    steepness = np.exp(rng.uniform(0, np.log(6), count)) / d

    def value(U: Array) -> Array:
        distances = np.square(U[:, None] - centres).sum(-1)
        return np.asarray((steepness * distances + depths).min(-1))

    return value


def waves(d: int, rng: np.random.Generator) -> Field:
    """A bowl with a cosine along every axis, one to three valleys per axis (fewer above four dimensions)."""
    centre = rng.uniform(0, 1, d)
    frequency = rng.uniform(0.8, 3.0 if d <= 4 else 1.5, d)
    height = log_uniform(rng, 0.03, 0.3)

    def value(U: Array) -> Array:
        steps = U - centre
        return np.asarray((np.square(steps) + height * (1 - np.cos(2 * np.pi * frequency * steps))).sum(-1))

    return value


def rough(d: int, rng: np.random.Generator) -> Field:
    """A draw from a GP with lengthscales between 0.1 (more in many dimensions) and 1."""
    return gp_draw(d, log_uniform(rng, shortest(d), 1.0), rng)


def two_scales(d: int, rng: np.random.Generator) -> Field:
    """A smooth GP draw with a rough one of a tenth to a third of its height on top."""
    smooth, fine = gp_draw(d, log_uniform(rng, 0.5, 1.2), rng), gp_draw(d, shortest(d), rng)
    height = log_uniform(rng, 0.1, 0.33)
    return lambda U: smooth(U) + height * fine(U)


def shortest(d: int) -> float:
    """Return the shortest lengthscale of a GP draw: 0.1, or what leaves few hundred valleys in many dimensions.

    Below that no search finds the optimum, neither ours that is stored nor a method's.
    """
    return float(max(0.1, 0.5 * 200 ** (-1 / d)))


def gp_draw(d: int, lengthscale: float, rng: np.random.Generator) -> Field:
    """Return a draw from a GP by random Fourier features: squared exponential or Matern 5/2.

    Lengthscales differ a little between parameters; one in six hardly matters.

    Math: `sqrt(2 / m) sum_j weight_j cos(frequency_j . x + phase_j)`
    """
    scales = lengthscale * np.exp(0.3 * rng.standard_normal(d)) * np.where(rng.random(d) < (d > 1) / 6, 5.0, 1.0)
    frequency = rng.standard_normal((d, _FEATURES)) / np.maximum(scales, 0.7 * shortest(d))[:, None]
    if rng.random() < 0.5:  # Matern: frequencies with the tails of Student's t, 5 degrees of freedom
        frequency /= np.sqrt(rng.chisquare(5, _FEATURES) / 5)
    phase, weight = rng.uniform(0, 2 * np.pi, _FEATURES), rng.standard_normal(_FEATURES) * np.sqrt(2 / _FEATURES)
    return lambda U: np.asarray(np.cos(U @ frequency + phase) @ weight)


def standardised(field: Field, points: Array) -> Field:
    """Return the field with mean 0 and standard deviation 1 over the points."""
    values = field(points)
    mean, std = float(values.mean()), float(values.std())
    return lambda U: (field(U) - mean) / std


def _axes(d: int, rng: np.random.Generator) -> Array:
    """A `d x d` matrix: axes of one length or of lengths 1 to 6, turned at random or not."""
    lengths = np.exp(rng.uniform(0, np.log(6), d)) if rng.random() < 0.6 else np.ones(d)
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0] if rng.random() < 0.5 else np.eye(d)
    return np.asarray(turned * lengths)
