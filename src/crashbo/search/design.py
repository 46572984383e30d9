"""The first trials: a quasi-random design, which goes on while nothing has succeeded."""

import math

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.history import History
from crashbo.search.price import budget_left


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


def quasi_random(history: History) -> Array | None:
    """The next point of the quasi-random design while it goes on: at first, and while nothing has succeeded.

    A crash budget ends it with the first success: a design would spend the budget where nothing is to be gained.
    """
    budgeted, succeeded = history.options.crash_budget is not None, not history.failed.all()
    if budgeted and not succeeded and not budget_left(history.failed.tolist(), history.options):
        raise InputError(
            f"`crash_budget` must leave room for a crash until a trial has succeeded; got "
            f"{history.options.crash_budget}, and no trial has. Give a point that is known to succeed "
            "(`initial_points`, or tell a trial of it), or a larger budget."
        )
    if budgeted and succeeded:
        return None
    made = len(history.trials) + len(history.pending)
    begins = made < initial_count(history) or all(trial.crashed for trial in history.trials)
    return initial_point(history) if begins else None
