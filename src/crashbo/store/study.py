"""Make, open and read studies; `ask` and the model live in their own modules."""

import contextlib
import functools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from crashbo.adapters.optuna import records
from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.internals import find_trial
from crashbo.adapters.optuna.space import Translation, translate, translation_of
from crashbo.errors import InputError
from crashbo.store import definition as definitions
from crashbo.store import plain
from crashbo.store.definition import Definition
from crashbo.store.storage import DEFAULT_STUDY, Place, StudyError, open_storage, storage_errors

_LARGEST = 2**31 - 1  # number of a trial that a database can hold


@dataclass(frozen=True)
class Study:
    """An open study.

    Attributes:
        place: where it is.
        inner: the Optuna study.
        definition: what is tuned.
        own: distributions of the parameters, if another program made the study.
    """

    place: Place
    inner: optuna.Study
    definition: Definition
    own: Mapping[str, BaseDistribution] | None = None

    @functools.cached_property
    def translation(self) -> Translation:
        """The parameters in Optuna's terms."""
        return translation_of(self.definition.space) if self.own is None else translate(self.own)

    @contextlib.contextmanager
    def guarded(self, *, reading: bool = True) -> Iterator[None]:
        """Within this, errors of the storage are StudyErrors of one line; see `storage_errors`."""
        with storage_errors(self.place, reading=reading):
            yield

    def records(self) -> list[Record]:
        """Every trial, corrections applied, by number."""
        with self.guarded():
            found = records.read(self.inner)
        return plain.as_told(found, self.translation) if self.definition.plain else found

    def check_askable(self) -> None:
        """Refuse to begin trials where only the program that made the study knows which parameters they need.

        Raises:
            InputError: if another program made it and not all its trials have the same parameters.
        """
        if self.own is None:
            return
        with self.guarded():
            conditional = plain.is_conditional(records.read(self.inner), self.own)
        if conditional:
            raise InputError(
                f"`study` must have the same parameters in all trials; those of {self.place.study!r} differ. Begin "
                "trials in the program that made it, with CrashBOSampler."
            )

    def trial(self, number: int) -> FrozenTrial:
        """One trial as Optuna has it.

        Raises:
            InputError: if there is none of that number.
        """
        with self.guarded():
            try:
                if not 0 <= number <= _LARGEST:
                    raise KeyError(number)
                return find_trial(self.inner, number)
            except KeyError as error:
                raise InputError(
                    f"`number` must be a trial of the study {self.place.study!r}; got {number}. "
                    "`crashbo status` lists them."
                ) from error


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
    """Open a study, whoever made it; without a name, the only one there or the one called "crashbo".

    Args:
        place: where it is.
        quick: skip the check of the database's version, unless the study cannot be opened.
    """
    try:
        return _opened(place, quick)
    except StudyError:
        if not quick:
            raise
    return _opened(place, False)  # says what is wrong with the version, if that is what it is


def _opened(place: Place, quick: bool) -> Study:
    storage = open_storage(place, quick=quick)
    with storage_errors(place):
        place, inner = _loaded(place, storage)
        if len(inner.directions) != 1:
            raise InputError(
                f"`study` must have one objective; {place.study!r} has {len(inner.directions)}. Combine them into one "
                "cost, or make some of them constraints."
            )
        marks = inner.user_attrs
        if definitions.FORMAT not in marks:
            return Study(place, inner, *plain.infer_definition(inner))
        return Study(place, inner, definitions.read(inner, marks))


def as_defined(study: Study, attributes: Mapping[str, Any]) -> Study:
    """The study as its user attributes define it now, after edits by anyone; the same object if that is the same."""
    if study.own is not None:
        return study
    definition = definitions.read(study.inner, attributes)
    if definitions.to_attributes(definition) == definitions.to_attributes(study.definition):
        return study
    study.inner.sampler = _light_sampler()  # one that was made of the earlier definition must not be asked again
    return replace(study, definition=definition)


def _loaded(place: Place, storage: Any) -> tuple[Place, optuna.Study]:
    """A study and its place with the name; if none was said, the one with the usual name is tried first."""
    if not place.study:
        usual = replace(place, study=DEFAULT_STUDY)
        with contextlib.suppress(KeyError):
            return usual, optuna.load_study(storage=storage, study_name=usual.study, sampler=_light_sampler())
        place = replace(place, study=only_study(place, storage))
    return place, load(storage, place.study, place)


def load(storage: Any, name: str, place: Place | None = None) -> optuna.Study:
    """Load a study of a storage.

    Raises:
        StudyError: if there is none of that name.
    """
    try:
        return optuna.load_study(storage=storage, study_name=name, sampler=_light_sampler())
    except KeyError as error:
        where = "" if place is None else f" in {place}"
        raise StudyError(f"There is no study {name!r}{where}. {_listed(storage)}") from error


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


def only_study(place: Place, storage: Any) -> str:
    """The name of the only study of a storage, or of the one with the usual name."""
    with contextlib.suppress(KeyError):
        storage.get_study_id_from_name(DEFAULT_STUDY)
        return DEFAULT_STUDY  # whatever others there are; listing them takes longer
    names = optuna.get_all_study_names(storage)
    if len(names) == 1:
        return str(names[0])
    if not names:
        return DEFAULT_STUDY
    raise StudyError(f"There are several studies in {place}. {_listed(storage)} Say one with --study.")


def _listed(storage: Any) -> str:
    names = optuna.get_all_study_names(storage)
    return f"It has: {', '.join(names)}." if names else "It is empty; make a study with `crashbo new`."


# --- summaries that need no model ------------------------------------------------------------------


def counts(definition: Definition, found: Sequence[Record]) -> dict[str, int]:
    """How many trials are finished, crashed, pending, pruned and ignored; and how many failed: crashed or violated."""
    tally = Counter(record.status for record in found)
    failed = sum(record.failed_under(definition.constraints) for record in found)
    return {status: tally.get(status, 0) for status in ("finished", "crashed", "pending", "pruned", "ignored")} | {
        "failed": failed
    }


def best_seen(definition: Definition, found: Sequence[Record]) -> Record | None:
    """The best measured trial that broke no limit; None without any."""
    return records.best_of(found, definition.constraints, maximize=definition.direction == "maximize")
