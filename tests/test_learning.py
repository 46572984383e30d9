"""When hyperparameters are learned."""

import numpy as np
import pytest
import torch

from crashbo import CRASHED, Optimizer
from crashbo.learning import Learning, learning_sizes


def test_sizes_grow_with_the_trials_up_to_a_few_hundred() -> None:
    for n in range(1, 250):
        full, size = learning_sizes(n)
        assert full <= size <= n
        assert n - size <= max(1, n // 6)
        assert n - full <= max(1, n // 3) if n <= 100 else full == 90
    assert learning_sizes(12) == (12, 12)
    assert learning_sizes(17) == (12, 16)
    assert len({learning_sizes(n) for n in range(100, 200)}) <= 7
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
    assert learning.models(25) == "25 after 24 after 18"
    assert log.asked == [(18, None, False), (24, "18", True), (25, "24 after 18", False)]
    learning.models(25)
    assert len(log.asked) == 3
    assert learning.models(26) == "26 after 24 after 18"
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
    heir.adopt(known, lambda n: n <= 20)
    assert heir.known == (18,)
    heir.adopt(known, lambda n: n <= 26)
    assert heir.known == (18, 24, 26)
    heir.adopt(Learning(Log()), lambda n: True)
    assert heir.known == (18, 24, 26)


@pytest.mark.parametrize("constraint", [False, True])
def test_a_search_from_nearby_finds_what_one_from_scratch_finds(constraint: bool) -> None:
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, constraints=["g"] if constraint else [])
    for x, y in np.random.default_rng(0).random((26, 2)):
        others = {"g": np.cos(4 * x) + y**2} if constraint else {}
        optimizer.tell({"x": x, "y": y}, CRASHED if x > 0.8 else (x - 0.3) ** 2 + np.sin(5 * y), **others)
    near, scratch = optimizer.surrogates(), optimizer._build(26)
    X = torch.rand(200, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        for name in ["objective", *near.constraints]:
            (one, doubt), (other, _) = near.moments(X, name), scratch.moments(X, name)
            assert float((one - other).abs().max() / one.std()) < 0.1
            assert bool(doubt.isfinite().all())
        torch.testing.assert_close(near.log_success(X).exp(), scratch.log_success(X).exp(), rtol=0, atol=0.1)
