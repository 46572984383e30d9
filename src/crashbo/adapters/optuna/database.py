"""SQLite, PostgreSQL and other databases: writes of several parts are transactions on Optuna's tables."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from optuna.distributions import check_distribution_compatibility, distribution_to_json, json_to_distribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.transactions import (
    CREATED,
    TOLD,
    Beginning,
    Change,
    Ending,
    Update,
    keys_of,
    outdated,
    with_key,
)

R = TypeVar("R")


class Database:
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
            gone = [*outdated(dict.fromkeys(there), ending), *ending.all_marks]
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
            rows, marks = models.TrialUserAttributeModel, {**beginning.marks, CREATED: beginning.key}
            there = session.query(rows).filter(rows.trial_id == trial_id, rows.key.in_(list(marks)))
            there.delete(synchronize_session=False)  # the key of what put it into the queue
            session.add_all(_rows(trial_id, marks))
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

    def mark(self, trial_id: int, marks: Mapping[str, Any]) -> None:
        from optuna.storages._rdb import models
        from sqlalchemy import insert

        def work(session: Any) -> None:
            trial = models.TrialModel.find_or_raise_by_id(trial_id, session, for_update=True)
            self.storage.check_trial_is_updatable(trial_id, trial.state)
            rows = models.TrialUserAttributeModel
            there = session.query(rows).filter(rows.trial_id == trial_id, rows.key.in_(list(marks)))
            there.delete(synchronize_session=False)
            new = [{"trial_id": trial_id, "key": key, "value_json": json.dumps(one)} for key, one in marks.items()]
            if new:
                session.execute(insert(rows), new)

        self._run(work)

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

    def create_all(self, study_id: int, trials: Sequence[FrozenTrial], key: str) -> list[int]:
        """Store whole trials in one transaction, with one insertion per table; `create` has queries for each value."""
        from optuna.storages._rdb.models import TrialModel, TrialUserAttributeModel

        keys = keys_of(key, len(trials))

        def work(session: Any) -> list[int]:
            _lock(session, study_id)
            marks = TrialUserAttributeModel
            mine = session.query(TrialModel).filter(TrialModel.study_id == study_id)
            if trials:  # all of them came in one transaction, or none did
                first = mine.join(marks, marks.trial_id == TrialModel.trial_id)
                first = first.filter(marks.key == CREATED, marks.value_json == json.dumps(keys[0])).first()
                if first is not None:
                    return [int(first.number) + nth for nth in range(len(trials))]
            _check_compatible(session, study_id, trials)
            known = mine.count()
            rows = [_trial_row(study_id, known + nth, one) for nth, one in enumerate(trials)]
            session.add_all(rows)
            session.flush()  # gives them their ids
            keyed = map(with_key, trials, keys)
            _insert_parts(session, [(int(row.trial_id), one) for row, one in zip(rows, keyed, strict=True)])
            return [int(row.number) for row in rows]

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

    def update(self, study_id: int, change: Update) -> None:
        from optuna.storages._rdb import models

        def work(session: Any) -> None:
            _lock(session, study_id)
            table = models.StudyUserAttributeModel
            rows = {row.key: row for row in session.query(table).filter(table.study_id == study_id)}
            for name, value in change({key: json.loads(row.value_json) for key, row in rows.items()}).items():
                if name in rows:
                    rows[name].value_json = json.dumps(value)
                else:
                    session.add(table(study_id=study_id, key=name, value_json=json.dumps(value)))

        self._run(work)

    def rename(self, study_id: int, name: str) -> bool:
        from optuna.storages._rdb.models import StudyModel

        def work(session: Any) -> bool:
            _lock(session, study_id)
            other = session.query(StudyModel).filter(StudyModel.study_name == name).one_or_none()
            if other is not None:
                return bool(other.study_id == study_id)
            row = session.query(StudyModel).filter(StudyModel.study_id == study_id)
            return bool(row.update({StudyModel.study_name: name}, synchronize_session=False))

        return self._run(work)


def _trial_row(study_id: int, number: int, trial: FrozenTrial) -> Any:
    from optuna.storages._rdb.models import TrialModel

    return TrialModel(
        study_id=study_id,
        number=number,
        state=trial.state,
        datetime_start=trial.datetime_start,
        datetime_complete=trial.datetime_complete,
    )


def _insert_parts(session: Any, trials: Sequence[tuple[int, FrozenTrial]]) -> None:
    """Store costs, params and marks of trials whose rows are there, by their ids."""
    from optuna.storages._rdb import models
    from sqlalchemy import insert

    texts = {one: distribution_to_json(one) for _, trial in trials for one in trial.distributions.values()}
    costs, params, marks = [], [], []
    for at, trial in trials:
        if trial.value is not None:
            stored, kind = models.TrialValueModel.value_to_stored_repr(trial.value)
            costs.append({"trial_id": at, "objective": 0, "value": stored, "value_type": kind})
        for name, value in trial.params.items():
            one = trial.distributions[name]
            inner = {"param_value": one.to_internal_repr(value), "distribution_json": texts[one]}
            params.append({"trial_id": at, "param_name": name, **inner})
        marks += [{"trial_id": at, "key": key, "value_json": json.dumps(one)} for key, one in trial.user_attrs.items()]
    tables = (models.TrialValueModel, costs), (models.TrialParamModel, params), (models.TrialUserAttributeModel, marks)
    for table, rows in tables:
        if rows:
            session.execute(insert(table), rows)


def _check_compatible(session: Any, study_id: int, trials: Sequence[FrozenTrial]) -> None:
    """Refuse distributions that Optuna does not allow beside those of the study's trials."""
    from optuna.storages._rdb.models import TrialModel, TrialParamModel

    wanted = {(name, one) for trial in trials for name, one in trial.distributions.items()}
    for name, distribution in sorted(wanted, key=lambda one: one[0]):
        rows = session.query(TrialParamModel).join(TrialModel).filter(TrialModel.study_id == study_id)
        found = rows.filter(TrialParamModel.param_name == name).first()
        if found is not None:
            check_distribution_compatibility(json_to_distribution(found.distribution_json), distribution)


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
