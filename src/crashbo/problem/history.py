"""What an optimizer was told and what has happened so far, frozen: all that a strategy decides from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array, Bools
from crashbo.problem.options import Options, is_count, require
from crashbo.problem.outcome import Constraint, Trial
from crashbo.problem.parameters import native
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Suggestion

if TYPE_CHECKING:
    from crashbo.search.strategy import Strategy

Direction = Literal["minimize", "maximize"]
OBJECTIVE = "objective"
_ACQUISITIONS = ("auto", "mes", "mesco")
_METHODS = ("suggest", "guess", "surrogate", "score")  # of a strategy


@dataclass(frozen=True, kw_only=True)
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

    @staticmethod
    def check(
        constraints: Sequence[Any] = (),
        direction: Any = "minimize",
        strategy: Any = "default",
        acquisition: str = "auto",
        seed: Any = 0,
        options: Any = None,
    ) -> "Settings":
        """Validate and return the settings."""
        several = not isinstance(constraints, (str, Constraint))
        require("constraints", constraints, several, "be a list", "Put it in brackets.")
        require("options", options, options is None or isinstance(options, Options), "be crashbo.Options or None")
        declared = tuple(Constraint(one) if isinstance(one, str) else one for one in constraints)
        for one in declared:
            require("constraints", one, isinstance(one, Constraint), "hold crashbo.Constraint objects or names")
        names = [one.name for one in declared]
        require("constraints", names, len(set(names)) == len(names), "have different names")
        require("direction", direction, direction in ("minimize", "maximize"), "be 'minimize' or 'maximize'")
        own = not isinstance(strategy, str) and all(callable(getattr(strategy, name, None)) for name in _METHODS)
        rule = "be 'default', 'paper' or an object with suggest, guess, surrogate and score"
        require("strategy", strategy, own or strategy in ("default", "paper"), rule)
        rule = f"be one of {', '.join(map(repr, _ACQUISITIONS))}"
        require("acquisition", acquisition, acquisition in _ACQUISITIONS, rule)
        rule, advice = "be 'auto' unless `strategy` is 'paper'", "The default strategy has one rule of its own."
        require("acquisition", acquisition, acquisition == "auto" or strategy == "paper", rule, advice)
        seed = int(np.random.SeedSequence().generate_state(1)[0]) if seed is None else native(seed)
        require("seed", seed, is_count(seed, 0), "be an integer >= 0, or None for a new one")
        options = options or Options()
        unknown = [name for name in options.fixed if name not in (OBJECTIVE, *names)]
        if unknown:
            raise InputError(f"`options.fixed` must name outputs; got {unknown}, there are {[OBJECTIVE, *names]}.")
        return Settings(
            constraints=declared,
            direction=direction,
            strategy=strategy,
            acquisition=acquisition,
            seed=seed,
            options=options,
        )


@dataclass(frozen=True)
class History(Settings):
    """A problem, its settings, and all that has happened. Equal histories give equal suggestions.

    Attributes:
        space: the parameters.
        trials: finished ones, in the order told.
        pending: suggestions under way.
        asked: how many suggestions were made.
        initial_points: params to suggest first.
        errors: in words, by the number of the pending suggestion that ended in an error of the program itself.
        numbered: how many numbers were given; a trial has that of its suggestion.
    """

    space: Space
    trials: tuple[Trial, ...] = ()
    pending: tuple[Suggestion, ...] = ()
    asked: int = 0
    initial_points: tuple[Mapping[str, Any], ...] = ()
    errors: Mapping[int, str] = field(default_factory=dict)
    numbered: int = 0

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised: what costs are multiplied with before they are modelled."""
        return 1.0 if self.direction == "minimize" else -1.0

    @property
    def next_number(self) -> int:
        """The number of the next suggestion, or of a trial that was not suggested: one that nothing else has."""
        told, out = [trial.number for trial in self.trials], [one.number for one in self.pending]
        return max(self.numbered, 1 + max(told + out, default=-1))

    @cached_property
    def points(self) -> Array:
        """`n x d`, where the trials were made, in the unit cube."""
        return self.space.encode_valid([trial.params for trial in self.trials])

    @cached_property
    def pending_points(self) -> Array:
        """`m x d`, trials under way."""
        return self.space.encode_valid(self.pending)

    @cached_property
    def failed(self) -> Bools:
        """`n`, whether each trial crashed or violated a limit, known or not."""
        return np.array([trial.failed_under(self.constraints) for trial in self.trials], dtype=bool)

    @cached_property
    def costs(self) -> list[float | None]:
        """`n`, minimised; None where there is none."""
        return [None if trial.objective is None else self.sign * trial.objective for trial in self.trials]

    @property
    def best_trial(self) -> Trial | None:
        """The best trial that did not fail; None without one."""
        held = [trial for trial, failed in zip(self.trials, self.failed, strict=True) if not failed]
        return min(held, key=lambda trial: self.sign * (trial.objective or 0.0), default=None)

    def first(self, count: int) -> "History":
        """The first trials alone, nothing under way."""
        return replace(self, trials=self.trials[:count], pending=(), asked=0)

    def without(self, number: int | None) -> "History":
        """The same with a suggestion no longer pending."""
        pending = tuple(one for one in self.pending if one.number != number)
        return replace(self, pending=pending, errors={n: words for n, words in self.errors.items() if n != number})

    def generator(self, *purpose: int) -> np.random.Generator:
        """A source of randomness for this suggestion."""
        return np.random.default_rng([self.seed, self.asked, *purpose])
