"""The part of a box that constraints between parameters leave: points all over it, and the way back into it.

Everything is in positions, `n x m` in [0, 1], one per parameter; a grid value or a choice owns a cell.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array, Bools
from crashbo.problem.parameters import Categorical, Parameter, params_at
from crashbo.problem.rules import Rule
from crashbo.problem.sobol import sobol

_LISTED = 2**16  # points up to which a discrete space is gone through one by one
_LOOK = 4096  # quasi-random points of a first look
_POOL = 512  # points to come back to
_ENOUGH = 64  # of the first look, from which on the region counts as large
_STARTS, _STALLED = 128, 60  # of a search for a thin region: points, and steps without progress that end it
_STEPS = 30  # of the walks that spread points over a thin region
_HALVINGS = 25  # of the way back into the region


class Region:
    """Where the rules hold; refused if no point is found where they do.

    A small discrete space is gone through; of any other, a first look tells whether the region is large or thin.
    """

    def __init__(self, parameters: Mapping[str, Parameter], rules: Sequence[Rule]) -> None:
        self.parameters, self.rules, m = parameters, tuple(rules), len(parameters)
        self.choices = np.array([one.kind == "one-hot" for one in parameters.values()])
        self.listed = math.prod(float(one.size) for one in parameters.values()) <= _LISTED
        look = self._every() if self.listed else sobol(_LOOK, m, 0)
        violations = self._violations(look)
        found = look[(violations == 0).all(-1)]
        self.share = len(found) / len(look)
        self.large = not self.listed and len(found) >= _ENOUGH
        thin = not self.listed and not self.large
        if thin:
            found = np.concatenate([found, self._searched(look, violations)])
        if not len(found):
            words = " and ".join(repr(str(rule)) for rule in self.rules)
            sure = " All points were tried." if self.listed else ""
            raise InputError(f"`constraints` must leave some point of the space; none satisfies {words}.{sure}")
        self.pool = found[:_POOL] if self.large else found  # to come back to, spread over the region
        if thin:
            self.pool = self._walked(np.resize(found, (_POOL, m)), np.random.default_rng(0))
        for one, column in zip(parameters.values(), self.pool.T, strict=True):
            if one.kind == "one-hot":
                column[:] = one.round(column)

    def _every(self) -> Array:
        """The positions of all points of a discrete space."""
        return np.array(list(product(*(one.middles(np.arange(one.size)) for one in self.parameters.values()))))

    def holds(self, P: Array) -> Bools:
        """Whether all rules hold at positions, as `Space.decode` rounds them."""
        return (self._violations(P) == 0).all(-1)

    def broken(self, params: Mapping[str, Any]) -> list[str]:
        """The rules that params break, in words."""
        columns = {name: _column(one, [params[name]]) for name, one in self.parameters.items()}
        return [str(rule) for rule in self.rules if rule.violation(columns, [dict(params)])[0] != 0]

    def _violations(self, P: Array) -> Array:
        """How far positions are from satisfying each rule, `n x r`."""
        named = zip(self.parameters.items(), P.T, strict=True)
        columns = {name: _column(one, one.values(column)) for (name, one), column in named}
        rows = params_at(self.parameters, P) if any(callable(rule.source) for rule in self.rules) else []
        return np.minimum(np.stack([rule.violation(columns, rows) for rule in self.rules], -1), 1e200)

    def _held(self, P: Array) -> Array:
        """Those of the positions where the rules hold."""
        return P[self.holds(P)]

    def _searched(self, look: Array, found: Array) -> Array:
        """Points that random steps towards less violation lead to, from the points of a look with what was found."""
        rng = np.random.default_rng(1)
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

    def _walked(self, start: Array, rng: np.random.Generator) -> Array:
        """Walk inside the region, each point on its own; steps follow the pool's own directions half of the time."""
        here = start.copy()
        for _ in range(_STEPS):
            moved = _moved(here, self.pool, self.choices, rng)
            held = self.holds(moved)
            here[held] = moved[held]
        return here

    def _walks(self, count: int, rng: np.random.Generator) -> Array:
        return self._walked(self.pool[rng.integers(len(self.pool), size=count)], rng)

    def spread(self, count: int, seed: int) -> Array:
        """Points all over the region, about `count x m`; quasi-random where it is large enough."""
        rng = np.random.default_rng(seed)
        if self.listed:
            return self.pool[rng.permutation(len(self.pool))[:count]]
        if self.large:
            looked = min(int(1.2 * count / self.share) + 8, _LOOK)
            return self._held(sobol(looked, len(self.parameters), seed))[:count]
        return self._walks(count, rng)

    def sample(self, count: int, rng: np.random.Generator) -> Array:
        """Points drawn uniformly, `count x m`; where the region is too thin for that, by walks in it."""
        if self.listed:
            return self.pool[rng.integers(len(self.pool), size=count)]
        drawn = int(2 * count / max(self.share, 1 / _LOOK)) + 100
        found = self._held(rng.random((min(drawn, 20 * _LOOK), len(self.parameters))))
        return found[:count] if len(found) >= count else self._walks(count, rng)

    def ordered(self, count: int, seed: int) -> Array:
        """A design, `count x m`: the first points of a quasi-random sequence, or each far from those before."""
        if self.large:
            found = self._held(sobol(4 * _LOOK, len(self.parameters), seed))
            return found[np.resize(np.arange(len(found)), count)]
        found = self.spread(_POOL, seed)
        chosen, gaps = [0], np.linalg.norm(found - found[0], axis=-1)
        for _ in range(min(count, len(found)) - 1):
            chosen.append(int(gaps.argmax()))
            gaps = np.minimum(gaps, np.linalg.norm(found - found[chosen[-1]], axis=-1))
        return found[np.resize(chosen, count)]

    def project(self, P: Array) -> Array:
        """Move positions into the region: on a straight line towards the nearest point of the pool."""
        result = P.copy()
        out = np.flatnonzero(~self.holds(P))
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
        result[out] = home + low * way
        return result


def _column(parameter: Parameter, values: Any) -> Any:
    """Values for a rule: numbers as floats, other choices as they are."""
    numbers = not isinstance(parameter, Categorical) or all(type(one) in (int, float) for one in parameter.choices)
    return np.asarray(values, dtype=np.float64 if numbers else object)


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
