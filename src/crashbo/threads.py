"""One thread for small matrices: waiting for other threads would take longer than the work itself.

On a machine that is busy with something else, the experiment for example, a suggestion can take thirty times as long
with BLAS's default of one thread per core.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import scipy.linalg  # noqa: F401  (brings the libraries that are looked for)
from threadpoolctl import ThreadpoolController

_SMALL = 500  # trials
_libraries = cache(ThreadpoolController)


def few_threads(trials: int) -> AbstractContextManager[Any]:
    """Compute on one thread if there are few trials, and on as many as before otherwise."""
    return nullcontext() if trials > _SMALL else _libraries().limit(limits=1)
