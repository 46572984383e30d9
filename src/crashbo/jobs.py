"""Run a function for several params at the same time, in threads or in processes of their own."""

import contextlib
import multiprocessing
import queue
import signal
import threading
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

from crashbo.errors import InputError

Function = Callable[[dict[str, Any]], Any]
_LOOK = 0.2  # seconds after which a wait looks up, so that Ctrl-C is heard on every system


class Jobs:
    """Calls of a function under way.

    With one job at a time, in no process of its own, it is called by whoever waits, as a plain function call would be.
    """

    def __init__(self, function: Function, count: int, *, processes: bool = False) -> None:
        self._function, self._count, self._processes = function, count, processes
        self._here: list[tuple[int, dict[str, Any]]] = []
        self._ended: queue.SimpleQueue[tuple[int, Any, BaseException | None]] = queue.SimpleQueue()
        self._running: dict[int, BaseProcess | None] = {}

    @property
    def free(self) -> int:
        """How many more may be started now."""
        return self._count - len(self._running)

    def start(self, key: int, params: Mapping[str, Any]) -> None:
        """Begin a call, known by its key from now on."""
        self._running[key] = None
        if self._count == 1 and not self._processes:
            self._here.append((key, dict(params)))
            return
        threading.Thread(target=self._run, args=(key, dict(params)), daemon=True).start()

    def wait(self) -> tuple[int, Any, BaseException | None]:
        """Wait for the next call to end: its key, what it returned, and what it raised."""
        while True:
            if self._here:
                self._run(*self._here.pop())
            with contextlib.suppress(queue.Empty):
                ended = self._ended.get(timeout=_LOOK)
                del self._running[ended[0]]
                return ended

    def stop(self) -> None:
        """End the processes that still run. Threads cannot be ended: what they return is lost."""
        for process in list(self._running.values()):
            if process is not None:
                process.terminate()

    def _run(self, key: int, params: dict[str, Any]) -> None:
        try:
            said = self._in_process(key, params) if self._processes else self._function(params)
        except Exception as error:
            self._ended.put((key, None, error))
        else:
            self._ended.put((key, said, None))

    def _in_process(self, key: int, params: dict[str, Any]) -> Any:
        methods = multiprocessing.get_all_start_methods()
        context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        mine, theirs = context.Pipe(duplex=False)
        process = context.Process(target=_call, args=(theirs, self._function, params), daemon=True)
        try:
            process.start()
        except Exception as error:  # whatever pickle stumbles over
            raise InputError(f"`rollout` must be a function that another process can import ({error}).") from error
        self._running[key] = process
        theirs.close()
        try:
            said, raised = mine.recv()
        except EOFError:
            process.join()
            raise ChildProcessError(f"the process of the trial ended with exit code {process.exitcode}") from None
        finally:
            mine.close()
        process.join()
        if raised is not None:
            raise raised
        return said


def _call(pipe: Connection, function: Function, params: dict[str, Any]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that waits
    try:
        answer: tuple[Any, BaseException | None] = function(params), None
    except Exception as error:
        answer = None, error
    try:
        pipe.send(answer)
    except Exception as error:  # what cannot be pickled
        pipe.send((None, TypeError(f"what the trial gave cannot be sent to another process: {error}")))
