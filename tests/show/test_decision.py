"""Scores as pictures show them."""

import numpy as np
import pytest

from crashbo import CRASHED, Optimizer
from crashbo.show import view
from crashbo.show.decision import scaled


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([2.0, 1.0, 0.0], [1.0, 0.5, 0.0]),
        ([0.8, -3.0, 0.4], [1.0, 0.0, 0.5]),  # what is worse than nothing is nothing
        ([0.8, 0.6, 0.4], [1.0, 0.75, 0.5]),
        ([-1.0, -3.0, -2.0, -9.0], [1.0, 0.0, 1 / 3, 0.0]),  # nothing is worth it: the better half shows
        ([-1.0, -1.0], [1.0, 1.0]),
        ([], []),
    ],
)
def test_scores_are_scaled_to_the_largest(values: list[float], expected: list[float]) -> None:
    assert scaled(np.array(values)).tolist() == pytest.approx(expected)


def test_while_nothing_has_succeeded_the_success_probability_is_shown() -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)})
    optimizer.tell({"x": 0.5}, CRASHED)
    decision = view(optimizer).decision
    points = np.array([[0.0], [0.5]])
    assert decision.mode == "success"
    assert decision.scaled(points, points[:0]).tolist() == pytest.approx([1.0, decision.scaled(points, points[:0])[1]])
    assert decision.scaled_gain(points) is None
