"""From the records of a study to a `crashbo.Optimizer` that knows them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from crashbo.errors import InputError
from crashbo.integrations.optuna.records import Record
from crashbo.integrations.optuna.space import Translation
from crashbo.optimizer import Optimizer
from crashbo.options import options_from_json
from crashbo.outcome import Constraint, Trial
from crashbo.settings import Settings, strategy_in
from crashbo.suggestion import Reason, Suggestion

CONSTRAINTS, SETTINGS = "crashbo:constraints", "crashbo:settings"  # a study's user attributes


def settings_in(attributes: Mapping[str, Any]) -> Settings:
    """Return the settings that `crashbo new` wrote among a study's attributes, also that of version 0.1.

    Raises:
        InputError: if it did not.
    """
    try:
        found = attributes[SETTINGS]
        constraints = [Constraint(**one) for one in attributes.get(CONSTRAINTS, [])]
        options = options_from_json(found.get("options") or {})
        strategy, acquisition = strategy_in(found)
        return Settings.check(
            constraints, strategy=strategy, acquisition=acquisition, seed=found.get("seed", 0), options=options
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"`study` must be made by `crashbo new`; its settings cannot be read ({error!r}). "
            "Otherwise write CrashBOSampler(...) with your own settings."
        ) from error


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
        """Numbers per output by the names users know."""
        known = {one.name: name for name, one in [*self.reported.items(), *self.limits.items()]}
        return {known.get(name, name): value for name, value in thresholds.items()}


def outputs_of(records: Sequence[Record], declared: Sequence[Constraint]) -> Outputs:
    """Collect the declared constraints, those only reported, and Optuna's own."""
    names = {one.name: one for one in declared}
    taken = {*names, *(name for record in records for name in record.params)}
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
    optimizer = Optimizer(
        translation.space,
        **vars(settings) | {"constraints": outputs.all, "direction": "maximize" if maximize else "minimize"},
    )
    placed = [(record, place(record, translation)) for record in records]
    trials = [
        Trial(record.number, params, record.objective, outputs.seen(record), record.reason)
        for record, params in placed
        if params is not None and record.status in ("finished", "crashed")
    ]
    pending = [
        Suggestion(params, _key(record.number, number), Reason("given"))
        for record, params in placed
        if params is not None and record.status == "pending" and record.number != number
    ]
    return Optimizer.restore(replace(optimizer.saved, trials=trials, pending=pending, asked=number))


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
