"""Many runs side by side, one thread each."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from typing import Any, TypeAlias

from threadpoolctl import threadpool_limits

Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]
Progress: TypeAlias = Callable[[int, int], None]


def _job(arguments: Job) -> Any:
    function, positional, named = arguments
    with threadpool_limits(1):
        return function(*positional, **named)


def side_by_side(jobs: list[Job]) -> Iterator[Any]:
    """Run jobs in as many processes as there are cores, one thread each; yields as they finish."""
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers == 1:
        yield from map(_job, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_job, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def counted(results: Iterator[Any], total: int, progress: Progress | None) -> list[Any]:
    """All results, saying after each how many are there."""
    found = []
    for one in results:
        found.append(one)
        if progress is not None:
            progress(len(found), total)
    return found
