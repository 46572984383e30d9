"""Kill or interrupt a process between any two things it writes, on any database."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WRITES = ("INSERT", "UPDATE", "DELETE", "BEGIN IMMEDIATE")


def die_before_write(count: int) -> None:
    """Kill this process before the write of that number, commits included; 0 is the first one."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    left = [count]

    def pass_by(*_: Any) -> None:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1

    def look(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement.lstrip().upper().startswith(WRITES):
            pass_by()

    event.listen(Engine, "before_cursor_execute", look)
    event.listen(Engine, "commit", pass_by)


@contextmanager
def meanwhile(engine: Any, count: int, act: Callable[[], object]) -> Iterator[list[bool]]:
    """Within this, let `act` happen before the transaction of that number on an engine; gives whether it did."""
    from sqlalchemy import event

    left, done = [count], [False]

    def begin(*_: Any) -> None:
        left[0] -= 1
        if left[0] == -1:
            done[0] = True
            act()

    def look(connection: object, cursor: object, statement: str, *rest: object) -> None:
        if statement == "BEGIN IMMEDIATE":  # SQLite: before the lock is taken
            begin()

    name, hook = ("before_cursor_execute", look) if engine.name == "sqlite" else ("begin", begin)
    event.listen(engine, name, hook)
    try:
        yield done
    finally:
        event.remove(engine, name, hook)
