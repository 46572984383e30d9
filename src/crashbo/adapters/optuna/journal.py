"""A journal file: writes of several parts are lines that are appended together while it is locked."""

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from optuna.distributions import distribution_to_json
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.transactions import (
    CREATED,
    TOLD,
    Beginning,
    Change,
    Ending,
    Update,
    create_all_plainly,
    create_plainly,
    mark_plainly,
    outdated,
)
from crashbo.errors import InputError


class Journal:
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
            marks = dict.fromkeys(outdated(found.user_attrs, ending)) | ending.all_marks
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

    def mark(self, trial_id: int, marks: Mapping[str, Any]) -> None:
        mark_plainly(self.storage, trial_id, marks)

    def create(self, study_id: int, trial: FrozenTrial, key: str) -> int:
        """Store a whole trial, in one line; two processes that use one key at the same moment are not told apart."""
        return create_plainly(self.storage, study_id, trial, key)

    def create_all(self, study_id: int, trials: Sequence[FrozenTrial], key: str) -> list[int]:
        """Store whole trials, a line each; what was cut short is completed by the same key."""
        return create_all_plainly(self.storage, study_id, trials, key)

    def add_entry(self, study_id: int, name: str, change: Change) -> list[dict[str, Any]]:
        from optuna.storages.journal._storage import JournalOperation as Op

        with self._locked() as append:
            before = list(self.storage._replay_result.get_study(study_id).user_attrs.get(name, []))
            entry = change(before)
            if entry is None:
                return before
            append([(Op.SET_STUDY_USER_ATTR, {"study_id": study_id, "user_attr": {name: [*before, entry]}})])
        return [*before, entry]

    def update(self, study_id: int, change: Update) -> None:
        from optuna.storages.journal._storage import JournalOperation as Op

        with self._locked() as append:
            found = change(dict(self.storage._replay_result.get_study(study_id).user_attrs))
            named = [{"study_id": study_id, "user_attr": {name: value}} for name, value in found.items()]
            append([(Op.SET_STUDY_USER_ATTR, one) for one in named])

    def rename(self, study_id: int, name: str) -> bool:
        raise InputError(
            "`storage` must be a database to rename a study in it; a journal file keeps the name. Export it, and "
            "import it into a new study."
        )


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
