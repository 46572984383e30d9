"""Writes of several parts as one: all of an outcome is stored, or nothing.

Optuna's storage interface writes the marks of a trial, its value and its state one after the other: a process that dies
in between, or two that write at the same time, leave a mixture. Here they go into Optuna's own tables in one
transaction, so every Optuna tool still sees them. A table of our own would have to be kept in step with those.

Each write carries a key, a text that its writer made up. Where the answer was lost, and the same is written again, the
key tells a write that had arrived from one of somebody else.
"""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Protocol, TypeVar
from uuid import uuid4

import optuna
from optuna.distributions import BaseDistribution, distribution_to_json
from optuna.trial import FrozenTrial, TrialState

from crashbo.integrations.optuna.internals import backend_of, storage_of, trial_id

R = TypeVar("R")

CRASH, TRANSIENT, CONSTRAINT = "crash", "transient", "constraint:"  # of an outcome, beside state and value
CREATED, TOLD = "crashbo:created", "crashbo:told"  # the keys of what began a trial, and of what ended it
Change = Callable[[list[dict[str, Any]]], dict[str, Any] | None]


def new_key() -> str:
    """Return a key that nobody else has."""
    return uuid4().hex


@dataclass(frozen=True)
class Ending:
    """All that is written when a trial ends.

    Attributes:
        state: it ends in.
        value: its cost, None without one.
        marks: user attributes; those of an earlier attempt that was cut short are removed.
        key: of this write.
        source: the state it must be in.
    """

    state: TrialState
    value: float | None = None
    marks: Mapping[str, Any] = field(default_factory=dict)
    key: str = field(default_factory=new_key)
    source: TrialState = TrialState.RUNNING

    @property
    def all_marks(self) -> dict[str, Any]:
        return {**self.marks, TOLD: self.key}


@dataclass(frozen=True)
class Beginning:
    """All that is written when a trial of the queue begins.

    Attributes:
        marks: user attributes.
        params: with their distributions; may be empty, if they are chosen later.
        key: of this write.
    """

    marks: Mapping[str, Any] = field(default_factory=dict)
    params: Mapping[str, tuple[Any, BaseDistribution]] = field(default_factory=dict)
    key: str = field(default_factory=new_key)


class Writer(Protocol):
    """Writes on one kind of storage."""

    def finish(self, trial_id: int, ending: Ending) -> bool:
        """End a trial; False if it was not in the state it must be in, and that was not our own doing."""

    def begin(self, trial_id: int, beginning: Beginning) -> bool:
        """Start a trial of the queue; False if somebody else did."""

    def create(self, study_id: int, trial: FrozenTrial, key: str) -> int:
        """Store a whole trial and return its id; the one that is there already if the key is."""

    def add_entry(self, study_id: int, name: str, change: Change) -> list[dict[str, Any]]:
        """Add what `change` makes of a list among the study's attributes to that list; return all of it."""


def writer(study: optuna.Study) -> Writer:
    """Return what writes on a study's storage."""
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    storage: Any = storage_of(study)
    inner: Any = backend_of(study)
    if isinstance(inner, RDBStorage):
        return _Database(inner)
    if isinstance(storage, JournalStorage) and isinstance(inner, JournalFileBackend):
        return _Journal(storage, inner)
    return _Plain(storage)


def _outdated(marks: Mapping[str, Any], ending: Ending) -> list[str]:
    """Marks of an outcome that an earlier attempt left behind."""
    known = [name for name in marks if name in (CRASH, TRANSIENT, TOLD) or name.startswith(CONSTRAINT)]
    return [name for name in known if name not in ending.all_marks]


# --- a database ------------------------------------------------------------------------------------


