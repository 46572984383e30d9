"""Run a function for several params at the same time, in threads or in processes of their own."""

import contextlib
import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from crashbo.errors import InputError
from crashbo.problem.suggestion import Suggestion

Function = Callable[[dict[str, Any]], Any]
Answer = tuple[Any, Exception | None]  # what a function returned, and what it raised
_LOOK = 0.2  # seconds after which a wait looks up, so that Ctrl-C is heard on every system


class Jobs:
    """Calls of a function: at most `count` of them under way. `running` has these, by the number of the suggestion."""

    def __init__(self, function: Function, count: int, *, processes: bool = False) -> None:
        self._function, self._processes, self.count = function, processes, count
        self.running: dict[int, BaseProcess | None] = {}
        self._ended: queue.SimpleQueue[tuple[Suggestion, Answer]] = queue.SimpleQueue()

    def start(self, suggestion: Suggestion) -> None:
        """Begin a call; with one at a time, in no process of its own, this is a plain function call."""
        self.running[suggestion.number] = None
        if self.count == 1 and not self._processes:
            self._run(suggestion)
        else:
            threading.Thread(target=self._run, args=(suggestion,), daemon=True).start()

    def wait(self) -> tuple[Suggestion, Answer]:
        """Wait for the next call to end."""
        while True:
            with contextlib.suppress(queue.Empty):
                suggestion, answer = self._ended.get(timeout=_LOOK)
                del self.running[suggestion.number]
                return suggestion, answer

    def stop(self) -> None:
        """End the processes that still run. Threads cannot be ended: what they return is lost."""
        for process in list(self.running.values()):
            if process is not None:
                process.terminate()

    def _run(self, suggestion: Suggestion) -> None:
        call = partial(self._in_process, suggestion.number) if self._processes else self._function
        self._ended.put((suggestion, _answer(call, dict(suggestion))))

    def _in_process(self, number: int, params: dict[str, Any]) -> Any:
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_send_answer, args=(theirs, self._function, params), daemon=True)
        try:
            process.start()
        except Exception as error:  # whatever pickle stumbles over
            raise InputError(f"`rollout` must be a function that another process can import ({error}).") from error
        self.running[number] = process
        theirs.close()
        answer: Answer | None = None
        with mine, contextlib.suppress(EOFError):
            answer = mine.recv()
        process.join()
        if answer is None:
            raise ChildProcessError(f"the process of the trial ended with exit code {process.exitcode}")
        said, raised = answer
        if raised is not None:
            raise raised
        return said


def _answer(function: Function, params: dict[str, Any]) -> Answer:
    try:
        return function(params), None
    except Exception as error:
        return None, error


def _send_answer(pipe: Connection, function: Function, params: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    try:
        pipe.send(_answer(function, params))
    except Exception as error:  # what cannot be pickled
        pipe.send((None, TypeError(f"what the trial gave cannot be sent to another process: {error}")))
