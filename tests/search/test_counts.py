"""How often hyperparameters are learned and models fitted: what the schedule says, however many outputs there are."""

import threading
from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from crashbo import CRASHED, Optimizer
from crashbo.model.average import learning_size
from crashbo.model.recipe import AverageRecipe

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Calls of the two steps that take time."""
    found: Counter[str] = Counter()
    for name in ("learn", "fit"):
        step = getattr(AverageRecipe, name)

        def counted(self: AverageRecipe, *given: object, step=step, name=name) -> object:
            found[name] += 1
            return step(self, *given)

        monkeypatch.setattr(AverageRecipe, name, counted)
    return found


def tell_some(optimizer: Optimizer, count: int) -> None:
    rng = np.random.default_rng(3)
    for x, y in rng.random((count, 2)):
        tell(optimizer, {"x": x, "y": y})


def tell(optimizer: Optimizer, params: dict[str, float]) -> None:
    x, y = params["x"], params["y"]
    values = {one.name: x + y / (1 + i) for i, one in enumerate(optimizer.constraints)}
    optimizer.tell(params, CRASHED if x > 0.8 else x * x + y, **values)


@pytest.mark.parametrize(("constraints", "first", "last"), [(8, 10, 22), (1, 100, 112), (0, 10, 30)])
def test_learning_follows_the_schedule(counts: Counter[str], constraints: int, first: int, last: int) -> None:
    optimizer = Optimizer(SQUARE, constraints=[f"g{i}" for i in range(constraints)])
    tell_some(optimizer, first)
    for _ in range(first, last):
        suggestion = optimizer.ask()
        optimizer.best()
        tell(optimizer, suggestion)
    sizes = {learning_size(count) for count in range(first, last)}
    assert counts == {"learn": len(sizes) * (1 + constraints), "fit": (last - first) * (1 + constraints)}


def test_threads_share_what_was_learned(counts: Counter[str]) -> None:
    """Six threads that look at and tell one optimizer: no error, and nothing is computed twice for the same trials."""
    optimizer = Optimizer(SQUARE, constraints=["g", "h"])
    tell_some(optimizer, 12)
    problems: list[BaseException] = []

    def guarded(work) -> None:
        try:
            for _ in range(4):
                work()
        except BaseException as error:  # whatever it is, the test must hear of it
            problems.append(error)

    def look() -> None:
        assert optimizer.surrogate().any_cost
        assert set(optimizer.limits) <= {"objective", "g", "h"}

    work = [optimizer.best, look, look, optimizer.best, lambda: tell(optimizer, optimizer.ask()), optimizer.score]
    threads = [threading.Thread(target=guarded, args=(one,)) for one in work]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert problems == []
    assert len(optimizer.trials) == 16
    assert counts["fit"] <= 5 * 3  # 12 to 16 trials, three outputs
