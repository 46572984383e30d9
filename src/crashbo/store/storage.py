"""Where studies are kept: a SQLite file, any other Optuna storage, and what can go wrong there."""

import contextlib
import importlib.util
import os
import re
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashbo.errors import CrashBOError

DEFAULT_FILE, DEFAULT_STUDY = "crashbo.db", "crashbo"
_PATIENCE = 10.0  # seconds to wait for another process that is writing to a SQLite file
_OPENINGS = 20  # of a database in which other processes are making the tables
_JOURNAL = (".journal", ".log", ".jsonl")
_NEWER = "pip install -U optuna"
_SILENCE = {  # a server that says nothing is taken for gone, in seconds (the last one: milliseconds)
    "connect_timeout": 10,
    "keepalives_idle": 15,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}


class StudyError(CrashBOError, RuntimeError):
    """A study cannot be opened, read or written."""


@dataclass(frozen=True)
class Place:
    """Where a study is.

    Attributes:
        url: of the Optuna storage; may hold a password.
        study: the study's name; empty where none was said.
    """

    url: str
    study: str = ""

    @property
    def file(self) -> Path | None:
        """The file of a SQLite or journal storage; None for a server."""
        match = re.match(r"(?:sqlite(?:\+\w+)?|journal):///([^?]*)", self.url)
        return Path(match[1]) if match and match[1] not in ("", ":memory:") else None

    def __str__(self) -> str:
        """The storage for people: a file's path, or the URL without its password."""
        return str(self.file) if self.file else hide_password(self.url)

    def __repr__(self) -> str:
        return f"Place({str(self)!r}, {self.study!r})"


def find_place(storage: str | None = None, study: str | None = None) -> Place:
    """Return the place by arguments, else by CRASHBO_STORAGE and CRASHBO_STUDY, else `crashbo.db` here.

    Args:
        storage: an Optuna storage URL, or a path: of a SQLite file, or of a journal if it ends in .journal.
        study: the study's name; empty where none was said.
    """
    given = storage or os.environ.get("CRASHBO_STORAGE") or DEFAULT_FILE
    name = study or os.environ.get("CRASHBO_STUDY") or ""
    if "://" in given:
        return Place(given, name)
    scheme = "journal" if Path(given).suffix in _JOURNAL else "sqlite"
    return Place(f"{scheme}:///{given}", name)


def hide_password(text: str) -> str:
    """Return a text with the password of any URL in it replaced by ***."""
    hidden = re.sub(r"(\w+://[^\s:/@]*):[^\s]*@", r"\1:***@", text)
    return re.sub(r"(?i)\b(password|passwd|pwd)=[^&\s]+", r"\1=***", hidden)


def open_storage(place: Place, *, create: bool = False, quick: bool = False) -> Any:
    """Open the Optuna storage of a place.

    Args:
        place: to open.
        create: make the file if it is missing.
        quick: trust the tables as they are, for commands that only record a result.

    Raises:
        StudyError: without a password in its message.
    """
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    if place.file and not create and not place.file.exists():
        raise StudyError(f"There is no file {place.file}. Make a study with `crashbo new`, or say --storage.")
    if place.file and not place.file.parent.is_dir():
        raise StudyError(f"There is no folder {place.file.parent} for {place.file.name}. Make it first.")
    with storage_errors(place):
        if place.url.startswith("journal:"):
            from optuna.storages.journal import JournalFileBackend

            return optuna.storages.JournalStorage(JournalFileBackend(str(place.file)))
        storage = _open_patiently(place, quick)
        if quick:
            _check_version(storage)
        return storage


def _check_version(storage: Any) -> None:
    """Refuse tables of a newer Optuna, without alembic, whose import takes long."""
    import sqlalchemy

    from crashbo.adapters.optuna.internals import known_versions

    with storage.engine.connect() as connection:
        if not sqlalchemy.inspect(connection).has_table("alembic_version"):
            return
        found = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if found is not None and found not in known_versions():
        raise RuntimeError(f"{_NEWER} ({found})")


def _open_patiently(place: Place, quick: bool) -> Any:
    """Open a database. Of several processes that find it empty, one makes the tables; the others come again."""
    from sqlalchemy.exc import DBAPIError

    for _ in range(_OPENINGS):
        try:
            return _open_database(place, quick)
        except DBAPIError as error:
            if "already exists" not in str(error):
                raise
            time.sleep(0.5)
    return _open_database(place, quick)


