"""From the records of a study to a `crashbo.Optimizer` that knows them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from crashbo.errors import InputError
from crashbo.integrations.optuna.records import Record
from crashbo.integrations.optuna.space import Translation
from crashbo.models.surrogates import FixedModel
from crashbo.optimizer import AcquisitionName, Optimizer, Reason
from crashbo.outcome import Constraint, Trial
from crashbo.search import Options

CONSTRAINTS, SETTINGS = "crashbo:constraints", "crashbo:settings"  # a study's user attributes


@dataclass(frozen=True)
class Settings:
    """What an `Optimizer` needs beside the space and the direction; checked as it checks them."""

    constraints: Sequence[Constraint] = ()
    acquisition: AcquisitionName = "auto"
    seed: int = 0
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        Optimizer({"any": (0.0, 1.0)}, **vars(self))


def settings_in(attributes: Mapping[str, Any]) -> Settings:
    """Return the settings that `crashbo new` wrote among a study's attributes.

    Raises:
        InputError: if it did not.
    """
    try:
        found = attributes[SETTINGS]
        constraints = [Constraint(**one) for one in attributes.get(CONSTRAINTS, [])]
        options = dict(found.get("options") or {})
        options["fixed"] = {name: _fixed(one) for name, one in options.get("fixed", {}).items()}
        return Settings(constraints, found.get("acquisition", "auto"), found.get("seed", 0), Options(**options))
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"`study` must be made by `crashbo new`; its settings cannot be read ({error!r}). "
            "Otherwise write CrashBOSampler(...) with your own settings."
        ) from error


def _fixed(values: Mapping[str, Any]) -> FixedModel:
    read: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in values.items()}
    return FixedModel(**read)


@dataclass(frozen=True)
class Outputs:
    """The constraints of a study and what its records call them.

    Attributes:
        reported: by the name in `report`.
        limits: Optuna's own constraints, feasible up to 0, by Optuna's name.
    """

    reported: Mapping[str, Constraint]
    limits: Mapping[str, Constraint]

    @property
    def all(self) -> list[Constraint]:
        return [*self.reported.values(), *self.limits.values()]

    def seen(self, record: Record) -> dict[str, float | None]:
        """What a record says about each, by the constraint's own name."""
        values = {self.reported[name].name: value for name, value in record.constraints.items()}
        return values | {self.limits[name].name: value for name, value in record.limits.items()}

    def named(self, thresholds: Mapping[str, float]) -> dict[str, float]:
        """Thresholds by the names users know."""
        known = {one.name: name for name, one in [*self.reported.items(), *self.limits.items()]}
        return {known.get(name, name): value for name, value in thresholds.items()}


def outputs_of(records: Sequence[Record], declared: Sequence[Constraint]) -> Outputs:
    """Collect the declared constraints, those only reported, and Optuna's own."""
    names = {one.name: one for one in declared}
    taken = set(names)
    for name in _sorted(name for record in records for name in record.constraints):
        if name not in names:
            names[name] = Constraint(_identifier(name, taken))
    limits = {
        name: Constraint(_identifier(name, taken), threshold=0.0)
        for name in _sorted(name for record in records for name in record.limits)
    }
    return Outputs(names, limits)


def _sorted(names: Iterable[str]) -> list[str]:
    return sorted(set(names))


def _identifier(name: str, taken: set[str]) -> str:
    """A name that a constraint may have and none has yet; it is added to the taken ones."""
    base = name if name.isidentifier() else "limit_" + re.sub(r"\W", "_", name)
    while base in taken or base in ("objective", "params", "reason", "self"):
        base += "_"
    taken.add(base)
    return base


def make_optimizer(
    records: Sequence[Record],
    translation: Translation,
    settings: Settings,
    *,
    maximize: bool,
    number: int,
) -> Optimizer:
    """Return the optimizer that has seen the records and is about to suggest trial `number`.

    Finished, crashed and pending records that lie in the space count, in the order of their numbers.
    """
    outputs = outputs_of(records, settings.constraints)
    direction: Literal["minimize", "maximize"] = "maximize" if maximize else "minimize"
    optimizer = Optimizer(translation.space, direction=direction, **vars(settings) | {"constraints": outputs.all})
    placed = [(record, place(record, translation)) for record in records]
    trials = [
        Trial(record.number, params, record.objective, outputs.seen(record), record.reason)
        for record, params in placed
        if params is not None and record.status in ("finished", "crashed")
    ]
    pending = [
        {"number": _key(record.number, number), "params": params, "why": asdict(Reason("given"))}
        for record, params in placed
        if params is not None and record.status == "pending" and record.number != number
    ]
    state = {"trials": [asdict(trial) for trial in trials], "pending": pending, "asked": number}
    return Optimizer.from_json(optimizer.to_json() | state)


def _key(number: int, asking: int) -> int:
    """What a pending trial is called: its number, unless the optimizer may yet give that to its own suggestions."""
    return number if number < asking else number + 10**6


def place(record: Record, translation: Translation) -> dict[str, Any] | None:
    """Return where a record lies in CrashBO's space, None if nowhere.

    Params not asked for yet are as suggested; those a crash came before are filled in.
    """
    known = translation.unpack(record.suggestion) | dict(record.params)
    if record.status == "crashed" and any(name in known for name in translation.distributions):
        known = translation.fill(known, record.number)
    return translation.inward(known)
