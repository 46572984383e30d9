"""When hyperparameters are learned."""

import numpy as np
import pytest

from crashbo import CRASHED, Optimizer
from crashbo.learning import Learning, learning_sizes


def test_sizes_grow_with_the_trials_up_to_a_few_hundred() -> None:
    for n in range(1, 250):
        full, size = learning_sizes(n)
        assert full <= size <= n
        assert n - size <= max(1, n // 10)
        assert n - full <= max(1, n // 4)
    assert learning_sizes(20) == (18, 20)
    assert len({learning_sizes(n) for n in range(100, 200)}) <= 12
    assert learning_sizes(1000) == learning_sizes(300) <= (250, 250)


class Log:
    """Builds nothing, and notes what it was asked for."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, object, bool]] = []

    def __call__(self, count, earlier=None, *, relearn=False):
        self.asked.append((count, earlier, relearn))
        return f"{count} after {earlier}" if earlier else str(count)


def test_models_are_made_once_and_from_the_models_before() -> None:
    log = Log()
    learning = Learning(log)
    assert learning.models(25) == "25 after 24 after 22"
    assert log.asked == [(22, None, False), (24, "22", True), (25, "24 after 22", False)]
    learning.models(25)
    assert len(log.asked) == 3
    assert learning.models(26) == "26 after 22"
    assert learning.models(27) == "27"
    assert [count for count, _, _ in log.asked[3:]] == [26, 27]


def test_models_do_not_depend_on_when_they_were_asked_for() -> None:
    steady, late = Learning(Log()), Learning(Log())
    for n in range(1, 60):
        found = steady.models(n)
        if n % 7 == 0:
            assert late.models(n) == found
            assert Learning(Log()).models(n) == found


def test_fixed_hyperparameters_are_used_afresh_every_time() -> None:
    log = Log()
    learning = Learning(log, every_time=True)
    assert [learning.models(n) for n in (25, 26)] == ["25", "26"]


def test_models_of_the_same_trials_are_taken_over() -> None:
    known, log = Learning(Log()), Log()
    known.models(26)
    heir = Learning(log)
    heir.adopt(known, lambda n: n <= 25)
    assert heir.known == (22,)
    heir.adopt(known, lambda n: n <= 26)
    assert heir.known == (22, 26, 26)
    heir.adopt(Learning(Log()), lambda n: True)
    assert heir.known == (22, 26, 26)


@pytest.mark.parametrize("constraint", [False, True])
def test_a_search_from_nearby_finds_what_one_from_scratch_finds(constraint: bool) -> None:
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, constraints=["g"] if constraint else [])
    for x, y in np.random.default_rng(0).random((26, 2)):
        others = {"g": np.cos(4 * x) + y**2} if constraint else {}
        optimizer.tell({"x": x, "y": y}, CRASHED if x > 0.8 else (x - 0.3) ** 2 + np.sin(5 * y), **others)
    near, scratch = optimizer.surrogates(), optimizer._build(26)
    names = ["objective", *near.constraints]
    for name in names:
        one, other = (
            vars(models)[name] if name == "objective" else models.constraints[name] for models in (near, scratch)
        )
        np.testing.assert_allclose(one.lengthscales.detach(), other.lengthscales.detach(), rtol=0.05)
    assert near.correlation == pytest.approx(scratch.correlation, abs=0.05)