class _Database:
    """SQLite, PostgreSQL and others: a transaction on Optuna's tables."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def _run(self, work: Callable[[Any], R]) -> R:
        """Carry out a transaction; a storage that waits for its database repeats it as a whole."""
        from optuna.storages._rdb.storage import _create_scoped_session

        def attempt() -> R:
            with _create_scoped_session(self.storage.scoped_session) as session:
                return work(session)

        patiently: Callable[[Callable[[], R]], R] = getattr(self.storage, "patiently", lambda one: one())
        return patiently(attempt)

    def finish(self, trial_id: int, ending: Ending) -> bool:
        from optuna.storages._rdb import models

        def work(session: Any) -> bool:
            values = {"state": ending.state, "_datetime_complete_utc": _now()}
            if not _move(session, trial_id, ending.source, values):
                return _mark(session, trial_id, TOLD) == ending.key
            marks = models.TrialUserAttributeModel
            mine = session.query(marks).filter(marks.trial_id == trial_id)
            there = [row.key for row in mine.with_entities(marks.key)]
            gone = [*_outdated(dict.fromkeys(there), ending), *ending.all_marks]
            mine.filter(marks.key.in_(gone)).delete(synchronize_session=False)
            session.add_all(_rows(trial_id, ending.all_marks))
            if ending.value is not None:
                stored, kind = models.TrialValueModel.value_to_stored_repr(ending.value)
                session.query(models.TrialValueModel).filter_by(trial_id=trial_id).delete(synchronize_session=False)
                session.add(models.TrialValueModel(trial_id=trial_id, objective=0, value=stored, value_type=kind))
            return True

        return self._run(work)

    def begin(self, trial_id: int, beginning: Beginning) -> bool:
        from optuna.storages._rdb import models

        def work(session: Any) -> bool:
            values = {"state": TrialState.RUNNING, "_datetime_start_utc": _now()}
            if not _move(session, trial_id, TrialState.WAITING, values):
                return _mark(session, trial_id, CREATED) == beginning.key
            session.add_all(_rows(trial_id, {**beginning.marks, CREATED: beginning.key}))
            for name, (value, distribution) in beginning.params.items():
                session.add(
                    models.TrialParamModel(
                        trial_id=trial_id,
                        param_name=name,
                        param_value=distribution.to_internal_repr(value),
                        distribution_json=distribution_to_json(distribution),
                    )
                )
            return True

        return self._run(work)

    def create(self, study_id: int, trial: FrozenTrial, key: str) -> int:
        from optuna.storages._rdb import models

        def work(session: Any) -> int:
            _lock(session, study_id)  # also numbers trials one at a time
            marks = models.TrialUserAttributeModel
            found = (
                session.query(models.TrialModel.trial_id)
                .join(marks, marks.trial_id == models.TrialModel.trial_id)
                .filter(models.TrialModel.study_id == study_id)
                .filter(marks.key == CREATED, marks.value_json == json.dumps(key))
                .first()
            )
            if found is not None:
                return int(found[0])
            return int(self.storage._get_prepared_new_trial(study_id, with_key(trial, key), session).trial_id)

        return self._run(work)

    def add_entry(self, study_id: int, name: str, change: Change) -> list[dict[str, Any]]:
        from optuna.storages._rdb import models

        def work(session: Any) -> list[dict[str, Any]]:
            _lock(session, study_id)
            table = models.StudyUserAttributeModel
            row = session.query(table).filter(table.study_id == study_id, table.key == name).one_or_none()
            before = [] if row is None else json.loads(row.value_json)
            entry = change(before)
            after = before if entry is None else [*before, entry]
            if row is None:
                session.add(table(study_id=study_id, key=name, value_json=json.dumps(after)))
            else:
                row.value_json = json.dumps(after)
            return after

        return self._run(work)


def _now() -> datetime:
    """The time as Optuna's tables hold it: UTC, and they do not say so."""
    return datetime.now(UTC).replace(tzinfo=None)


def _move(session: Any, trial_id: int, source: TrialState, values: Mapping[str, Any]) -> bool:
    """Change a trial that is in a state; whether it was. Locks the row, on any database."""
    from optuna.storages._rdb.models import TrialModel

    row = session.query(TrialModel).filter(TrialModel.trial_id == trial_id, TrialModel.state == source)
    return bool(row.update({getattr(TrialModel, name): one for name, one in values.items()}, synchronize_session=False))


def _lock(session: Any, study_id: int) -> None:
    """Let nobody else begin trials or correct them until the transaction ends; an update does so on any database."""
    from optuna.storages._rdb.models import StudyModel

    row = session.query(StudyModel).filter(StudyModel.study_id == study_id)
    if not row.update({StudyModel.study_name: StudyModel.study_name}, synchronize_session=False):
        raise KeyError(f"There is no study {study_id}.")


def _mark(session: Any, trial_id: int, name: str) -> Any:
    from optuna.storages._rdb.models import TrialUserAttributeModel as Marks

    found = session.query(Marks.value_json).filter(Marks.trial_id == trial_id, Marks.key == name).one_or_none()
    return None if found is None else json.loads(found[0])


def _rows(trial_id: int, marks: Mapping[str, Any]) -> list[Any]:
    from optuna.storages._rdb.models import TrialUserAttributeModel

    return [
        TrialUserAttributeModel(trial_id=trial_id, key=key, value_json=json.dumps(one)) for key, one in marks.items()
    ]


# --- a journal file --------------------------------------------------------------------------------


