"""Formulas of the suite's problems: `n x d` points in, costs and successes out."""

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crashbo.research.problems.synthetic import branin, gardner

Array: TypeAlias = NDArray[np.float64]
Result: TypeAlias = tuple[Array, NDArray[np.bool_]]


# --- the paper's cases; all values hidden on violation -----------------------------------------


def sim1(X: Array) -> Result:
    """Simulation I: costs above 1.5 crash."""
    cost = gardner(X[:, 0], X[:, 1])
    return cost, cost <= 1.5


def case2(X: Array) -> Result:
    """Branin; trials outside a circle crash."""
    return branin(X[:, 0], X[:, 1]), _circle(X)


def case4(X: Array) -> Result:
    """Branin; trials outside a circle, or with a cost above 20, crash."""
    cost = branin(X[:, 0], X[:, 1])
    return cost, _circle(X) & (cost <= 20.0)


def _circle(X: Array) -> NDArray[np.bool_]:
    return np.square(X - 0.5).sum(-1) <= 2 / 9


# --- the later crash suite: a crash where the product of sin(2 pi x_i) is positive -------------


def checkerboard(X: Array) -> NDArray[np.bool_]:
    """Success where the product of sin(2 pi x_i) is not positive."""
    return np.sin(2 * math.pi * X).prod(-1) <= 0


def egg_crate(X: Array) -> Result:
    """Egg-crate function, shifted so that its minima lie unevenly."""
    U = np.array([-5.0, -2.5]) + 7.5 * X
    return np.square(U).sum(-1) + 25 * np.square(np.sin(U)).sum(-1) - 98, checkerboard(X)


_HARTMANN_ALPHA = np.array([1.0, 1.2, 3.0, 3.2])
_HARTMANN6_A = np.array(
    [[10, 3, 17, 3.5, 1.7, 8], [0.05, 10, 17, 0.1, 8, 14], [3, 3.5, 1.7, 10, 17, 8], [17, 8, 0.05, 10, 0.1, 14]]
)
_HARTMANN6_P = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
_HARTMANN3_A = np.array([[3.0, 10, 30], [0.1, 10, 35], [3.0, 10, 30], [0.1, 10, 35]])
_HARTMANN3_P = 1e-4 * np.array([[3689, 1170, 2673], [4699, 4387, 7470], [1091, 8732, 5547], [381, 5743, 8828]])


def _hartmann(X: Array, A: Array, P: Array) -> Array:
    inner = (A * np.square(X[:, None, :] - P)).sum(-1)
    return -(np.exp(-inner) @ _HARTMANN_ALPHA)


def hartmann6(X: Array) -> Result:
    """Ten times the Hartmann function in 6D."""
    return 10 * _hartmann(X, _HARTMANN6_A, _HARTMANN6_P), checkerboard(X)


def michalewicz(X: Array) -> Result:
    """The Michalewicz function with m = 10, on [0, pi]^d scaled to the unit cube."""
    U = math.pi * X
    index = np.arange(1, X.shape[1] + 1)
    return -(np.sin(U) * np.sin(index * np.square(U) / math.pi) ** 20).sum(-1), checkerboard(X)


# --- crashes for no reason, noise, choices ------------------------------------------------------


def plain_branin(X: Array) -> Result:
    """Branin that crashes nowhere by itself."""
    return branin(X[:, 0], X[:, 1]), np.ones(len(X), dtype=np.bool_)


def plain_hartmann3(X: Array) -> Result:
    """Hartmann in 3D that crashes nowhere by itself."""
    return _hartmann(X, _HARTMANN3_A, _HARTMANN3_P), np.ones(len(X), dtype=np.bool_)


def ackley_disks(X: Array) -> Result:
    """An Ackley-like funnel around (0.62, 0.41), with discs that crash."""
    U = 4 * (X - np.array([0.62, 0.41]))
    root = np.sqrt(np.square(U).mean(-1))
    cost = 20 + math.e - 20 * np.exp(-0.2 * root) - np.exp(np.cos(2 * math.pi * U).mean(-1))
    return cost, _outside(X, [(0.40, 0.30, 0.12), (0.72, 0.62, 0.14), (0.20, 0.75, 0.16), (0.85, 0.20, 0.12)])


def machine(X: Array) -> Result:
    """A machine with three tools: each has its best setting, its cost and what breaks it.

    The tool with the lowest cost breaks on most of the square.
    """
    tool = X[:, 2].astype(int)
    centre = np.array([[0.3, 0.7], [0.65, 0.35], [0.55, 0.8]])[tool]
    level, steep = np.array([1.0, 0.4, 0.0])[tool], np.array([6.0, 10.0, 14.0])[tool]
    gap = X[:, :2] - centre
    cost = level + steep * (np.square(gap[:, 0]) + 2 * np.square(gap[:, 1])) + 0.3 * np.sin(9 * gap[:, 0])
    heat = X[:, 0] * X[:, 1]
    succeeds = np.choose(tool, [heat < 0.55, X[:, 0] + X[:, 1] < 1.15, np.abs(heat - 0.38) < 0.08])
    return cost, succeeds.astype(np.bool_)


# --- crashes unrelated to the cost ---------------------------------------------------------------


def disks(X: Array) -> Result:
    """Himmelblau's function; discs cover two of its four equal minima and touch a third."""
    a, b = X[:, 0], X[:, 1]
    cost = (a**2 + b - 11) ** 2 + (a + b**2 - 7) ** 2
    return cost, _outside(X, [(3.0, 2.0, 1.4), (-3.8, -3.3, 1.2), (-2.6, 2.4, 0.9), (0.5, -0.5, 1.0)])


def fence(X: Array) -> Result:
    """A bowl with a ripple, and a ring of crashes that fences its minimum off."""
    gap = X - np.array([0.68, 0.42])
    distance = np.sqrt(np.square(gap).sum(-1))
    cost = 12 * np.square(gap[:, 0]) + 7 * np.square(gap[:, 1]) + 0.25 * np.sin(7 * X[:, 0] + 5 * X[:, 1])
    return cost, (distance < 0.12) | (distance > 0.2)


def corners(X: Array) -> Result:
    """A cost that falls towards a corner, and corners that crash: the best point lies on the border."""
    a, b = X[:, 0], X[:, 1]
    cost = -3 * a - 2 * b + 0.6 * np.sin(8 * a) * np.cos(5 * b)
    return cost, np.abs(a - 0.5) + np.abs(b - 0.5) <= 0.62


def bands(X: Array) -> Result:
    """A turned bowl with ripples, and slanted bands that crash."""
    along, across = X[:, 0] + X[:, 1] - 0.9, X[:, 0] - X[:, 1] - 0.25
    cost = 5 * along**2 + 9 * across**2 + 0.5 * np.cos(9 * across)
    return cost, np.sin(14 * X[:, 0] + 6 * X[:, 1]) <= 0.55


def _outside(X: Array, discs: list[tuple[float, float, float]]) -> NDArray[np.bool_]:
    """Whether points lie outside all discs, each (x, y, radius)."""
    inside: Any = [np.square(X[:, :2] - np.array(disc[:2])).sum(-1) < disc[2] ** 2 for disc in discs]
    return ~np.any(inside, axis=0)
