"""Make, open and read studies. No torch here; `ask` and the model live in their own modules."""

import contextlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import optuna
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from crashbo.errors import InputError
from crashbo.integrations.optuna import records
from crashbo.integrations.optuna.records import Record
from crashbo.studies import definition as definitions
from crashbo.studies.definition import Definition
from crashbo.studies.storage import DEFAULT_STUDY, Place, StudyError, open_storage, storage_errors

_LARGEST = 2**31 - 1  # number of a trial that a database can hold


@dataclass(frozen=True)
class Study:
    """An open study.

    Attributes:
        place: where it is.
        inner: the Optuna study.
        definition: what is tuned.
    """

    place: Place
    inner: optuna.Study
    definition: Definition

    @contextlib.contextmanager
    def guarded(self, *, reading: bool = True) -> Iterator[None]:
        """Within this, errors of the storage are StudyErrors of one line; see `storage_errors`."""
        with storage_errors(self.place, reading=reading):
            yield

    def records(self) -> list[Record]:
        """Every trial, corrections applied, by number."""
        with self.guarded():
            return records.read(self.inner)

    def trial(self, number: int) -> FrozenTrial:
        """One trial as Optuna has it.

        Raises:
            InputError: if there is none of that number.
        """
        storage: Any = self.inner._storage
        with self.guarded():
            try:
                if not 0 <= number <= _LARGEST:
                    raise KeyError(number)
                found = storage.get_trial_id_from_study_id_trial_number(self.inner._study_id, number)
            except KeyError as error:
                raise InputError(
                    f"`number` must be a trial of the study {self.place.study!r}; got {number}. "
                    "`crashbo status` lists them."
                ) from error
            trial: FrozenTrial = storage.get_trial(found)
        return trial


def create_study(place: Place, definition: Definition) -> Study:
    """Make a new study, and its file if there is none.

    Raises:
        StudyError: if there is a study of that name.
    """
    place = replace(place, study=place.study or DEFAULT_STUDY)
    storage = open_storage(place, create=True)
    direction = StudyDirection[definition.direction.upper()]
    with storage_errors(place):
        try:
            inner = optuna.create_study(
                storage=storage, study_name=place.study, direction=direction, sampler=_light_sampler()
            )
        except optuna.exceptions.DuplicatedStudyError as error:
            inner = optuna.load_study(storage=storage, study_name=place.study, sampler=_light_sampler())
            if definitions.FORMAT in inner.user_attrs or inner.get_trials(deepcopy=False):
                raise StudyError(
                    f"There is a study {place.study!r} in {place} already. Use it, or say another name with --study."
                ) from error
            if inner.direction != direction:
                raise StudyError(
                    f"There is an empty study {place.study!r} in {place} already, of the other direction. "
                    "Say another name with --study."
                ) from error
        definitions.write(inner, definition)
    return Study(place, inner, definition)


def open_study(place: Place, *, quick: bool = False) -> Study:
    """Open a study made by `create_study`; without a name, the only one there or the one called "crashbo".

    Args:
        place: where it is.
        quick: skip the check of the database's version, for commands that only record a result.
    """
    storage = open_storage(place, quick=quick)
    with storage_errors(place):
        place = place if place.study else replace(place, study=_only_study(place, storage))
        try:
            inner = optuna.load_study(storage=storage, study_name=place.study, sampler=_light_sampler())
        except KeyError as error:
            raise StudyError(f"There is no study {place.study!r} in {place}. {_listed(storage)}") from error
        return Study(place, inner, definitions.read(inner))


def study_exists(place: Place) -> bool:
    """Whether there is a study at a place; its file is not made."""
    if place.file and not place.file.exists():
        return False
    storage = open_storage(place)
    with storage_errors(place):
        names = optuna.get_all_study_names(storage)
        if place.study and place.study in names:  # one whose making was cut short does not count
            study = optuna.load_study(storage=storage, study_name=place.study, sampler=_light_sampler())
            return definitions.FORMAT in study.user_attrs or bool(study.get_trials(deepcopy=False))
    return not place.study and bool(names)


def _light_sampler() -> optuna.samplers.BaseSampler:
    """A sampler that is never asked; the default one would be set up for nothing."""
    return optuna.samplers.RandomSampler(seed=0)


def _only_study(place: Place, storage: Any) -> str:
    names = optuna.get_all_study_names(storage)
    if len(names) == 1:
        return str(names[0])
    if DEFAULT_STUDY in names or not names:
        return DEFAULT_STUDY
    raise StudyError(f"There are several studies in {place}. {_listed(storage)} Say one with --study.")


def _listed(storage: Any) -> str:
    names = optuna.get_all_study_names(storage)
    return f"It has: {', '.join(names)}." if names else "It is empty; make a study with `crashbo new`."


# --- summaries that need no model ------------------------------------------------------------------


def counts(found: list[Record]) -> dict[str, int]:
    """How many trials are finished, crashed, pending and ignored."""
    tally = Counter(record.status for record in found)
    return {status: tally.get(status, 0) for status in ("finished", "crashed", "pending", "ignored")}


def allowed(definition: Definition, record: Record) -> bool:
    """Whether a trial has a cost and broke no limit."""
    limits = {one.name: one.threshold for one in definition.constraints if one.threshold is not None}
    if record.status != "finished" or None in record.constraints.values():
        return False
    seen = {name: value for name, value in record.constraints.items() if value is not None}
    return all(value <= limits.get(name, value) for name, value in seen.items())


def best_seen(definition: Definition, found: list[Record]) -> Record | None:
    """The best measured trial that broke no limit; None without any."""
    sign = 1.0 if definition.direction == "minimize" else -1.0
    good = [record for record in found if allowed(definition, record)]
    return min(good, key=lambda record: sign * (record.objective or 0.0), default=None)
