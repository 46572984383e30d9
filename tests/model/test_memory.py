"""The memory of a strategy: bounded by kind, least recently used first, each result computed once whoever asks."""

import threading

import pytest

from crashbo.model.memory import Memory


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
