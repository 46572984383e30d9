"""What is to be found: one frozen problem, checked when it is made, and its form as JSON."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.options import Options, is_count, require
from crashbo.problem.outcome import Constraint
from crashbo.problem.parameters import Categorical, native
from crashbo.problem.space import Space

if TYPE_CHECKING:
    from crashbo.search.strategy import Strategy

Direction = Literal["minimize", "maximize"]
OBJECTIVE = "objective"
UNKNOWN_SPACE = Space({"(unknown)": Categorical(["(unknown)"])})
"""Stands where a host tells the space only with its trials."""

_ACQUISITIONS = ("auto", "mes", "mesco")
_FORMER = ("cmes", "logei")  # acquisitions of version 0.1
_METHODS = ("suggest", "guess", "surrogate", "score")  # of a strategy


@dataclass(frozen=True)
class Problem:
    """What is searched and how; see `Optimizer`. `Problem.of` also takes names of constraints, and None.

    Attributes:
        space: the parameters.
        constraints: outputs besides the objective that must stay below a limit.
        direction: "minimize" or "maximize".
        strategy: "default", "paper" or an object.
        acquisition: of the paper's strategy.
        seed: of everything random.
        options: how to search.
    """

    space: Space
    constraints: tuple[Constraint, ...] = ()
    direction: Direction = "minimize"
    strategy: "str | Strategy" = "default"
    acquisition: str = "auto"
    seed: int = 0
    options: Options = field(default_factory=Options)

    @classmethod
    def of(cls, space: Any, **settings: Any) -> "Problem":
        """From what users write: a mapping for the space, names for constraints, None for a new seed or no options."""
        return cls(space, **settings)

    def __post_init__(self) -> None:
        one, several = self.constraints, not isinstance(self.constraints, (str, Constraint))
        require("constraints", one, several, "be a list", "Put it in brackets.")
        right = self.options is None or isinstance(self.options, Options)
        require("options", self.options, right, "be crashbo.Options or None")
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if self.seed is None else native(self.seed)
        made = {
            "space": self.space if isinstance(self.space, Space) else Space(self.space),
            "constraints": tuple(Constraint(one) if isinstance(one, str) else one for one in self.constraints),
            "seed": seed,
            "options": self.options or Options(),
        }
        for name, value in made.items():
            object.__setattr__(self, name, value)
        self._check_names()
        self._check_choices()

    def _check_names(self) -> None:
        for one in self.constraints:
            require("constraints", one, isinstance(one, Constraint), "hold crashbo.Constraint objects or names")
        names = [one.name for one in self.constraints]
        require("constraints", names, len(set(names)) == len(names), "have different names")
        clash = [name for name in names if name in self.space]
        if clash:
            raise InputError(f"`{clash[0]}` must name either a parameter or a constraint; got both. Rename one.")
        unknown = [name for name in self.options.fixed if name not in (OBJECTIVE, *names)]
        if unknown:
            raise InputError(f"`options.fixed` must name outputs; got {unknown}, there are {[OBJECTIVE, *names]}.")

    def _check_choices(self) -> None:
        strategy, acquisition = self.strategy, self.acquisition
        require("direction", self.direction, self.direction in ("minimize", "maximize"), "be 'minimize' or 'maximize'")
        own = not isinstance(strategy, str) and all(callable(getattr(strategy, name, None)) for name in _METHODS)
        rule = "be 'default', 'paper' or an object with suggest, guess, surrogate and score"
        require("strategy", strategy, own or strategy in ("default", "paper"), rule)
        rule = f"be one of {', '.join(map(repr, _ACQUISITIONS))}"
        require("acquisition", acquisition, acquisition in _ACQUISITIONS, rule)
        rule, advice = "be 'auto' unless `strategy` is 'paper'", "The default strategy has one rule of its own."
        require("acquisition", acquisition, acquisition == "auto" or strategy == "paper", rule, advice)
        require("seed", self.seed, is_count(self.seed, 0), "be an integer >= 0, or None for a new one")

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised: what costs are multiplied with before they are modelled."""
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def strategy_name(self) -> str:
        """Its name; that of its class, if it is an object."""
        return self.strategy if isinstance(self.strategy, str) else type(self.strategy).__name__

    def to_json(self) -> dict[str, Any]:
        """Plain JSON; of a strategy of one's own, its name."""
        return {
            "space": self.space.to_json(),
            "constraints": [asdict(one) for one in self.constraints],
            "direction": self.direction,
            "strategy": self.strategy_name,
            "acquisition": self.acquisition,
            "seed": self.seed,
            "options": asdict(self.options),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], strategy: "Strategy | None" = None) -> "Problem":
        """Read what `to_json` wrote, also by version 0.1; `strategy` is the object, if it was one of the user's own."""
        named, acquisition = strategy_in(data)
        return cls.of(
            Space.from_json(data["space"]) if "space" in data else UNKNOWN_SPACE,
            constraints=[Constraint(**one) for one in data.get("constraints", ())],
            direction=data.get("direction", "minimize"),
            strategy=named if strategy is None else strategy,
            acquisition=acquisition,
            seed=data.get("seed", 0),
            options=Options.from_json(data.get("options") or {}),
        )


def strategy_in(stored: Mapping[str, Any]) -> tuple[str, str]:
    """Strategy and acquisition in settings that were stored, also by version 0.1, which had no strategies.

    There, an acquisition that was named, or fixed hyperparameters of the objective, meant the paper's method.
    """
    acquisition = stored.get("acquisition", "auto")
    if stored.get("strategy") is not None:
        return stored["strategy"], acquisition
    fixed = (stored.get("options") or {}).get("fixed") or {}
    strategy = "paper" if acquisition != "auto" or OBJECTIVE in fixed else "default"
    return strategy, "auto" if acquisition in _FORMER else acquisition
