"""Every private name of Optuna that CrashBO uses (why `optuna` has an upper bound in pyproject.toml).

Three attributes, `Study._storage`, `Study._study_id` and `FrozenTrial._trial_id`, and `_VersionManager`. The storage's
methods are those of the public `optuna.storages.BaseStorage`; there is no public way to reach a study's own storage.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import optuna
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial


def storage_of(study: optuna.Study) -> BaseStorage:
    """The storage of a study, with Optuna's cache."""
    found: BaseStorage = study._storage
    return found


def study_attributes(study: optuna.Study) -> dict[str, Any]:
    """The user attributes of a study, also of the partial view that some pruners hand to samplers."""
    return dict(storage_of(study).get_study_user_attrs(study._study_id))


def find_trial(study: optuna.Study, number: int) -> FrozenTrial:
    """One trial, read from the storage.

    Raises:
        KeyError: if there is none of that number.
    """
    storage = storage_of(study)
    return storage.get_trial(storage.get_trial_id_from_study_id_trial_number(study._study_id, number))


def live_trial(study: optuna.Study, trial: FrozenTrial) -> optuna.Trial:
    """A running trial to write on."""
    return optuna.Trial(study, trial._trial_id)


def add_trial(study: optuna.Study, trial: FrozenTrial) -> FrozenTrial:
    """Store a whole trial in one step; `Study.add_trial` does so too, but does not say which number it got."""
    storage = storage_of(study)
    return storage.get_trial(storage.create_new_trial(study._study_id, template_trial=trial))


def set_user_attribute(study: optuna.Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Write a user attribute on an unfinished trial."""
    storage_of(study).set_trial_user_attr(trial._trial_id, key, value)


def set_system_attribute(study: optuna.Study, trial: FrozenTrial, key: str, value: Any) -> None:
    """Write a system attribute on an unfinished trial."""
    storage_of(study).set_trial_system_attr(trial._trial_id, key, value)


def set_state(study: optuna.Study, trial: FrozenTrial, state: optuna.trial.TrialState) -> bool:
    """Change the state of a trial; False if another process has taken it."""
    return bool(storage_of(study).set_trial_state_values(trial._trial_id, state))


def set_param(
    study: optuna.Study, trial: FrozenTrial, name: str, value: Any, distribution: optuna.distributions.BaseDistribution
) -> None:
    """Write a param on a running trial."""
    internal = distribution.to_internal_repr(value)
    storage_of(study).set_trial_param(trial._trial_id, name, internal, distribution)


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
