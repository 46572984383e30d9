"""The best point of a drawn problem, searched once and kept in a file."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import qmc

from benchmarks.suite.draws.landscape import Landscape, make_landscape
from benchmarks.suite.problem import Array

FILE = Path(__file__).parent / "optima.json"
_INSIDE = 1e-9  # stay this far below the limit of the standardised margins, more than rounding moves them
_STARTS, _POLISHED, _BATCH = 64, 4, 48


def find_optimum(landscape: Landscape, *, seed: int = 0, points: int = 14) -> tuple[float, tuple[float, ...]]:
    """Return the lowest cost found where trials succeed, and the row of it.

    The cost is a monotone function of its field, so the field is searched: Sobol points, SLSQP with the margins as
    constraints from the best of them that lie apart, then random steps of shrinking width from the best ends, which
    also move integers and choices.

    Args:
        landscape: to search.
        seed: of the search.
        points: log2 of how many Sobol points to look at first.
    """
    rng = np.random.default_rng(seed)
    value = _objective(landscape)
    shares = np.asarray(qmc.Sobol(landscape.recipe.dimension, seed=rng).random_base2(points))
    starts = _apart(shares, value(shares))
    tried = np.concatenate([starts, [_descend(landscape, start) for start in starts]])
    order = np.argsort(value(tried))[:_POLISHED]
    ends = _polish(value, tried[order], landscape.axes.continuous, rng)
    rows = landscape.axes.rows(ends)
    costs, succeeds = landscape.truth(rows)
    best = int(np.where(succeeds, costs, np.inf).argmin())
    return float(costs[best]), tuple(rows[best].tolist())


@cache
def stored_optima() -> dict[int, tuple[float, tuple[float, ...]]]:
    """Return optimum and minimiser of the draws in the file."""
    if not FILE.exists():
        return {}
    return {int(number): (value, tuple(row)) for number, (value, row) in json.loads(FILE.read_text()).items()}


def store_optimum(number: int, value: float, row: tuple[float, ...]) -> None:
    """Write an optimum into the file, one line per draw, beside those that are there."""
    known = stored_optima() | {number: (value, row)}
    lines = [f'"{one}": {json.dumps([found, list(point)])}' for one, (found, point) in sorted(known.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    stored_optima.cache_clear()


def search_and_store(numbers: Iterable[int], *, seed: int = 0) -> Iterator[tuple[int, float | None, float]]:
    """Search draws and keep what is better than the file's, by more than rounding, or where the file's does not hold.

    Returns:
        Per draw its number, the optimum that was stored and the one that is stored now.
    """
    for number in numbers:
        landscape = make_landscape(number)
        known = stored_optima().get(number)
        value, row = find_optimum(landscape, seed=seed)
        before = None if known is None else known[0]
        if known is None or not holds(landscape, *known) or value < known[0] - 1e-12 * landscape.scale:
            store_optimum(number, value, row)
        yield number, before, stored_optima()[number][0]


def holds(landscape: Landscape, optimum: float, minimiser: tuple[float, ...]) -> bool:
    """Whether the minimiser succeeds with the optimum as its cost."""
    if len(minimiser) != landscape.recipe.dimension:
        return False
    costs, succeeds = landscape.truth(np.array([minimiser]))
    return bool(succeeds[0] and np.isclose(costs[0], optimum, rtol=1e-9, atol=1e-9 * landscape.scale))


def _objective(landscape: Landscape) -> Callable[[Array], Array]:
    """The field at points of the unit cube, infinity where a trial crashes or nearly does."""

    def value(shares: Array) -> Array:
        points = landscape.axes.points(landscape.axes.rows(shares))
        inside = (landscape.margins(points) <= landscape.limit - _INSIDE).all(-1)
        return np.where(inside, landscape.field(points), np.inf)

    return value


def _apart(shares: Array, values: Array) -> Array:
    """The best points, each at some distance from all better ones; without enough of them the best ones."""
    order = np.argsort(values)[: int(np.isfinite(values).sum())][:2000]
    least, chosen = 0.05 * math.sqrt(shares.shape[1]), list[int]()
    for index in order:
        if len(chosen) == _STARTS:
            break
        if not chosen or np.linalg.norm(shares[chosen] - shares[index], axis=-1).min() >= least:
            chosen.append(int(index))
    return shares[chosen]


def _descend(landscape: Landscape, start: Array) -> Array:
    """Follow gradients from a point with the margins as constraints, integers and choices fixed."""
    free = np.flatnonzero(landscape.axes.continuous)
    steps = np.vstack([np.zeros(len(free)), 1e-7 * np.eye(len(free))])

    def around(x: Array) -> Array:
        """The point and a small step along each axis, as the fields take them."""
        shares = np.tile(start, (len(steps), 1))
        shares[:, free] = x + np.where(x + 1e-7 > 1, -steps, steps)
        return landscape.axes.points(landscape.axes.rows(shares))

    def slopes(values: Array, x: Array) -> Array:
        return (values[1:] - values[0]) / np.where(x + 1e-7 > 1, -1e-7, 1e-7).reshape(-1, *[1] * (values.ndim - 1))

    def cost(x: Array) -> tuple[float, Array]:
        values = landscape.field(around(x))
        return float(values[0]), slopes(values, x)

    constraint = {
        "type": "ineq",
        "fun": lambda x: landscape.limit - 2 * _INSIDE - landscape.margins(around(x)[:1])[0],
        "jac": lambda x: -slopes(landscape.margins(around(x)), x).T,
    }
    settings = {"maxiter": 60, "ftol": 1e-12}
    bounds = [(0.0, 1.0)] * len(free)
    with np.errstate(all="ignore"):
        end = minimize(
            cost, start[free], jac=True, method="SLSQP", bounds=bounds, constraints=[constraint], options=settings
        )
    found = start.copy()
    if np.isfinite(end.x).all():
        found[free] = end.x.clip(0, 1)
    return found


def _polish(value: Callable[[Array], Array], starts: Array, free: NDArray[np.bool_], rng: np.random.Generator) -> Array:
    """Improve points by random steps, wider after a success and narrower after a failure."""
    best, values, widths = starts.copy(), value(starts), np.full(len(starts), 0.05)
    count, d = starts.shape
    for _ in range(120):
        moved = rng.random((count, _BATCH, d)) < 0.6
        steps = widths[:, None, None] * rng.standard_normal((count, _BATCH, d)) * moved
        tried = (best[:, None] + steps).clip(0, 1)
        fresh = ~free & (rng.random(tried.shape) < 0.2)
        tried[fresh] = rng.random(int(fresh.sum()))
        found = value(tried.reshape(-1, d)).reshape(count, _BATCH)
        winner = found.argmin(-1)
        better = found.min(-1) < values
        best[better] = tried[better, winner[better]]
        values = np.where(better, found.min(-1), values)
        widths = np.where(better, np.minimum(0.2, 1.3 * widths), np.maximum(1e-9, 0.8 * widths))
    return best
