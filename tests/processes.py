"""Processes of tests, and waiting for what they do."""

import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.context import ForkServerContext

PRELOADED = [
    "crashbo.cli",
    "crashbo.console.desk",
    "crashbo.adapters.optuna.sampler",
    "crashbo.store.importing",
    "crashbo.store.running",
    "sqlalchemy.orm",
    "tests.adapters.optuna.worker",
    "tests.store.actors",
]


def processes() -> ForkServerContext:
    """Processes that are forked from one which has imported what tests need: they start at once."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def wait_until(condition: Callable[[], object], seconds: float = 60.0, *, every: float = 0.01) -> None:
    """Wait until a condition holds, and fail where it does not in time.

    Args:
        condition: looked at again and again.
        seconds: the deadline, generous: a busy machine is slow.
        every: how long to wait between two looks.
    """
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not true after {seconds:g} s: {getattr(condition, '__qualname__', condition)}"
        time.sleep(every)
