"""The private names of Optuna that CrashBO uses (why `optuna` has an upper bound in pyproject.toml).

The attributes `Study._storage`, `Study._study_id`, `FrozenTrial._trial_id` and a storage's `_backend`;
`_VersionManager` and the folder of the tables' versions. There is no public way to reach a study's own storage.

More files know what Optuna keeps to itself: `database.py`, which writes its tables, `journal.py`, which writes the
lines of its journal, and `crashbo.store.patience`, which repeats single methods of `RDBStorage`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial


def storage_of(study: optuna.Study) -> BaseStorage:
    """The storage of a study, with Optuna's cache."""
    found: BaseStorage = study._storage
    return found


def backend_of(study: optuna.Study) -> object:
    """What a study's storage writes with: Optuna's database behind its cache, or the file of a journal."""
    storage = storage_of(study)
    return getattr(storage, "_backend", storage)


def study_id(study: optuna.Study) -> int:
    """The id of a study within its storage."""
    return int(study._study_id)


def trial_id(trial: FrozenTrial) -> int:
    """The id of a trial within its storage."""
    return int(trial._trial_id)


def study_attributes(study: optuna.Study) -> dict[str, Any]:
    """The user attributes of a study, also of the partial view that some pruners hand to samplers."""
    return dict(storage_of(study).get_study_user_attrs(study_id(study)))


def all_trials(study: optuna.Study) -> list[FrozenTrial]:
    """All trials of a study, also where a pruner hands out a view of some of them (one bracket of Hyperband)."""
    return storage_of(study).get_all_trials(study_id(study), deepcopy=False)


def find_trial(study: optuna.Study, number: int) -> FrozenTrial:
    """One trial, read from the storage.

    Raises:
        KeyError: if there is none of that number.
    """
    storage = storage_of(study)
    return storage.get_trial(storage.get_trial_id_from_study_id_trial_number(study_id(study), number))


def live_trial(study: optuna.Study, trial_id: int) -> optuna.Trial:
    """A running trial to write on, by its id."""
    return optuna.Trial(study, trial_id)


def stored_trial(study: optuna.Study, trial_id: int) -> FrozenTrial:
    """One trial, read from the storage, by its id."""
    return storage_of(study).get_trial(trial_id)


def set_user_attribute(study: optuna.Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Write a user attribute on an unfinished trial."""
    storage_of(study).set_trial_user_attr(trial_id(trial), key, value)


def set_system_attribute(study: optuna.Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Write a system attribute on an unfinished trial."""
    storage_of(study).set_trial_system_attr(trial_id(trial), key, value)


@contextmanager
def trusting_tables() -> Iterator[None]:
    """Within this, Optuna leaves the version of a database's tables alone.

    Even with `skip_compatibility_check` it looks it up through alembic, whose import is a fifth of the time that
    recording a result takes.
    """
    from optuna.storages._rdb import storage

    before = getattr(storage, "_VersionManager", None)
    if before is None:
        yield
        return
    try:
        storage._VersionManager = lambda *arguments: None  # type: ignore[assignment,misc]
        yield
    finally:
        storage._VersionManager = before  # type: ignore[misc]


def known_versions() -> list[str]:
    """The versions of a database's tables that the installed Optuna knows."""
    files = (resources.files("optuna.storages._rdb") / "alembic" / "versions").iterdir()
    return [one.name.removesuffix(".py").rstrip("_") for one in files]
