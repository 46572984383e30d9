"""The memory of an optimizer: bounded by kind, least recently used first, each result computed once whoever asks."""

import pickle
import threading
from dataclasses import replace

import pytest

from crashbo import Optimizer
from crashbo.model.memory import Memory
from crashbo.model.numbers import NUMBERS
from crashbo.search.default import DefaultStrategy


def test_a_result_is_computed_once_and_a_hit_keeps_it() -> None:
    memory, made = Memory(kept=2), list[int]()

    def get(key: int) -> int:
        return int(memory.once("models", key, lambda: made.append(key) or key))

    for key in (1, 2, 1, 3, 1, 2):
        assert get(key) == key
    assert made == [1, 2, 3, 2]  # 1 was used all along; 2 had to go when 3 came


def test_kinds_do_not_crowd_each_other_out() -> None:
    memory, made = Memory(kept=2), list[str]()
    for _ in range(3):
        for kind in map(str, range(50)):
            memory.once(kind, "trials", lambda kind=kind: made.append(kind))
    assert len(made) == 50


def test_threads_that_need_the_same_wait_for_one_of_them() -> None:
    memory, made, begun, go = Memory(), list[int](), threading.Event(), threading.Event()

    def make() -> int:
        made.append(1)
        begun.set()
        assert go.wait(10)
        return 7

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(memory.once("a", 1, make))) for _ in range(4)]
    threads[0].start()
    assert begun.wait(10)
    for one in threads[1:]:
        one.start()
    assert memory.once("a", 2, lambda: 8) == 8  # something else need not wait
    go.set()
    for one in threads:
        one.join()
    assert found == [7] * 4
    assert made == [1]


def test_a_failure_is_not_kept() -> None:
    memory = Memory()
    with pytest.raises(ZeroDivisionError):
        memory.once("a", 1, lambda: 1 // 0)
    assert memory.once("a", 1, lambda: 5) == 5


def test_a_copy_begins_empty() -> None:
    memory = Memory()
    assert memory.once("a", 1, lambda: 5) == 5
    assert pickle.loads(pickle.dumps(memory)).once("a", 1, lambda: 6) == 6


def test_copies_share_what_was_learned_and_strategies_keep_nothing() -> None:
    mine = DefaultStrategy()
    optimizer = Optimizer({"x": (0.0, 1.0)}, strategy=mine)
    for x in (0.1, 0.5, 0.9):
        optimizer.tell({"x": x}, x * x)
    models = optimizer.surrogate().objective
    assert optimizer.copy().surrogate().objective is models
    assert optimizer.with_pending([{"x": 0.3}]).surrogate().objective is models
    assert Optimizer.restore(optimizer.history).surrogate().objective is not models
    assert mine.surrogate(optimizer.history).objective is not models
    other = Optimizer.restore(optimizer.history)
    other.adopt(optimizer)
    assert other.surrogate().objective is models


def test_what_other_numbers_taught_is_not_used() -> None:
    optimizer = Optimizer({"x": (0.0, 1.0)})
    for x in (0.1, 0.5, 0.9):
        optimizer.tell({"x": x}, x * x)
    other = Optimizer({"x": (0.0, 1.0)}, strategy=DefaultStrategy(replace(NUMBERS, most_models=1)))
    for trial in optimizer.trials:
        other.tell(trial.params, trial.objective)
    optimizer.surrogate()
    other.adopt(optimizer)
    assert len(other.surrogate().objective.weights) == 1 < len(optimizer.surrogate().objective.weights)
