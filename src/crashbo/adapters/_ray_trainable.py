"""Trainables of Ray Tune whose exceptions are reported as crashes. Workers import this, so it is light."""

import functools
import inspect
import math
import traceback
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from crashbo.problem.outcome import Crash

Errors = tuple[type[BaseException], ...]


def crash_result(error: Exception, metric: str) -> dict[str, Any]:
    """Return what a crashed trial reports: no cost, the reason, and what was measured before."""
    if isinstance(error, Crash):
        return {metric: math.nan, "crash": error.reason, **error.values}
    traceback.print_exception(error)  # it might be a bug rather than a crash: leave it in the worker's log
    return {metric: math.nan, "crash": f"{type(error).__name__}: {error}"}


def crashing_function(trainable: Callable[..., Any], metric: str, transient: Errors) -> Callable[..., Any]:
    """Wrap a function trainable, one that yields too."""
    if inspect.isgeneratorfunction(trainable):

        @functools.wraps(trainable)
        def generate(config: dict[str, Any]) -> Iterator[Any]:
            try:
                yield from trainable(config)
            except transient:
                raise
            except Exception as error:
                yield crash_result(error, metric)

        return generate

    @functools.wraps(trainable)
    def call(config: dict[str, Any]) -> Any:
        try:
            return trainable(config)
        except transient:
            raise
        except Exception as error:
            return crash_result(error, metric)

    return call


def crashing_class(trainable: type[Any], metric: str, transient: Errors) -> type[Any]:
    """Wrap a class trainable: errors in `setup` and `step` end the trial as a crash."""

    def setup(self: Any, config: dict[str, Any]) -> None:
        self._crashbo_crash = None
        _guarded(self, "setup", trainable.setup, config)

    def step(self: Any) -> Any:
        result = None if self._crashbo_crash else _guarded(self, "step", trainable.step)
        return {**self._crashbo_crash, "done": True} if self._crashbo_crash else result

    def save_checkpoint(self: Any, checkpoint_dir: str) -> Any:
        return {} if self._crashbo_crash else trainable.save_checkpoint(self, checkpoint_dir)

    def reset_config(self: Any, new_config: dict[str, Any]) -> bool:
        return not self._crashbo_crash and bool(trainable.reset_config(self, new_config))  # a new actor after a crash

    def cleanup(self: Any) -> None:
        if not (self._crashbo_crash and self._crashbo_crash_in == "setup"):
            trainable.cleanup(self)

    def _guarded(self: Any, where: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(self, *arguments)
        except transient:
            raise
        except Exception as error:
            self._crashbo_crash, self._crashbo_crash_in = crash_result(error, metric), where
            return None

    parts = (setup, step, save_checkpoint, reset_config, cleanup)
    body = {part.__name__: part for part in parts} | {"__doc__": trainable.__doc__, "__module__": trainable.__module__}
    return type(trainable.__name__, (trainable,), body)


def wrap(trainable: Any, metric: str, transient: Sequence[type[BaseException]]) -> Any:
    """Wrap a function or class trainable."""
    build = crashing_class if inspect.isclass(trainable) else crashing_function
    return build(trainable, metric, tuple(transient))
