"""The maximisation of scores over mixed spaces."""

import numpy as np
import pytest
from numpy.typing import NDArray

from crashbo import Categorical, Float, Int, Space
from crashbo.search.maximise import maximise

Array = NDArray[np.float64]
SPACE = Space(
    {
        "a": Float(0, 1),
        "c": Categorical(["u", "v", "w", "x"]),
        "few": Int(0, 40),
        "many": Int(0, 500),
        "log": Int(1, 1000, log=True),
        "lots": Categorical([str(i) for i in range(70)]),
    }
)


@pytest.mark.parametrize(
    "wanted",
    [
        {"a": 0.123456, "c": "x", "few": 39, "many": 123, "log": 5, "lots": "68"},
        {"a": 0.9, "c": "u", "few": 2, "many": 499, "log": 731, "lots": "3"},
        {"a": 0.0, "c": "w", "few": 17, "many": 250, "log": 1, "lots": "1"},
    ],
)
def test_every_value_of_a_parameter_is_within_reach_of_every_other(wanted: dict[str, object]) -> None:
    target = SPACE.encode(wanted)
    start = SPACE.encode({"a": 0.5, "c": "v", "few": 20, "many": 490, "log": 100, "lots": "3"})

    def score(X: Array) -> Array:
        return np.asarray(-np.square(X - target).sum(-1))

    def slope(X: Array) -> tuple[Array, Array]:
        return score(X), -2 * (X - target)

    found = maximise(score, slope, start[None], SPACE)
    decoded = SPACE.decode(found.point)
    assert {name: value for name, value in decoded.items() if name != "a"} == {
        name: value for name, value in wanted.items() if name != "a"
    }
    assert decoded["a"] == pytest.approx(wanted["a"], abs=1e-4)


def test_what_two_parameters_must_change_for_together_is_refined_afterwards() -> None:
    space = Space({"a": Float(0, 1), "c": Categorical(["low", "high"])})
    high = space.encode({"a": 0.0, "c": "high"})[1:]

    def score(X: Array) -> Array:
        is_high = (X[:, 1:] == high).all(-1)
        return np.where(is_high, 1 - np.square(X[:, 0] - 0.7654321), -np.square(X[:, 0] - 0.2))

    def slope(X: Array) -> tuple[Array, Array]:
        centre = np.where((X[:, 1:] == high).all(-1), 0.7654321, 0.2)
        return score(X), np.stack([-2 * (X[:, 0] - centre), *np.zeros((2, len(X)))], -1)

    found = maximise(score, slope, space.encode({"a": 0.2, "c": "low"})[None], space)
    assert space.decode(found.point)["c"] == "high"
    assert found.point[0] == pytest.approx(0.7654321, abs=1e-6)
