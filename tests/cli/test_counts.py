"""What `crashbo ask` and `crashbo tell` build and read: each thing once."""

from collections import Counter
from typing import Any

import pytest

from crashbo.adapters.optuna import records
from crashbo.optimizer import Optimizer
from crashbo.problem.region import Region
from crashbo.problem.space import Space
from tests.cli.conftest import Call


@pytest.fixture
def made(call: Call, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """What is made from now on, in a study of 20 trials with a constraint between its parameters."""
    space = "parameters: {x: [0, 1], y: [0, 1]}\nparameter_constraints: ['x + y <= 1.5']\n"
    with open("space.yaml", "w") as file:
        file.write(space + "options: {raw: 32, samples: 3}\n")
    assert call("new", "--space", "space.yaml").code == 0
    for nth in range(20):
        point = (f"x={nth / 20}", f"y={nth % 7 / 10}")
        told = call("crash", "--params", *point) if nth % 5 == 4 else call("tell", "--params", nth / 10, *point)
        assert told.code == 0, told.err
    found: Counter[str] = Counter()

    def count(owner: Any, name: str, what: str) -> None:
        before = getattr(owner, name)

        def counted(*args: Any, **others: Any) -> Any:
            found[what] += 1
            return before(*args, **others)

        monkeypatch.setattr(owner, name, counted)

    count(Space, "__init__", "spaces")
    count(Region, "__init__", "regions")
    count(Optimizer, "_begin", "optimizers")  # also of those that are restored
    count(records, "read_one", "trials read")
    return found


def test_an_ask_makes_everything_once(call: Call, made: Counter[str]) -> None:
    assert call("ask").code == 0
    assert made == {"spaces": 1, "regions": 1, "optimizers": 1, "trials read": 20}


@pytest.mark.parametrize("words", [("tell", 20, 0.5), ("crash", 20, "--reason", "fell"), ("skip", 20)])
def test_recording_a_result_needs_no_model(call: Call, made: Counter[str], words: tuple[object, ...]) -> None:
    assert call("ask").code == 0
    made.clear()
    assert call(*words).code == 0
    assert made == {"spaces": 1, "regions": 1}
