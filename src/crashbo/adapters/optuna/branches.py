"""Parameters that only some trials have: a model of those trials, with what is chosen already held fixed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.history import make_optimizer, place
from crashbo.adapters.optuna.space import Translation, infer, translate, within
from crashbo.optimizer import Optimizer
from crashbo.problem.problem import Problem
from crashbo.problem.space import Space

_FEWEST, _MOST = 3, 10  # trials before there is a model: two for each parameter to choose, within these
_POINTS, _ROUNDS, _NEARBY = 512, 4, 64  # of the search: points at first, then rounds with points near the best one


@dataclass(frozen=True)
class Branch:
    """The trials that have a parameter, and all parameters they share.

    Attributes:
        records: of those trials.
        translation: of their parameters.
        known: values of those that are chosen already.
    """

    records: Sequence[Record]
    translation: Translation
    known: Mapping[str, Any]

    @property
    def free(self) -> list[str]:
        """The parameters to choose."""
        return [name for name in self.translation.distributions if name not in self.known]

    @property
    def enough(self) -> bool:
        """Whether there are trials enough for a model."""
        placed = [one for one in self.records if one.teaches and place(one, self.translation) is not None]
        return len(placed) >= min(max(_FEWEST, 2 * len(self.free)), _MOST)


def find_branch(
    records: Sequence[Record],
    name: str,
    distribution: BaseDistribution,
    params: Mapping[str, Any],
    suggestion: Mapping[str, float],
) -> Branch | None:
    """Return the branch of a parameter; None if no model can take it.

    Args:
        records: of all other trials.
        name: of the parameter.
        distribution: of the parameter.
        params: chosen so far in the trial that asks.
        suggestion: packed params that are chosen but not asked for yet.
    """
    having = [record for record in records if name in record.distributions]
    shared = infer(having)
    if name not in shared:
        return None
    translation = translate(shared | {name: distribution})
    chosen = translation.unpack(suggestion) | dict(params)
    known = {one: value for one, value in chosen.items() if one in translation.distributions and one != name}
    if len(within(known, shared)) < len(known):
        return None
    return Branch(having, translation, known)


def choose(branch: Branch, settings: Problem, *, maximize: bool, number: int) -> dict[str, Any]:
    """Return values for all free parameters of a branch, where the next suggestion's score is highest."""
    optimizer = make_optimizer(branch.records, branch.translation, settings, maximize=maximize, number=number)
    inner = branch.translation.inward(_complete(branch, optimizer.space, number))
    assert inner is not None
    point = _search(optimizer, optimizer.space.encode(inner), _free_coordinates(optimizer.space, branch.free))
    found = branch.translation.outward(optimizer.space.decode(point))
    return {name: found[name] for name in branch.free}


def _complete(branch: Branch, space: Space, number: int) -> dict[str, Any]:
    """The known params, and any values for the others."""
    others = branch.translation.outward(space.sample(1, np.random.default_rng(number))[0])
    return others | dict(branch.known)


def _free_coordinates(space: Space, free: Sequence[str]) -> NDArray[np.bool_]:
    """`d`, which coordinates of the unit cube may move."""
    moving = np.zeros(space.dimension, dtype=bool)
    for block in space.coordinates:
        moving[block.start : block.stop] = block.name in free
    return moving


def _search(optimizer: Optimizer, start: NDArray[np.float64], moving: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The best of many points, then of points ever nearer to the best."""
    space, score = optimizer.space, optimizer.score()
    random = np.random.default_rng([optimizer.seed, optimizer.saved.asked])
    sobol = space.encode_valid(space.sobol(_POINTS, optimizer.seed))
    points = np.where(moving, sobol, start)
    best, highest = start, -np.inf
    for step in range(_ROUNDS + 1):
        values = np.asarray(score(points))
        if values.max() > highest:
            best, highest = points[int(values.argmax())], float(values.max())
        near = best + random.normal(scale=0.2 / 3**step, size=(_NEARBY, len(start)))
        points = space.round(np.where(moving, near, start))
    return best
