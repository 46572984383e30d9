"""Few threads for small matrices: set while computing, given back afterwards, by several threads at once too."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from crashbo import Optimizer, Space
from crashbo.history import History
from crashbo.strategies.base import Suggested
from crashbo.strategies.default import DefaultStrategy
from crashbo.threads import few_threads


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


@pytest.fixture(autouse=True)
def two_threads():
    """Libraries that would use two, whatever the machine."""
    with ThreadpoolController().limit(limits=2):
        yield


def test_few_trials_get_one_thread_and_the_rest_comes_back() -> None:
    before = blas_threads()
    assert before == {2}
    with few_threads(30):
        assert blas_threads() == {1}
        with few_threads(30):
            assert blas_threads() == {1}
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_many_trials_keep_their_threads() -> None:
    with few_threads(5000):
        assert blas_threads() == {2}


def test_threads_come_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="broken"), few_threads(3):
        raise ValueError("broken")
    assert blas_threads() == {2}


def test_several_threads_leave_the_limit_as_they_found_it() -> None:
    inside, leave = threading.Event(), threading.Event()

    def stay() -> None:
        with few_threads(10):
            inside.set()
            leave.wait(10)

    other = threading.Thread(target=stay)
    with few_threads(10):
        other.start()
        assert inside.wait(10)
    leave.set()
    other.join()
    assert blas_threads() == {2}
    with few_threads(10):
        assert blas_threads() == {1}


def test_suggestions_are_computed_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    suggest = DefaultStrategy.suggest

    def watched(self: DefaultStrategy, history: History) -> Suggested:
        seen.append(blas_threads())
        return suggest(self, history)

    monkeypatch.setattr(DefaultStrategy, "suggest", watched)
    optimizer = Optimizer(Space({"x": (0.0, 1.0)}), seed=0)
    for x in (0.1, 0.4, 0.8):
        optimizer.tell({"x": x}, x)
    optimizer.ask()
    assert seen == [{1}]
    assert blas_threads() == {2}
