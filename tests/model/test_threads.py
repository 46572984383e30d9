"""Few threads for small matrices: set while computing, given back afterwards, by several threads at once too."""

import threading

import pytest
from threadpoolctl import ThreadpoolController, threadpool_info

from crashbo import Optimizer, Space
from crashbo.model.threads import few_threads
from crashbo.problem.history import History
from crashbo.search.default import DefaultStrategy
from crashbo.search.strategy import Suggested


def blas_threads() -> set[int]:
    return {one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"}


def elsewhere(work) -> None:
    """Do it in a thread that ends: since threadpoolctl 3.8 the thread that sets a limit owns it while it lives."""
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


@pytest.fixture(autouse=True)
def two_threads():
    """Libraries that would use two, whatever the machine."""
    limits = []
    elsewhere(lambda: limits.append(ThreadpoolController().limit(limits=2)))
    yield
    elsewhere(limits[0].restore_original_limits)


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


@pytest.mark.parametrize("first_out", [0, 1])
def test_computations_that_overlap_leave_the_limit_as_they_found_it(first_out: int) -> None:
    """Two computations of two threads, begun one after the other and ended in either order."""
    inside, leave = [threading.Event() for _ in range(2)], [threading.Event() for _ in range(2)]

    def stay(i: int) -> None:
        with few_threads(10):
            inside[i].set()
            assert leave[i].wait(10)

    threads = [threading.Thread(target=stay, args=(i,)) for i in range(2)]
    for i in range(2):
        threads[i].start()
        assert inside[i].wait(10)
    for i in (first_out, 1 - first_out):
        assert blas_threads() == {1}
        leave[i].set()
        threads[i].join()
    assert blas_threads() == {2}


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