def _open_database(place: Place, quick: bool) -> Any:
    from crashbo.adapters.optuna.internals import trusting_tables
    from crashbo.store.patience import PatientStorage

    sqlite = place.url.startswith("sqlite")
    arguments: dict[str, Any] = {}
    if sqlite and "timeout=" not in place.url:
        arguments["connect_args"] = {"timeout": _PATIENCE}
    elif not sqlite:
        arguments["pool_pre_ping"] = True  # a server may have been restarted between two trials
    if _with_driver(place.url).startswith("postgresql+psycopg"):
        arguments["connect_args"] = dict(_SILENCE)
    with trusting_tables() if quick else contextlib.nullcontext():
        storage = PatientStorage(
            _with_driver(place.url).replace("{", "{{").replace("}", "}}"),  # Optuna fills in a template
            engine_kwargs=arguments,
            skip_compatibility_check=quick,
            skip_table_creation=quick,
        )
    if sqlite:
        _lock_from_the_start(storage.engine)
    weakref.finalize(storage, storage.engine.dispose)  # close its connections, when the process ends at the latest
    return storage


def foreign_tables(place: Place) -> list[str]:
    """The tables of a database that has some, and none of Optuna's; empty for a new one, a journal or Optuna's own."""
    if place.url.startswith("journal:") or (place.file and not (place.file.is_file() and place.file.stat().st_size)):
        return []
    import sqlalchemy

    with storage_errors(place):
        engine = sqlalchemy.create_engine(_with_driver(place.url))
        try:
            tables = sqlalchemy.inspect(engine).get_table_names()
        finally:
            engine.dispose()
    return [] if "studies" in tables and "trials" in tables else sorted(tables)


def _with_driver(url: str) -> str:
    """Name the PostgreSQL driver that is installed: which one is the default differs between SQLAlchemy versions."""
    match = re.match(r"postgres(?:ql)?://", url)
    drivers = [name for name in ("psycopg", "psycopg2") if importlib.util.find_spec(name)]
    return f"postgresql+{drivers[0]}://{url[match.end() :]}" if match and drivers else url


def _lock_from_the_start(engine: Any) -> None:
    """Let every SQLite transaction hold the lock from its first read on.

    Otherwise two processes may both read a trial as free, and both take it.
    """
    from sqlalchemy import event

    def connect(connection: Any, record: object) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself

    def begin(connection: Any) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    event.listen(engine, "connect", connect)
    event.listen(engine, "begin", begin)
    engine.dispose()


@contextmanager
def storage_errors(place: Place, *, reading: bool = True) -> Iterator[None]:
    """Turn what a storage raises into a StudyError of one line, without any password.

    Args:
        place: of the storage.
        reading: whether nothing else happens within: then an error of any kind says that the study is damaged.
    """
    import optuna
    from optuna.exceptions import OptunaError

    try:
        yield
    except CrashBOError:
        raise
    except optuna.exceptions.UpdateFinishedTrialError as error:
        raise StudyError("The trial has been finished by another process meanwhile. Nothing was written.") from error
    except (OptunaError, ImportError, TimeoutError) as error:
        raise StudyError(_explain(place, error)) from error
    except Exception as error:
        if type(error).__module__.startswith("sqlalchemy") or _compatibility(error):
            raise StudyError(_explain(place, error)) from error
        if not reading or isinstance(error, (OSError, MemoryError)):
            raise
        words = hide_password(" ".join(f"{type(error).__name__}: {error}".split()))[:300]
        raise StudyError(f"The study in {place} is damaged: something in it cannot be read ({words}).") from error


def _compatibility(error: Exception) -> bool:
    """Whether Optuna says that the tables are of another version."""
    return isinstance(error, RuntimeError) and ("no longer compatible" in str(error) or _NEWER in str(error))


def _explain(place: Place, error: BaseException) -> str:
    """One line on what went wrong and what to do."""
    root: BaseException = error
    while root.__cause__ is not None and not hasattr(root, "orig"):
        root = root.__cause__
    words = str(getattr(root, "orig", None) or root).strip() or type(root).__name__
    detail = hide_password(" ".join(words.split()))
    if "locked" in detail:
        return f"The database {place} is locked by another process; nothing was written. Try again in a moment."
    if "readonly" in detail or "read-only" in detail:
        return f"The database {place} cannot be written. Check the permissions of the file and its folder."
    if "not a database" in detail or "no such table" in detail:
        return f"The file {place} is not an Optuna database. Say another one with --storage."
    if _NEWER in detail:
        return f"The database {place} was made by a newer version of Optuna. Update it: {_NEWER}."
    if "no longer compatible" in detail:
        return f"The database {place} was made by another version of Optuna. Run `optuna storage upgrade` on it."
    if isinstance(error, ImportError):
        return f"The storage {place} needs a database driver. For PostgreSQL: pip install 'crashbo[postgres]'."
    return f"The storage {place} cannot be used: {detail}"
