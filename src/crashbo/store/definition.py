"""What a study is about: its space, constraints, direction, seed and units, as kept in the storage."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from crashbo.adapters.optuna.codec import DEFAULTS
from crashbo.errors import InputError
from crashbo.problem.history import Settings
from crashbo.problem.options import Options
from crashbo.problem.outcome import Constraint
from crashbo.problem.space import Space
from crashbo.problem.stored import options_from_json, strategy_in

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
        space: the parameters.
        constraints: outputs beside the objective that must stay below a limit.
        direction: "minimize" or "maximize".
        seed: same seed, same suggestions.
        acquisition: of the paper's strategy.
        options: of `crashbo.Options` that differ from the defaults.
        units: by parameter, constraint or "objective"; for people only.
        strategy: "default" or "paper".
        plain: whether another program made the study, and this is what its trials tell.
        defaults: of parameters that were added later: their values in the trials before that.
    """

    space: Space
    constraints: tuple[Constraint, ...] = ()
    direction: str = "minimize"
    seed: int = 0
    acquisition: str = "auto"
    options: Mapping[str, Any] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    strategy: str = "default"
    plain: bool = field(default=False, compare=False)
    defaults: Mapping[str, Any] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        names = [one.name for one in self.constraints]
        twice = sorted({name for name in names if names.count(name) > 1 or name in self.space})
        if twice:
            raise InputError(f"`{twice[0]}` must be the name of one thing; got it twice. Rename one.")
        if "objective" in self.space and not self.plain:
            raise InputError("`objective` must not be the name of a parameter; it is that of the cost. Rename it.")
        if not isinstance(self.strategy, str):
            raise InputError(f"`strategy` must be a name; got {self.strategy!r}. A study keeps no objects.")
        Settings.check(self.constraints, self.direction, self.strategy, self.acquisition, self.seed, self._options())
        unknown = [name for name in self.units if name not in (*self.space, *names, "objective")]
        if unknown:
            raise InputError(f"`units` must name parameters, constraints or objective; got {unknown}.")

    def _options(self) -> Options:
        try:
            return options_from_json(self.options)
        except (TypeError, AttributeError) as error:
            raise InputError(
                f"`options` must be those of crashbo.Options; got {dict(self.options)} ({error})."
            ) from error

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
    settings = {
        "seed": definition.seed,
        "strategy": definition.strategy,
        "acquisition": definition.acquisition,
        "options": dict(definition.options),
    }
    found = {
        SPACE: definition.space.to_json(),
        CONSTRAINTS: [asdict(one) for one in definition.constraints],
        SETTINGS: settings,
    }
    found |= {UNITS: dict(definition.units)} if definition.units else {}
    return found | ({DEFAULTS: dict(definition.defaults)} if definition.defaults else {})


def read(study: "optuna.Study", marks: Mapping[str, Any]) -> Definition:
    """Read the definition of a study made by `crashbo new` from its user attributes."""
    if marks.get(FORMAT) != _FORMAT:
        what = "no CrashBO space" if FORMAT not in marks else f"format {marks[FORMAT]!r}, from a newer version"
        raise InputError(f"`study` must be made by `crashbo new`; {study.study_name!r} has {what}.")
    settings = marks[SETTINGS]
    strategy, acquisition = strategy_in(settings)
    return Definition(
        space=Space.from_json(marks[SPACE]),
        constraints=tuple(Constraint(**one) for one in marks[CONSTRAINTS]),
        direction=study.direction.name.lower(),
        seed=settings["seed"],
        strategy=strategy,
        acquisition=acquisition,
        options=settings["options"],
        units=marks.get(UNITS, {}),
        defaults=marks.get(DEFAULTS, {}),
    )
