"""The part of a box that constraints between parameters leave: points all over it, and the way back into it.

Everything is in positions, `n x m` in [0, 1], one per parameter; a grid value or a choice owns a cell.
"""

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from crashbo.arrays import Array, Bools
from crashbo.errors import InputError
from crashbo.parameters import Categorical, Float, Int, Parameter, cells_of, log_cells, params_at
from crashbo.rules import Rule, Table
from crashbo.sobol import sobol

_LISTED = 2**16  # points up to which a discrete space is gone through one by one
_LOOK = 4096  # quasi-random points of a first look
_POOL = 512  # points to come back to
_ENOUGH = 64  # of the first look, from which on the region counts as large
_STARTS, _STALLED = 128, 60  # of a search for a thin region: points, and steps without progress that end it
_STEPS = 30  # of the walks that spread points over a thin region
_HALVINGS = 25  # of the way back into the region


class Region:
    """Where the rules hold; refused if no point is found where they do."""

    def __init__(self, parameters: Mapping[str, Parameter], rules: Sequence[Rule]) -> None:
        self.parameters, self.rules = parameters, tuple(rules)
        self.choices = np.array([one.kind == "one-hot" for one in parameters.values()])
        if not len(self.pool):
            words = " and ".join(repr(str(rule)) for rule in self.rules)
            sure = "" if self._listed is None else " All points were tried."
            raise InputError(f"`constraints` must leave some point of the space; none satisfies {words}.{sure}")

    def holds(self, P: Array, *, exact: bool = False) -> Bools:
        """Whether all rules hold at positions; exactly as `Space.decode` rounds them, or but for the last digit."""
        return (self._violations(P, exact=exact) == 0).all(-1)

    def broken(self, params: Mapping[str, Any]) -> list[str]:
        """The rules that params break, in words."""
        table = Table({name: _column(one, [params[name]]) for name, one in self.parameters.items()}, [dict(params)])
        return [str(rule) for rule in self.rules if rule.violation(table)[0] != 0]

    def _violations(self, P: Array, *, exact: bool = False) -> Array:
        """How far positions are from satisfying each rule, `n x r`; see `holds`."""
        named = zip(self.parameters.items(), P.T, strict=True)
        columns = {name: _column(one, _values(one, column, exact)) for (name, one), column in named}
        rows = params_at(self.parameters, P) if any(callable(rule.source) for rule in self.rules) else []
        found = [rule.violation(Table(columns, rows)) for rule in self.rules]
        return np.minimum(np.stack(found, -1), 1e200)

    def _held(self, P: Array) -> Array:
        """Those of the positions where the rules hold exactly."""
        return P[self.holds(P, exact=True)]

    @cached_property
    def _listed(self) -> Array | None:
        """All positions of a small discrete space where the rules hold; None for other spaces."""
        if math.prod(float(one.size) for one in self.parameters.values()) > _LISTED:
            return None
        every = np.array(list(product(*map(_cells, self.parameters.values()))), dtype=np.float64)
        return self._held(every[self.holds(every)])

    @cached_property
    def _first(self) -> Array:
        """The points of a first look where the rules hold."""
        return self._held(sobol(_LOOK, len(self.parameters), 0))

    @cached_property
    def _large(self) -> bool:
        return len(self._first) >= _ENOUGH

    @cached_property
    def pool(self) -> Array:
        """Points of the region to come back to, spread over it."""
        if self._listed is not None:
            return self._listed
        if self._large:
            return self._centred(self._first[:_POOL])
        found = np.concatenate([self._first, self._searched()])
        if not len(found):
            return found
        start = np.resize(found, (_POOL, found.shape[-1]))
        return self._centred(self._walked(start, found, np.random.default_rng(0)))

    def _centred(self, P: Array) -> Array:
        """Positions with those of choices in the middle of their cells."""
        sizes = np.array([one.size if one.kind == "one-hot" else 1.0 for one in self.parameters.values()])
        return np.where(self.choices, (cells_of(P, sizes) + 0.5) / sizes, P)

    def _searched(self) -> Array:
        """Points that random steps towards less violation lead to."""
        rng, look = np.random.default_rng(1), sobol(_LOOK, len(self.parameters), 0)
        found = self._violations(look)
        units = np.array([np.median(one[one > 0]) if (one > 0).any() else 1.0 for one in found.T])
        total = (found / units).sum(-1)
        top = np.argsort(total, kind="stable")[:_STARTS]
        here, left, stalled = look[top].copy(), total[top], 0
        while (left > 0).mean() > 0.2 and stalled < _STALLED:
            away = np.flatnonzero(left > 0)
            moved = _moved(here[away], here, self.choices, rng)
            new = (self._violations(moved) / units).sum(-1)
            better = new < left[away]
            stalled = 0 if (new < 0.99 * left[away]).any() else stalled + 1
            here[away[better]], left[away[better]] = moved[better], new[better]
        return self._held(here)

    def _walked(self, start: Array, pool: Array, rng: np.random.Generator) -> Array:
        """Walk inside the region, each point on its own; steps follow the pool's own directions half of the time."""
        here = start.copy()
        for _ in range(_STEPS):
            moved = _moved(here, pool, self.choices, rng)
            held = self.holds(moved)
            here[held] = moved[held]
        held = self.holds(here, exact=True)
        return np.where(held[:, None], here, start)

    def spread(self, count: int, seed: int) -> Array:
        """Points all over the region, about `count x m`; quasi-random where it is large enough."""
        if self._listed is not None:
            order = np.random.default_rng(seed).permutation(len(self._listed))
            return self._listed[order[:count]]
        if self._large:
            share = len(self._first) / _LOOK
            return self._held(sobol(min(int(1.2 * count / share) + 8, _LOOK), len(self.parameters), seed))[:count]
        return self._walks(count, np.random.default_rng(seed))

    def _walks(self, count: int, rng: np.random.Generator) -> Array:
        return self._walked(self.pool[rng.integers(len(self.pool), size=count)], self.pool, rng)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Points drawn uniformly, `count x m`; where the region is too thin for that, by walks in it."""
        if self._listed is not None:
            return self._listed[rng.integers(len(self._listed), size=count)]
        share = max(len(self._first) / _LOOK, 1 / _LOOK)
        drawn = rng.random((min(int(2 * count / share) + 100, 20 * _LOOK), len(self.parameters)))
        found = self._held(drawn)
        return found[:count] if len(found) >= count else self._walks(count, rng)

    def ordered(self, count: int, seed: int) -> Array:
        """A design, `count x m`: the first points of a quasi-random sequence, or each far from those before."""
        if self._large and self._listed is None:
            found = self._held(sobol(4 * _LOOK, len(self.parameters), seed))
            return found[np.resize(np.arange(len(found)), count)]
        found = self.spread(_POOL, seed)
        chosen, gaps = [0], np.linalg.norm(found - found[0], axis=-1)
        for _ in range(min(count, len(found)) - 1):
            chosen.append(int(gaps.argmax()))
            gaps = np.minimum(gaps, np.linalg.norm(found - found[chosen[-1]], axis=-1))
        return found[np.resize(chosen, count)]

    def inward(self, P: Array) -> Array:
        """Move positions into the region: on a straight line towards the nearest point of the pool."""
        result = P.copy()
        out = np.flatnonzero(~self.holds(P, exact=True))
        if not len(out):
            return result
        gaps = np.square(self.pool).sum(-1) - 2 * P[out] @ self.pool.T
        for column in np.flatnonzero(self.choices):  # rather elsewhere with the same choices
            gaps += 100.0 * (np.abs(P[out, column, None] - self.pool[:, column]) > 1e-9)
        home = self.pool[gaps.argmin(-1)]
        way = np.where(self.choices, home, P[out]) - home
        low, high = np.zeros((len(out), 1)), np.ones((len(out), 1))
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            held = self.holds(home + middle * way)[:, None]
            low, high = np.where(held, middle, low), np.where(held, high, middle)
        found = home + low * way
        result[out] = np.where(self.holds(found, exact=True)[:, None], found, home)
        return result


def _values(parameter: Parameter, column: Array, exact: bool) -> Any:
    """The values at positions: as `Parameter.at`, or but for rounding."""
    if isinstance(parameter, Float) and parameter.step is None and not parameter.log:
        values = parameter.low + column * (parameter.high - parameter.low)
        return np.where(column == 1.0, parameter.high, np.clip(values, parameter.low, parameter.high))
    if exact:
        return [parameter.at(one) for one in column.tolist()]
    if isinstance(parameter, Float) and parameter.step is None:
        return np.exp((1 - column) * np.log(parameter.low) + column * np.log(parameter.high))
    if isinstance(parameter, Int) and parameter.log:
        start, width = log_cells(parameter.low, parameter.size)
        return np.clip(np.rint(np.exp(start + column * width)), parameter.low, parameter.high)
    cell = cells_of(column, parameter.size)
    if isinstance(parameter, Categorical):
        return np.array(parameter.choices, dtype=object)[cell.astype(int)]
    return parameter.low + cell * (parameter.step or 0.0)


def _column(parameter: Parameter, values: Any) -> Any:
    numbers = not isinstance(parameter, Categorical) or all(type(one) in (int, float) for one in parameter.choices)
    return np.array(values, dtype=np.float64 if numbers else object)


def _cells(parameter: Parameter) -> list[float]:
    """The positions of all values of a discrete parameter."""
    size = int(parameter.size)
    if isinstance(parameter, Int) and parameter.log:
        return [parameter.locate(parameter.low + i) for i in range(size)]
    return [(i + 0.5) / size for i in range(size)]


def _moved(here: Array, pool: Array, choices: Bools, rng: np.random.Generator) -> Array:
    """One step from each point: a difference of two others, or a random one of any length in some coordinates."""
    n, m = here.shape
    pairs = pool[rng.integers(len(pool), size=(2, n))]
    along = rng.uniform(-1.0, 1.0, (n, 1)) * (pairs[0] - pairs[1])
    some = rng.random((n, m)) < np.maximum(rng.random((n, 1)), 1.0 / m)
    around = 10 ** rng.uniform(-4.0, 0.0, (n, 1)) * rng.standard_normal((n, m)) * some
    moved = np.clip(here + np.where(rng.random((n, 1)) < 0.5, along, around), 0.0, 1.0)
    if not choices.any():
        return moved
    drawn = np.where(rng.random((n, m)) < 0.2, rng.random((n, m)), here)
    return np.where(choices, drawn, moved)
