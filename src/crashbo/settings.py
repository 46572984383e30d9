"""The settings of an optimizer, checked without building one."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from crashbo.errors import InputError
from crashbo.history import OBJECTIVE, Direction
from crashbo.options import Options
from crashbo.outcome import Constraint
from crashbo.parameters import native

if TYPE_CHECKING:
    from crashbo.strategies.base import Strategy

STRATEGIES = ("default", "paper")
ACQUISITIONS = ("auto", "mes", "mesco")


@dataclass(frozen=True)
class Settings:
    """Everything an optimizer is told beside the space; see `Optimizer`."""

    constraints: tuple[Constraint, ...] = ()
    direction: Direction = "minimize"
    strategy: "str | Strategy" = "default"
    acquisition: str = "auto"
    seed: int = 0
    options: Options = field(default_factory=Options)

    @property
    def strategy_name(self) -> str:
        """Its name; that of its class, if it is an object."""
        return self.strategy if isinstance(self.strategy, str) else type(self.strategy).__name__

    @classmethod
    def check(
        cls,
        constraints: Sequence[Any] = (),
        direction: str = "minimize",
        strategy: Any = "default",
        acquisition: str = "auto",
        seed: Any = 0,
        options: Any = None,
    ) -> "Settings":
        """Validate and return the settings."""
        if isinstance(constraints, (str, Constraint)):
            raise InputError(f"`constraints` must be a list; got {constraints!r}. Put it in brackets.")
        if options is not None and not isinstance(options, Options):
            raise InputError(f"`options` must be crashbo.Options or None; got {options!r}.")
        declared = tuple(Constraint(one) if isinstance(one, str) else one for one in constraints)
        for one in declared:
            if not isinstance(one, Constraint):
                raise InputError(f"`constraints` must hold crashbo.Constraint objects or names; got {one!r}.")
        names = [one.name for one in declared]
        if len(set(names)) < len(names):
            raise InputError(f"`constraints` must have different names; got {names}.")
        if direction not in ("minimize", "maximize"):
            raise InputError(f"`direction` must be 'minimize' or 'maximize'; got {direction!r}.")
        own = all(callable(getattr(strategy, name, None)) for name in ("suggest", "guess", "surrogate", "score"))
        if not (strategy in STRATEGIES if isinstance(strategy, str) else own):
            rule = "'default', 'paper' or an object with suggest, guess, surrogate and score"
            raise InputError(f"`strategy` must be {rule}; got {strategy!r}.")
        if acquisition not in ACQUISITIONS:
            allowed = ", ".join(map(repr, ACQUISITIONS))
            raise InputError(f"`acquisition` must be one of {allowed}; got {acquisition!r}.")
        if acquisition != "auto" and strategy != "paper":
            rule = f"'auto' unless `strategy` is 'paper'; got {acquisition!r}"
            raise InputError(f"`acquisition` must be {rule}. The default strategy has one rule of its own.")
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else native(seed)
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"`seed` must be an integer >= 0, or None for a new one; got {seed!r}.")
        options = options or Options()
        unknown = [name for name in options.fixed if name not in (OBJECTIVE, *names)]
        if unknown:
            raise InputError(f"`options.fixed` must name outputs; got {unknown}, there are {[OBJECTIVE, *names]}.")
        return cls(declared, direction, strategy, acquisition, seed, options)  # type: ignore[arg-type]
