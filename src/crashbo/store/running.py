"""Run a program for trial after trial, with several workers, until the study has as many as wanted."""

import contextlib
import math
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.correcting import Correction, amend
from crashbo.adapters.optuna.transactions import new_key
from crashbo.errors import CrashBOError, InputError
from crashbo.store import recording
from crashbo.store.asking import Asked, ask, use_sampler
from crashbo.store.keeping import Result, Room, left_behind, make_room
from crashbo.store.patience import patience_of
from crashbo.store.programs import Ending, Program, execute
from crashbo.store.storage import StudyError
from crashbo.store.study import Study, counts
from crashbo.store.workers import BEAT_SECONDS, Watch, child_mark, is_gone, mark_of, put_mark, under_way

_IN_A_ROW = 5  # trials without an outcome, one after the other, that end a run

Notice = Callable[[Asked, Ending | None], None]


@dataclass
class Runner:
    """Trials of a program under way.

    Attributes:
        study: to work on.
        program: what a trial runs.
        trials: how many finished and crashed trials the study shall have in the end.
        workers: how many programs run at the same time.
        notice: called when a trial begins (no ending) and when it is stored.
        warn: called with a line when the database goes away, and when a result of an earlier run is stored.
    """

    study: Study
    program: Program
    trials: int
    workers: int = 1
    notice: Notice = lambda asked, ending: None
    warn: Callable[[str], None] = lambda line: None
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _started: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _watch: Watch = field(default_factory=Watch)
    _marks: dict[int, dict[str, Any]] = field(default_factory=dict)
    _interrupted: bool = False
    _failed_in_a_row: int = 0
    _problem: BaseException | None = None

    def run(self) -> bool:
        """Work until the study is complete; return whether it was interrupted.

        A database that goes away is waited for. Results that earlier runs could not store are stored first.

        Raises:
            CrashBOError: if trials cannot be run or stored; every finished trial is stored nevertheless, or kept
                beside the study for the next run.
        """
        self._be_patient()
        use_sampler(self.study, n_trials=self.trials)
        self._take_in()
        ended = [threading.Event() for _ in range(self.workers)]
        threads = [threading.Thread(target=self._work, args=(event,)) for event in ended]
        beats = threading.Thread(target=self._beat, daemon=True)
        for thread in [beats, *threads]:
            thread.start()
        while not all(event.is_set() for event in ended):  # `join` would take an interrupted thread for ended
            try:
                time.sleep(0.05)
            except KeyboardInterrupt:
                self.interrupt()
        self._done.set()
        self._started.set()
        for thread in [beats, *threads]:
            thread.join()
        if self._problem is not None:
            raise self._problem
        return self._interrupted

    def _be_patient(self) -> None:
        """Wait for a database that goes away, until we are stopped."""
        patience = patience_of(self.study.inner)
        patience.seconds, patience.stop = math.inf, self._stop
        patience.notice = lambda words: self.warn(f"{self.study.place} is away ({words}): waiting for it.")

    def _take_in(self) -> None:
        """Store what workers kept that are gone."""
        for room, result in left_behind(self.study.place):
            if take_in(self.study, room, result):
                self.warn(f"trial {room.number}: stored the result that an earlier run had kept.")

    def interrupt(self) -> None:
        """End the programs under way, as transient, and start no more; safe in a signal handler."""
        self._interrupted = True
        self._stop.set()

    def _work(self, ended: threading.Event) -> None:
        try:
            while not self._stop.is_set():
                asked = self._claim()
                if asked is None:
                    return
                self._try(asked)
        except BaseException as error:
            self._problem = self._problem or error
            self._stop.set()
        finally:
            ended.set()

    def _claim(self) -> Asked | None:
        """The next trial, None if there are enough; one thread at a time."""
        with self._lock:
            self._watch.release(self.study)  # trials of lost workers do not count as under way
            if self._stop.is_set() or not self._needed(self.study, -1):
                return None
            asked, begun = None, []

            def begin(number: int, worker: Mapping[str, Any]) -> None:  # its beats begin before its suggestion
                begun.append(number)
                self._marks[number] = dict(worker)

            try:
                asked = ask(self.study, kind="run", needed=self._needed, begun=begin, watch=self._watch)
            finally:
                for number in begun:
                    if asked is None or asked.number != number:
                        self._marks.pop(number, None)
            return asked

    def _needed(self, study: Study, number: int) -> bool:
        """Whether the study lacks trials, those that a run is busy with counted.

        Not counted are trials that someone asked for and has not told: nobody knows whether they will end.
        """
        tally = counts(study.definition, [record for record in study.records() if record.number != number])
        marks = [mark_of(trial) for trial in under_way(study) if trial.number != number]
        busy = sum(mark is not None and mark["kind"] == "run" for mark in marks)
        return tally["finished"] + tally["crashed"] + busy < self.trials

    def _try(self, asked: Asked) -> None:
        room = make_room(self.study.place, asked.number, asked.worker)
        try:
            self.notice(asked, None)
            ending = execute(
                self.program,
                self.study.definition,
                asked,
                stop=self._stop,
                started=lambda pid: self._has_started(asked.number, pid),
            )
        except BaseException as error:
            self._store(asked, Ending("transient", reason=str(error)), room)
            raise
        self._store(asked, ending, room)
        self.notice(asked, ending)
        self._count(ending)

    def _count(self, ending: Ending) -> None:
        """Stop if nothing but transient failures comes back."""
        if self._stop.is_set():
            return
        well = ending.status in ("finished", "crashed")
        self._failed_in_a_row = 0 if well else self._failed_in_a_row + 1
        if self._failed_in_a_row >= _IN_A_ROW:
            raise StudyError(
                f"{_IN_A_ROW} trials in a row had no outcome; the last one: {ending.reason}. "
                "Mend that, then run the same command again."
            )

    def _store(self, asked: Asked, ending: Ending, room: Room) -> None:
        """Store a result; it is on the disk before, in case that takes long or does not work at all."""
        key = new_key()
        kept = room.keep(Result(asked.number, key, ending.status, ending.objective, ending.constraints, ending.reason))
        try:
            record_ending(self.study, asked.number, ending, key)
        except StudyError as error:
            where = f" Its result is kept in {room.path}: the next run stores it." if kept else ""
            raise StudyError(f"Trial {asked.number}: {error}{where}") from error
        finally:
            self._marks.pop(asked.number, None)
        room.discard()

    def _has_started(self, number: int, pid: int) -> None:
        """Have a program's number written down, by the thread of the beats: who watches it does not wait for that."""
        self._marks[number]["child"] = child_mark(pid)
        self._started.set()

    def _beat(self) -> None:
        """Show other machines that this one is alive, and which programs it runs."""
        while not self._done.is_set():
            self._started.wait(BEAT_SECONDS)
            self._started.clear()
            for number, mark in list(self._marks.items()):
                mark["beat"] += 1
                put_mark(self.study, number, mark)


