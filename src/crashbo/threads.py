"""One thread for small matrices: waiting for other threads would take longer than the work itself.

On a machine that is busy with something else, the experiment for example, a suggestion can take thirty times as long
with BLAS's default of one thread per core.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import scipy.linalg  # noqa: F401  (brings the libraries that are looked for)
from threadpoolctl import ThreadpoolController

_SMALL = 500  # trials


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()


@contextmanager
def few_threads(trials: int) -> Iterator[None]:
    """Compute on one thread if there are few trials, and on as many as before otherwise."""
    if trials > _SMALL:
        yield
        return
    with _libraries().limit(limits=1):
        yield
