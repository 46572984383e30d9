"""All studies of a storage: list, rename and remove them."""

from dataclasses import dataclass

import optuna

from crashbo.adapters.optuna.internals import study_id
from crashbo.adapters.optuna.transactions import writer
from crashbo.errors import InputError
from crashbo.store.definition import FORMAT
from crashbo.store.recording import check_text
from crashbo.store.storage import Place, StudyError, open_storage, storage_errors
from crashbo.store.study import load, only_study


@dataclass(frozen=True)
class Entry:
    """A study in a list.

    Attributes:
        name: of the study.
        trials: how many it has, in whatever state.
        running: how many of them are under way.
        direction: "minimize" or "maximize"; several for several objectives.
        ours: whether `crashbo new` made it.
        last: when its last trial began, as text; empty without one.
    """

    name: str
    trials: int
    running: int
    direction: str
    ours: bool
    last: str


def list_studies(place: Place) -> list[Entry]:
    """Return all studies of a storage, in the order they were made."""
    storage = open_storage(place)
    with storage_errors(place):
        return [_entry(load(storage, name)) for name in optuna.get_all_study_names(storage)]


def _entry(study: optuna.Study) -> Entry:
    trials = study.get_trials(deepcopy=False)
    began = [one.datetime_start for one in trials if one.datetime_start is not None]
    return Entry(
        name=study.study_name,
        trials=len(trials),
        running=sum(one.state == optuna.trial.TrialState.RUNNING for one in trials),
        direction=", ".join(one.name.lower() for one in study.directions),
        ours=FORMAT in study.user_attrs,
        last=max(began).isoformat(sep=" ", timespec="minutes") if began else "",
    )


def rename_study(place: Place, name: str) -> str:
    """Give a study another name, in one transaction; return the one it had.

    Raises:
        InputError: if the storage cannot do that, or the name is none.
        StudyError: if another study has that name.
    """
    check_text("name", name)
    if not name.strip():
        raise InputError("`name` must not be empty.")
    storage = open_storage(place)
    with storage_errors(place):
        study = load(storage, place.study or only_study(place, storage))
        if not writer(study).rename(study_id(study), name):
            raise StudyError(f"There is a study {name!r} in {place} already. Say another name.")
        return str(study.study_name)


def find_study(place: Place) -> Entry:
    """One study of a storage; without a name, the only one."""
    storage = open_storage(place)
    with storage_errors(place):
        return _entry(load(storage, place.study or only_study(place, storage)))


def remove_study(place: Place, name: str) -> None:
    """Remove a study with all its trials, in one transaction."""
    storage = open_storage(place)
    with storage_errors(place):
        optuna.delete_study(storage=storage, study_name=load(storage, name).study_name)
