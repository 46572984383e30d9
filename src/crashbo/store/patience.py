"""A storage that waits for its database: a server that restarts, a network that is down, a disk that is full.

Everything Optuna does with a database is one transaction. Those that may be repeated without doing anything twice are
repeated until they get through; the others are written by `crashbo.adapters.optuna.transactions`, with a key.
"""

import logging
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import optuna
from optuna.storages import RDBStorage

from crashbo.adapters.optuna.internals import backend_of

R = TypeVar("R")

_SHORTEST, _LONGEST = 0.1, 5.0  # seconds between two attempts
_SQLITE = re.compile(r"locked|disk is full|disk I/O error|unable to open database file|busy")
_REFUSED = re.compile(r"password authentication|no password supplied|pg_hba|does not exist|permission denied|read-only")
_ADVICE = re.compile(r"\.? (This probably means the server|Is the server running).*")
_REPEATABLE = (
    "_get_trials",
    "_set_trial_param",
    "get_all_studies",
    "get_study_id_from_name",
    "get_study_name_from_id",
    "get_study_directions",
    "get_study_user_attrs",
    "get_study_system_attrs",
    "get_trial",
    "get_trial_id_from_study_id_trial_number",
    "set_study_user_attr",
    "set_trial_system_attr",
    "set_trial_user_attr",
)
# Both would print many lines about every lost connection.
logging.getLogger("optuna.storages._rdb.storage").setLevel(logging.ERROR)
logging.getLogger("sqlalchemy.pool").setLevel(logging.CRITICAL)


@dataclass
class Patience:
    """How long to wait for a database, and whom to tell.

    Attributes:
        seconds: to wait at most; 0: not at all.
        notice: called once when the database goes away, with what it said.
        stop: ends the waiting when set.
        outages: how many there have been.
    """

    seconds: float = 0.0
    notice: Callable[[str], None] = lambda words: None
    stop: threading.Event = field(default_factory=threading.Event)
    outages: int = 0
    _away: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def repeat(self, attempt: Callable[[], R]) -> R:
        """Return what an attempt returns, once it gets through."""
        until, pause = time.monotonic() + self.seconds, _SHORTEST
        while True:
            try:
                found = attempt()
            except Exception as error:
                words = said_when_away(error)
                if not words or time.monotonic() + pause > until or self.stop.is_set():
                    raise
                self._went(words)
            else:
                self._away = False
                return found
            self.stop.wait(pause)  # if it is set there is one last attempt
            pause = min(2 * pause, _LONGEST)

    def _went(self, words: str) -> None:
        with self._lock:
            if self._away:
                return
            self._away = True
            self.outages += 1
        self.notice(words)


class PatientStorage(RDBStorage):
    """Optuna's storage on a database, which may go away for a while."""

    def __init__(self, *args: Any, **options: Any) -> None:
        self.patience = Patience()
        super().__init__(*args, **options)

    def patiently(self, attempt: Callable[[], R]) -> R:
        """Carry out a transaction that may be repeated."""
        return self.patience.repeat(attempt)


def _patient(name: str) -> Callable[..., Any]:
    plain = getattr(RDBStorage, name)

    def repeated(self: PatientStorage, *args: Any, **options: Any) -> Any:
        return self.patiently(lambda: plain(self, *args, **options))

    repeated.__name__, repeated.__doc__ = name, plain.__doc__
    return repeated


for _name in _REPEATABLE:
    setattr(PatientStorage, _name, _patient(_name))


def patience_of(study: optuna.Study) -> Patience:
    """Return the patience of an Optuna study's storage, to be changed; one that nobody asks if it has none."""
    found = getattr(backend_of(study), "patience", None)
    return found if isinstance(found, Patience) else Patience()


def said_when_away(error: BaseException) -> str:
    """What a database said that cannot be reached or written now; empty if waiting would not help."""
    from sqlalchemy.exc import DBAPIError, OperationalError

    one: BaseException | None = error
    while one is not None and not isinstance(one, DBAPIError):
        one = one.__cause__ or one.__context__  # Optuna may go on with a lost connection, and fail again
    if one is None:
        return ""
    words = _ADVICE.sub("", " ".join(str(one.orig).split()))
    if type(one.orig).__module__.startswith("sqlite3"):
        return words if _SQLITE.search(words) else ""
    lost = one.connection_invalidated or isinstance(one, OperationalError)
    return words if lost and not _REFUSED.search(words) else ""
