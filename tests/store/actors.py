"""Processes that write on studies when told to, and can be killed before any of their writes."""

import os
import signal
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from crashbo.errors import CrashBOError
from crashbo.store.storage import Place
from crashbo.store.study import Study, open_study
from tests.processes import processes
from tests.store.interrupting import WRITES, die_before_write

PATIENCE = 60.0  # seconds that an actor waits for its database


@dataclass
class Fate:
    """How many writes a process has left; None: as many as it likes."""

    left: int | None = None

    def pass_by(self) -> None:
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.left is not None:
            self.left -= 1

    def watch(self) -> None:
        """Count every write and commit of this process."""
        from sqlalchemy import event
        from sqlalchemy.engine import Engine

        def look(connection: object, cursor: object, statement: str, *rest: object) -> None:
            if statement.lstrip().upper().startswith(WRITES):
                self.pass_by()

        event.listen(Engine, "before_cursor_execute", look)
        event.listen(Engine, "commit", lambda connection: self.pass_by())


def act(study: Study, do: str, arguments: dict[str, Any]) -> Any:
    """Carry out one command."""
    from crashbo.console.desk import Desk, Offer
    from crashbo.store import recording
    from crashbo.store.asking import ask
    from crashbo.store.programs import Program
    from crashbo.store.running import Runner

    if do == "ask":
        asked = ask(study)
        return None if asked is None else (asked.number, asked.params)
    if do == "run":
        runner = Runner(study, Program(("echo", "{x} reach=1")), trials=arguments["trials"])
        runner._be_patient = lambda: None  # type: ignore[method-assign]  (as patient as the others)
        return runner.run()
    if do == "skip":
        offer = Offer("", "", 10**9, arguments["params"])
        return Desk(study).skip(offer, key=arguments["key"])
    return getattr(recording, do)(study, **arguments)


def act_and_die(place: Place, deaths: int, command: str, number: int, options: dict[str, Any]) -> None:
    """In a process of its own: write on a trial and die before that write."""
    from crashbo.store import recording
    from crashbo.store.asking import ask
    from crashbo.store.importing import import_file

    study = open_study(place, quick=True)
    die_before_write(deaths)
    if command == "ask":
        ask(study)
    elif command == "import":
        import_file(study, options["path"])
    else:
        getattr(recording, command)(study, number, **options)


def open_patiently(place: Place) -> Study:
    """Open a study whose server may be away."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return open_study(place, quick=True)
        except CrashBOError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)  # before it asks the server again


def live(orders: Connection) -> None:
    """Do as told until the other end is closed."""
    from crashbo.store.patience import patience_of

    fate, studies = Fate(), {}
    fate.watch()
    while True:
        try:
            place, do, arguments, left = orders.recv()
        except EOFError:
            return
        if place not in studies:
            studies.clear()
            studies[place] = open_patiently(Place(*place))
            patience_of(studies[place].inner).seconds = PATIENCE
        fate.left = left
        try:
            answer = ("done", act(studies[place], do, arguments))
        except CrashBOError as error:
            answer = ("refused", str(error))
        fate.left = None
        orders.send(answer)


@dataclass
class Actor:
    """One such process; another takes its place when it is killed.

    Attributes:
        kills: how many there were.
    """

    kills: int = 0
    _process: Any = field(default=None)
    _orders: Any = field(default=None)

    def send(self, place: Place, do: str, arguments: dict[str, Any], left: int | None) -> None:
        """Let it begin; it dies before the write of that number, if there is one."""
        if self._process is None:
            self._orders, theirs = processes().Pipe()
            self._process = processes().Process(target=live, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        self._orders.send(((place.url, place.study), do, arguments, left))

    def answer(self) -> tuple[str, Any]:
        """What came of it: "done" with a result, "refused" with a reason, or "lost"."""
        try:
            assert self._orders.poll(120), "it takes too long"
            found: tuple[str, Any] = self._orders.recv()
            return found
        except EOFError:
            self._process.join(20)
            assert self._process.exitcode == -signal.SIGKILL, self._process.exitcode
            self.close()
            self.kills += 1
            return "lost", None

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._orders.close()
            self._process.join(20)
            self._process = None
