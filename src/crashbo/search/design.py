"""The first trials: a quasi-random design, which goes on while nothing has succeeded."""

import math

import numpy as np

from crashbo.problem.arrays import Array
from crashbo.problem.history import History


def initial_count(history: History) -> int:
    """Trials before the models decide: d + 1, at least 3, at most 10, unless set."""
    if history.options.initial is not None:
        return history.options.initial
    return max(3, min(10, history.space.dimension + 1))


def initial_point(history: History) -> Array:
    """The next point of the design that is neither under way nor known to fail, `d`."""
    number, space = history.asked, history.space
    if history.options.random_start:
        return space.encode(space.sample(1, np.random.default_rng([history.seed, number]))[0])
    # Powers of two keep the sequence balanced; later points only extend it.
    count = 2 ** max(3, math.ceil(math.log2(number + 1)))
    points = space.sobol(2 * count, history.seed)
    failed = [dict(trial.params) for trial, bad in zip(history.trials, history.failed, strict=True) if bad]
    taken = failed + [dict(one) for one in history.pending]
    fresh = [point for point in points[number:] if point not in taken]
    return space.encode(fresh[0] if fresh else points[number])
