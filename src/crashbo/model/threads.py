"""One thread for small matrices: waiting for other threads would take longer than the work itself.

On a machine that is busy with something else, the experiment for example, a suggestion can take thirty times as long
with BLAS's default of one thread per core.
"""

import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (brings the libraries that are looked for)
import threadpoolctl

_SMALL = 500  # trials
_libraries = cache(threadpoolctl.ThreadpoolController)
_lock = threading.Lock()
_inside = 0  # how many computations are under way that want one thread
_limit: Any = None  # set by the first of them, lifted by the last: the libraries have one limit for all threads


def few_threads(trials: int) -> AbstractContextManager[Any]:
    """Compute on one thread if there are few trials, and on as many as before otherwise."""
    return nullcontext() if trials > _SMALL else _one_thread()


@contextmanager
def _one_thread() -> Iterator[None]:
    global _inside, _limit
    with _lock:
        if not _inside:
            _limit = _libraries().limit(limits=1)
            _let_others_change_it()
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                _limit.restore_original_limits()
                _let_others_change_it()


def _let_others_change_it() -> None:
    """Since threadpoolctl 3.8 only the thread that set OpenBLAS's limit may change it; here another one may lift it."""
    controller: Any = getattr(threadpoolctl, "OpenBLASController", None)
    if hasattr(controller, "clear_controlling_thread"):
        controller.clear_controlling_thread()
