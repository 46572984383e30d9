"""The constraints of a study: declared, reported, and Optuna's own."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from crashbo.adapters.optuna.codec import Record
from crashbo.problem.outcome import Constraint


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
    taken = set(names) | {name for record in records for name in record.distributions}
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
    base = re.sub(r"\W", "_", name)
    base = base if base.isidentifier() else f"limit_{base}"
    while base in taken or base in ("objective", "params", "reason", "self"):
        base += "_"
    taken.add(base)
    return base
