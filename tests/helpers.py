"""Small builders shared by the tests of the engine."""

import math
from typing import NamedTuple

import numpy as np

from crashbo.model.ep import Labels
from crashbo.model.inference import Conditioned, condition_on_values

Array = np.ndarray


class Example(NamedTuple):
    """Trials of one output."""

    X: Array
    costs: Array
    crashed: Array


EXAMPLE1 = Example(
    np.array([[0.1], [0.3], [0.5], [0.7], [0.9]]),
    np.array([0.5, 2.0, 1.0]),
    np.array([False, False, False, True, True]),
)
"""Example 1 of the paper: three stable trials, two crashed ones."""


def matern32_matrix(X: Array, other: Array, lengthscale: float = 0.2, outputscale: float = 0.5) -> Array:
    """The Matern-3/2 covariance from its formula."""
    r = math.sqrt(3) * np.linalg.norm(X[:, None] - other[None], axis=-1) / lengthscale
    return outputscale * (1 + r) * np.exp(-r)


def random_covariance(n: int, seed: int) -> Array:
    """A Matern-3/2 covariance at n random points of the square."""
    X = np.random.default_rng(seed).uniform(size=(n, 2))
    return matern32_matrix(X, X, lengthscale=0.5, outputscale=1.0)


def make_labels(crashed: Array, limit: float | Array, width: float | Array = 0.0, lapse: float | Array = 0.0) -> Labels:
    """Labels of n latents in b problems, one for every row of `limit`."""
    limit = np.atleast_2d(np.asarray(limit, dtype=np.float64))
    shape = (len(limit), len(crashed))
    sign = np.where(crashed, -1.0, 1.0)
    return Labels(sign, *(np.broadcast_to(part, shape).astype(np.float64) for part in (limit, width, lapse)))


def given_values(prior: Array, observed: Array, costs: Array, noise: float) -> Conditioned:
    """All latents of a prior `n x n`, given values of some."""
    index = np.concatenate([observed, np.arange(len(prior))])
    return condition_on_values(prior[np.ix_(index, index)][None], costs, np.full((1, len(costs)), noise))


def example1_given() -> Conditioned:
    """Example 1 with the paper's kernel and noise."""
    prior = matern32_matrix(EXAMPLE1.X, EXAMPLE1.X)
    return given_values(prior, np.flatnonzero(~EXAMPLE1.crashed), EXAMPLE1.costs, 0.02**2)