class _Journal:
    """A journal file: lines that are appended together while it is locked."""

    def __init__(self, storage: Any, backend: Any) -> None:
        self.storage, self.backend = storage, backend

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Callable[[Sequence[tuple[int, Mapping[str, Any]]]], None]]:
        """Read all there is, and give what appends lines, while nobody else can."""
        from optuna.storages.journal._file import get_lock_file

        def append(logs: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
            worker = self.storage._replay_result.worker_id
            lines = [json.dumps({"op_code": code, "worker_id": worker, **more}) + "\n" for code, more in logs]
            _append_to(self.backend._file_path, "".join(lines))
            self.storage._sync_with_backend()

        with self.storage._thread_lock, get_lock_file(self.backend._lock):
            self.storage._sync_with_backend()
            yield append

    def finish(self, trial_id: int, ending: Ending) -> bool:
        from optuna.storages.journal._storage import JournalOperation as Op

        with self._locked() as append:
            found = self.storage._replay_result.get_trial(trial_id)
            if found.state != ending.source:
                return bool(found.user_attrs.get(TOLD) == ending.key)
            marks = dict.fromkeys(_outdated(found.user_attrs, ending)) | ending.all_marks
            values = None if ending.value is None else [ending.value]
            state = {"trial_id": trial_id, "state": ending.state, "values": values, "datetime_complete": _moment()}
            append([*_mark_logs(trial_id, marks), (Op.SET_TRIAL_STATE_VALUES, state)])
        return True

    def begin(self, trial_id: int, beginning: Beginning) -> bool:
        from optuna.storages.journal._storage import JournalOperation as Op

        with self._locked() as append:
            found = self.storage._replay_result.get_trial(trial_id)
            if found.state != TrialState.WAITING:
                return bool(found.user_attrs.get(CREATED) == beginning.key)
            state = {"trial_id": trial_id, "state": TrialState.RUNNING, "values": None, "datetime_start": _moment()}
            params = [
                (
                    Op.SET_TRIAL_PARAM,
                    {
                        "trial_id": trial_id,
                        "param_name": name,
                        "param_value_internal": distribution.to_internal_repr(value),
                        "distribution": distribution_to_json(distribution),
                    },
                )
                for name, (value, distribution) in beginning.params.items()
            ]
            marks = {**beginning.marks, CREATED: beginning.key}
            append([*_mark_logs(trial_id, marks), *params, (Op.SET_TRIAL_STATE_VALUES, state)])
        return True

    def create(self, study_id: int, trial: FrozenTrial, key: str) -> int:
        """Store a whole trial, in one line; two processes that use one key at the same moment are not told apart."""
        return _create_plainly(self.storage, study_id, trial, key)

    def add_entry(self, study_id: int, name: str, change: Change) -> list[dict[str, Any]]:
        from optuna.storages.journal._storage import JournalOperation as Op

        with self._locked() as append:
            before = list(self.storage._replay_result.get_study(study_id).user_attrs.get(name, []))
            entry = change(before)
            if entry is None:
                return before
            append([(Op.SET_STUDY_USER_ATTR, {"study_id": study_id, "user_attr": {name: [*before, entry]}})])
        return [*before, entry]


def _append_to(path: str, text: str) -> None:
    import os

    with open(path, "ab") as handle:
        handle.write(text.encode())
        handle.flush()
        os.fsync(handle.fileno())


def _moment() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def _mark_logs(trial_id: int, marks: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    from optuna.storages.journal._storage import JournalOperation as Op

    return [(Op.SET_TRIAL_USER_ATTR, {"trial_id": trial_id, "user_attr": {key: one}}) for key, one in marks.items()]


# --- any other storage -----------------------------------------------------------------------------


class _Plain:
    """A storage in memory, or one we know nothing about: one thing after the other, the state last."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def finish(self, trial_id: int, ending: Ending) -> bool:
        found = self.storage.get_trial(trial_id)
        if found.state != ending.source:
            return bool(found.user_attrs.get(TOLD) == ending.key)
        for key, value in (dict.fromkeys(_outdated(found.user_attrs, ending)) | ending.all_marks).items():
            self.storage.set_trial_user_attr(trial_id, key, value)
        values = None if ending.value is None else [ending.value]
        return bool(self.storage.set_trial_state_values(trial_id, ending.state, values))

    def begin(self, trial_id: int, beginning: Beginning) -> bool:
        try:
            if not self.storage.set_trial_state_values(trial_id, TrialState.RUNNING):
                return False
        except optuna.exceptions.UpdateFinishedTrialError:
            return False
        for key, value in {**beginning.marks, CREATED: beginning.key}.items():
            self.storage.set_trial_user_attr(trial_id, key, value)
        for name, (value, distribution) in beginning.params.items():
            self.storage.set_trial_param(trial_id, name, distribution.to_internal_repr(value), distribution)
        return True

    def create(self, study_id: int, trial: FrozenTrial, key: str) -> int:
        return _create_plainly(self.storage, study_id, trial, key)

    def add_entry(self, study_id: int, name: str, change: Change) -> list[dict[str, Any]]:
        before = list(self.storage.get_study_user_attrs(study_id).get(name, []))
        entry = change(before)
        if entry is None:
            return before
        self.storage.set_study_user_attr(study_id, name, [*before, entry])
        return [*before, entry]


def _create_plainly(storage: Any, study_id: int, trial: FrozenTrial, key: str) -> int:
    for one in storage.get_all_trials(study_id, deepcopy=False):
        if one.user_attrs.get(CREATED) == key:
            return int(trial_id(one))
    return int(storage.create_new_trial(study_id, template_trial=with_key(trial, key)))


def with_key(trial: FrozenTrial, key: str) -> FrozenTrial:
    """Return a trial that carries the key of its creation."""
    import copy

    keyed = copy.copy(trial)
    keyed.user_attrs = {**trial.user_attrs, CREATED: key}
    return keyed
