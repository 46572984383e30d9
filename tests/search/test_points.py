"""Points that a search looks at first: valid, reproducible, and none of them under way or known to fail."""

import numpy as np

from crashbo import CRASHED, Int, Optimizer
from crashbo.search.points import Rounding, fresh, points_to_try

MIXED = {"x": (0.0, 1.0), "n": Int(1, 4)}


def told() -> Optimizer:
    optimizer = Optimizer(MIXED, seed=2)
    optimizer.tell({"x": 0.2, "n": 1}, 1.0)
    optimizer.tell({"x": 0.7, "n": 3}, CRASHED)
    return optimizer


def test_they_are_valid_and_the_same_for_the_same_history() -> None:
    history = told().history
    points = points_to_try(history)
    np.testing.assert_array_equal(points, points_to_try(history))
    np.testing.assert_array_equal(points, Rounding(history.space)(points))
    assert all((points == trial).all(-1).any() for trial in history.points)


def test_failures_and_trials_under_way_are_not_fresh() -> None:
    optimizer = told()
    busy = optimizer.with_pending([{"x": 0.5, "n": 2}]).history
    assert fresh(busy, busy.points).tolist() == [True, False]
    assert not fresh(busy, busy.pending_points).any()
    assert fresh(optimizer.history, busy.pending_points).all()
