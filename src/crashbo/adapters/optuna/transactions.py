"""Writes of several parts as one: all of an outcome is stored, or nothing.

Optuna's storage interface writes the marks of a trial, its value and its state one after the other: a process that dies
in between, or two that write at the same time, leave a mixture. Here they go into Optuna's own tables in one
transaction, so every Optuna tool still sees them. A table of our own would have to be kept in step with those.

Each write carries a key, a text that its writer made up. Where the answer was lost, and the same is written again, the
key tells a write that had arrived from one of somebody else.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import uuid4

import optuna
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.internals import backend_of, storage_of, trial_id
from crashbo.errors import InputError

CRASH, TRANSIENT, CONSTRAINT = "crash", "transient", "constraint:"  # of an outcome, beside state and value
CREATED, TOLD = "crashbo:created", "crashbo:told"  # the keys of what began a trial, and of what ended it
Update = Callable[[Mapping[str, Any]], Mapping[str, Any]]
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

    def mark(self, trial_id: int, marks: Mapping[str, Any]) -> None:
        """Write user attributes on an unfinished trial."""

    def create(self, study_id: int, trial: FrozenTrial, key: str) -> int:
        """Store a whole trial and return its id; the one that is there already if the key is."""

    def create_all(self, study_id: int, trials: Sequence[FrozenTrial], key: str) -> list[int]:
        """Store whole trials of the same parameters and return their numbers; a database has all of them or none.

        Those that the key has stored already are not stored again.
        """

    def add_entry(self, study_id: int, name: str, change: Change) -> list[dict[str, Any]]:
        """Add what `change` makes of a list among the study's attributes to that list; return all of it."""

    def update(self, study_id: int, change: Update) -> None:
        """Set those of the study's attributes that `change` returns, all at once; it gets all that there are."""

    def rename(self, study_id: int, name: str) -> bool:
        """Give a study another name; False if another one has it."""


def writer(study: optuna.Study) -> Writer:
    """Return what writes on a study's storage."""
    from optuna.storages import JournalStorage, RDBStorage
    from optuna.storages.journal import JournalFileBackend

    storage: Any = storage_of(study)
    inner: Any = backend_of(study)
    if isinstance(inner, RDBStorage):
        from crashbo.adapters.optuna.database import Database

        return Database(inner)
    if isinstance(storage, JournalStorage) and isinstance(inner, JournalFileBackend):
        from crashbo.adapters.optuna.journal import Journal

        return Journal(storage, inner)
    return _Plain(storage)


def outdated(marks: Mapping[str, Any], ending: Ending) -> list[str]:
    """Marks of an outcome that an earlier attempt left behind."""
    known = [name for name in marks if name in (CRASH, TRANSIENT, TOLD) or name.startswith(CONSTRAINT)]
    return [name for name in known if name not in ending.all_marks]


class _Plain:
    """A storage in memory, or one we know nothing about: one thing after the other, the state last."""

    def __init__(self, storage: Any) -> None:
        self.storage = storage

    def finish(self, trial_id: int, ending: Ending) -> bool:
        found = self.storage.get_trial(trial_id)
        if found.state != ending.source:
            return bool(found.user_attrs.get(TOLD) == ending.key)
        for key, value in (dict.fromkeys(outdated(found.user_attrs, ending)) | ending.all_marks).items():
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

    def mark(self, trial_id: int, marks: Mapping[str, Any]) -> None:
        mark_plainly(self.storage, trial_id, marks)

    def create(self, study_id: int, trial: FrozenTrial, key: str) -> int:
        return create_plainly(self.storage, study_id, trial, key)

    def create_all(self, study_id: int, trials: Sequence[FrozenTrial], key: str) -> list[int]:
        return create_all_plainly(self.storage, study_id, trials, key)

    def add_entry(self, study_id: int, name: str, change: Change) -> list[dict[str, Any]]:
        before = list(self.storage.get_study_user_attrs(study_id).get(name, []))
        entry = change(before)
        if entry is None:
            return before
        self.storage.set_study_user_attr(study_id, name, [*before, entry])
        return [*before, entry]

    def update(self, study_id: int, change: Update) -> None:
        for name, value in change(self.storage.get_study_user_attrs(study_id)).items():
            self.storage.set_study_user_attr(study_id, name, value)

    def rename(self, study_id: int, name: str) -> bool:
        raise InputError("`storage` must be a database to rename a study in it; got another kind. Make a copy.")


def create_plainly(storage: Any, study_id: int, trial: FrozenTrial, key: str) -> int:
    for one in storage.get_all_trials(study_id, deepcopy=False):
        if one.user_attrs.get(CREATED) == key:
            return int(trial_id(one))
    return int(storage.create_new_trial(study_id, template_trial=with_key(trial, key)))


def create_all_plainly(storage: Any, study_id: int, trials: Sequence[FrozenTrial], key: str) -> list[int]:
    """One trial after the other; those that the key has stored already are found by keys of their own, by `keys_of`."""
    there = {one.user_attrs.get(CREATED): one.number for one in storage.get_all_trials(study_id, deepcopy=False)}
    numbers = []
    for one, trial in zip(keys_of(key, len(trials)), trials, strict=True):
        if one not in there:
            made = storage.create_new_trial(study_id, template_trial=with_key(trial, one))
            there[one] = storage.get_trial(made).number
        numbers.append(int(there[one]))
    return numbers


def mark_plainly(storage: Any, trial_id: int, marks: Mapping[str, Any]) -> None:
    """Write user attributes one after the other."""
    for key, value in marks.items():
        storage.set_trial_user_attr(trial_id, key, value)


def keys_of(key: str, count: int) -> list[str]:
    """A key for each of some trials that are stored together."""
    return [f"{key}-{nth}" for nth in range(count)]


def with_key(trial: FrozenTrial, key: str) -> FrozenTrial:
    """Return a trial that carries the key of its creation."""
    import copy

    keyed = copy.copy(trial)
    keyed.user_attrs = {**trial.user_attrs, CREATED: key}
    return keyed
