"""The default best guess: low and certain, where success is likely enough."""

import math

import numpy as np

from crashbo.model.belief import Averaged, Output
from crashbo.model.numbers import NOISY, Numbers
from crashbo.problem.arrays import Array
from crashbo.problem.history import History
from crashbo.search.maximise import Effort, maximise, with_differences
from crashbo.search.points import look_around
from crashbo.search.strategy import Guess

_EFFORT = Effort(starts=6, iterations=40, evaluations=120, precision=1e-10)
_RAW = 1024  # quasi-random points that are looked at first


def low_and_safe(history: History, models: Averaged[Output], numbers: Numbers) -> Guess:
    """Lowest mean plus standard deviation where success is likely enough, random crashes aside.

    Where costs are all but free of noise and the models are not sure to beat the best trial, it is that trial.
    """
    least, points = 1 - history.options.delta, look_around(history, history.seed, _RAW)
    mean, deviation, safe = models.outlook(points)
    if not models.any_cost or safe.max() < least:
        return Guess(points[int(safe.argmax())], bool(safe.max() >= least))
    unit = float(mean.std()) or 1.0

    def rate(mean: Array, deviation: Array, success: Array) -> Array:
        shortfall = np.minimum(np.log(np.maximum(success, 1e-300)) - math.log(least), 0.0)
        return -(mean + deviation) / unit + 1e3 * shortfall

    def score(X: Array) -> Array:
        return rate(*models.outlook(X))

    def allowed(mean: Array, deviation: Array, success: Array) -> Array:
        return np.where(success >= least, rate(mean, deviation, success), -math.inf)

    found = maximise(
        lambda X: allowed(*models.outlook(X)),
        with_differences(score),
        points,
        history.space,
        effort=_EFFORT,
        first=allowed(mean, deviation, safe),
    ).point
    offered = np.array([not history.space.broken(trial.params) for trial in history.trials])
    usable = (models.success_without_lapses(history.points) >= least) & offered & ~history.failed
    held = [(cost, i) for i, cost in enumerate(history.costs) if cost is not None and usable[i]]
    if held and models.objective.noise_share() < NOISY:
        (expected,), (doubt,) = models.moments(found[None])
        lowest, trial = min(held)
        if expected + doubt >= lowest:
            return Guess(history.points[trial], True)
    return Guess(found, True)
