"""Run a program for trial after trial, with several workers, until the study has as many as wanted."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from crashbo.errors import CrashBOError, InputError
from crashbo.studies import recording
from crashbo.studies.asking import Asked, ask, use_sampler
from crashbo.studies.programs import Ending, Program, execute
from crashbo.studies.storage import StudyError
from crashbo.studies.study import Study, counts
from crashbo.studies.workers import BEAT_SECONDS, Watch, child_mark, put_mark

_IN_A_ROW = 5  # trials without an outcome, one after the other, that end a run
_ATTEMPTS = 6  # to store a result, a second, two, four ... apart

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
    """

    study: Study
    program: Program
    trials: int
    workers: int = 1
    notice: Notice = lambda asked, ending: None
    _stop: threading.Event = field(default_factory=threading.Event)
    _done: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _watch: Watch = field(default_factory=Watch)
    _marks: dict[int, dict[str, Any]] = field(default_factory=dict)
    _interrupted: bool = False
    _failed_in_a_row: int = 0
    _problem: BaseException | None = None

    def run(self) -> bool:
        """Work until the study is complete; return whether it was interrupted.

        Raises:
            CrashBOError: if trials cannot be run or stored; every finished trial is stored nevertheless.
        """
        use_sampler(self.study, n_trials=self.trials)
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
        for thread in [beats, *threads]:
            thread.join()
        if self._problem is not None:
            raise self._problem
        return self._interrupted

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
        """Whether the study lacks trials, those under way counted."""
        tally = counts(study.definition, [record for record in study.records() if record.number != number])
        return tally["finished"] + tally["crashed"] + tally["pending"] < self.trials

    def _try(self, asked: Asked) -> None:
        try:
            self.notice(asked, None)
            ending = execute(
                self.program,
                self.study.definition,
                asked,
                stop=self._stop,
                started=lambda pid: self._mark(asked.number, {"child": child_mark(pid)}),
            )
        except BaseException as error:
            self._store(asked, Ending("transient", reason=str(error)))
            raise
        self._store(asked, ending)
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

    def _store(self, asked: Asked, ending: Ending) -> None:
        """Store a result, and try again if the storage is away for a while."""
        self._marks.pop(asked.number, None)
        for attempt in range(_ATTEMPTS):
            try:
                return record_ending(self.study, asked.number, ending)
            except StudyError:
                if attempt == _ATTEMPTS - 1:
                    raise
                time.sleep(2.0**attempt)
        return None

    def _mark(self, number: int, more: Mapping[str, Any]) -> None:
        mark = self._marks.get(number)
        if mark is not None:
            mark.update(more)
            put_mark(self.study, number, mark)

    def _beat(self) -> None:
        """Show other machines that this one is alive."""
        while not self._done.wait(BEAT_SECONDS):
            for number, mark in list(self._marks.items()):
                self._mark(number, {"beat": mark["beat"] + 1})


def record_ending(study: Study, number: int, ending: Ending) -> None:
    """Store what came of a program, even if the trial was given up as lost meanwhile."""
    try:
        if ending.status == "finished" and ending.objective is not None:
            recording.tell(study, number, ending.objective, ending.constraints)
        elif ending.status == "crashed":
            recording.crash(study, number, ending.reason, ending.constraints)
        else:
            recording.transient(study, number, ending.reason)
    except (InputError, StudyError) as error:
        if not study.trial(number).state.is_finished():
            raise
        _record_late(study, number, ending, error)


def _record_late(study: Study, number: int, ending: Ending, error: CrashBOError) -> None:
    """Correct a trial that another worker took for lost; leave one that has an outcome."""
    found = next(record for record in study.records() if record.number == number)
    if not found.transient:
        raise error
    if ending.status in ("finished", "crashed"):
        recording.correct(
            study,
            number,
            status=ending.status,
            objective=ending.objective,
            constraints=ending.constraints,
            reason=ending.reason,
        )
