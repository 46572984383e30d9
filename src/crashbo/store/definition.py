"""What a study is about: its space, constraints, direction, seed and units, as kept in the storage."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from crashbo.adapters.optuna.codec import DEFAULTS
from crashbo.errors import InputError
from crashbo.problem.outcome import Constraint
from crashbo.problem.problem import OBJECTIVE, Direction, Problem
from crashbo.problem.space import Space

if TYPE_CHECKING:
    import optuna

FORMAT, SPACE, CONSTRAINTS = "crashbo:format", "crashbo:space", "crashbo:constraints"
SETTINGS, UNITS = "crashbo:settings", "crashbo:units"
EDITS = "crashbo:edits"  # what it was before each change, oldest first
_FORMAT = 1


@dataclass(frozen=True)
class Definition:
    """What is tuned, and for what.

    Attributes:
        problem: space, constraints, direction, strategy, seed and options.
        units: by parameter, constraint or "objective"; for people only.
        plain: whether another program made the study, and this is what its trials tell.
        defaults: of parameters that were added later: their values in the trials before that.
    """

    problem: Problem
    units: Mapping[str, str] = field(default_factory=dict)
    plain: bool = field(default=False, compare=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        if OBJECTIVE in self.space and not self.plain:
            raise InputError("`objective` must not be the name of a parameter; it is that of the cost. Rename it.")
        if not isinstance(self.problem.strategy, str):
            raise InputError(f"`strategy` must be a name; got {self.problem.strategy!r}. A study keeps no objects.")
        unknown = [name for name in self.units if name not in (*self.space, *self.constraint_names, OBJECTIVE)]
        if unknown:
            raise InputError(f"`units` must name parameters, constraints or objective; got {unknown}.")

    @property
    def space(self) -> Space:
        """The parameters."""
        return self.problem.space

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Outputs beside the objective that must stay below a limit."""
        return self.problem.constraints

    @property
    def direction(self) -> Direction:
        """Direction of the objective."""
        return self.problem.direction

    @property
    def constraint_names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.constraints)

    def label(self, name: str) -> str:
        """A name with its unit, as in a table's head."""
        return f"{name} [{self.units[name]}]" if self.units.get(name) else name


def write(study: "optuna.Study", definition: Definition) -> None:
    """Write a definition on a new study; the format comes last and says that it is complete."""
    for name, value in (to_attributes(definition) | {FORMAT: _FORMAT}).items():
        study.set_user_attr(name, value)


def to_attributes(definition: Definition) -> dict[str, Any]:
    """Return a definition as a study's user attributes."""
    found = definition.problem.to_json()
    settings = {name: found[name] for name in ("seed", "strategy", "acquisition")}
    settings["options"] = definition.problem.options.changed()
    found = {SPACE: found["space"], CONSTRAINTS: found["constraints"], SETTINGS: settings}
    found |= {UNITS: dict(definition.units)} if definition.units else {}
    return found | ({DEFAULTS: dict(definition.defaults)} if definition.defaults else {})


def marks_in(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a study's user attributes that define it."""
    return {name: attributes[name] for name in (SPACE, CONSTRAINTS, SETTINGS, UNITS, DEFAULTS) if name in attributes}


def read(study: "optuna.Study", marks: Mapping[str, Any]) -> Definition:
    """Read the definition of a study made by `crashbo new` from its user attributes."""
    if marks.get(FORMAT) != _FORMAT:
        what = "no CrashBO space" if FORMAT not in marks else f"format {marks[FORMAT]!r}, from a newer version"
        raise InputError(f"`study` must be made by `crashbo new`; {study.study_name!r} has {what}.")
    found = {"space": marks[SPACE], "constraints": marks[CONSTRAINTS], "direction": study.direction.name.lower()}
    return Definition(
        Problem.from_json(marks[SETTINGS] | found), marks.get(UNITS, {}), defaults=marks.get(DEFAULTS, {})
    )