def record_ending(study: Study, number: int, ending: Ending, key: str | None = None) -> None:
    """Store what came of a program, even if the trial was given up as lost meanwhile.

    Args:
        study: of the trial.
        number: of the trial.
        ending: of its program.
        key: of this result; with the same one it is stored once.
    """
    key = key or new_key()
    try:
        if ending.status == "finished" and ending.objective is not None:
            recording.tell(study, number, ending.objective, ending.constraints, key=key)
        elif ending.status == "crashed":
            recording.crash(study, number, ending.reason, ending.constraints, key=key)
        else:
            recording.transient(study, number, ending.reason, key=key)
    except (InputError, StudyError) as error:
        if not study.trial(number).state.is_finished():
            raise
        _record_late(study, number, ending, key, error)


def _record_late(study: Study, number: int, ending: Ending, key: str, error: CrashBOError) -> None:
    """Correct a trial that another worker took for lost; leave one that has an outcome."""
    wanted = Correction(ending.status, ending.objective, ending.constraints, ending.reason) if ending.counts else None

    def make(before: Record) -> Correction:
        if not before.transient or wanted is None:
            raise error
        return wanted

    if wanted is not None:
        with study.guarded():
            amend(study.inner, number, make, key=key)
    elif not next(one for one in study.records() if one.number == number).transient:
        raise error


def take_in(study: Study, room: Room, result: Result | None) -> bool:
    """Store a result that a worker kept which is gone; whether there was one. Its file goes when it is not needed."""
    try:
        mark = mark_of(study.trial(room.number))
    except InputError:
        return False  # of a study that was deleted, and made again
    if mark is None or mark.get("token") != room.owner["worker"].get("token"):
        return False
    if result is None:
        if is_gone(room.owner["worker"]) or study.trial(room.number).state.is_finished():
            room.discard()
        return False
    status: Any = result.status
    ending = Ending(status, result.objective, result.constraints or {}, result.reason)
    with contextlib.suppress(InputError):  # somebody has told it: that counts
        record_ending(study, result.number, ending, result.key)
    room.discard()
    return True
