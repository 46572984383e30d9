"""Compile inner loops with numba where it is installed; run them as they are, slower, where it is not."""

from collections.abc import Callable
from typing import Any, TypeVar

try:
    from numba import njit
except ImportError:  # the extra `robot` is not installed
    njit = None

Function = TypeVar("Function", bound=Callable[..., Any])

COMPILED = njit is not None


def compiled(function: Function) -> Function:
    """Compile a function of numbers and arrays, keeping the result on disk where there is a place for it."""
    if njit is None:
        return function
    try:
        return njit(cache=True)(function)
    except RuntimeError:  # no writable folder for the cache: compile anew in every process
        return njit(function)
