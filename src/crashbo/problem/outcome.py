"""What a trial can end in: values, or labels where there is no value."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from numbers import Real
from typing import Any, Literal

from crashbo.errors import CrashBOError, InputError

LARGEST = 1e100  # in size, that a model can take
_TAKEN = ("objective", "params", "reason", "self")


class Label(StrEnum):
    """An outcome without a value; it equals its word, so that files and forms may say that."""

    CRASHED = "crashed"
    VIOLATED = "violated"

    def __repr__(self) -> str:
        return f"crashbo.{self.name}"


CRASHED = Label.CRASHED
"""The trial crashed and has no cost: `tell(params, CRASHED)`."""
VIOLATED = Label.VIOLATED
"""A constraint broke its limit, and its value was not seen: `tell(params, 0.7, reach=VIOLATED)`."""


class Crash(CrashBOError, RuntimeError):  # noqa: N818 (the public name says what happened)
    """Raise this in an experiment that crashed: `raise Crash("fell", reach=11.2)`.

    Args:
        reason: the reason in words, kept with the trial.
        values: constraint values measured before the crash, or `VIOLATED`.
    """

    def __init__(self, reason: str = "", **values: float | Label) -> None:
        super().__init__(reason)
        self.reason = reason
        self.values = values


@dataclass(frozen=True)
class Constraint:
    """A quantity besides the objective that must stay at or below a limit.

    Attributes:
        name: its name, as used in `tell`.
        threshold: the limit. None: it is unknown and learned; the value is seen only while it stays below.
    """

    name: str
    threshold: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isidentifier() or self.name in _TAKEN:
            raise InputError(
                f"`name` must be an identifier other than {', '.join(_TAKEN)}; got {self.name!r}. "
                "It becomes an argument of `tell`."
            )
        limit = as_scalar(self.threshold)
        if limit is not None and not (is_number(limit) and abs(limit) <= LARGEST):
            raise InputError(f"`threshold` must be a finite number or None; got {self.threshold!r}.")


@dataclass(frozen=True)
class Outcome:
    """What a trial ended in.

    Attributes:
        objective: the cost; None if it crashed.
        constraints: values by name; None means violated, a missing name means that nothing was seen.
        reason: reason of the crash, in words.
    """

    objective: float | None
    constraints: Mapping[str, float | None] = field(default_factory=dict)
    reason: str = ""

    @property
    def status(self) -> Literal["finished", "crashed"]:
        """The word for it; see the glossary."""
        return "crashed" if self.crashed else "finished"

    @property
    def crashed(self) -> bool:
        """Whether the trial has no cost."""
        return self.objective is None

    @property
    def failed(self) -> bool:
        """Whether it crashed or a constraint is labelled as violated; `failed_under` checks known limits too."""
        return self.crashed or None in self.constraints.values()

    def failed_under(self, constraints: Sequence[Constraint]) -> bool:
        """Whether it crashed, a constraint was violated, or a value lies beyond a known limit."""
        limits = {one.name: one.threshold for one in constraints if one.threshold is not None}
        values = ((name, value) for name, value in self.constraints.items() if value is not None)
        return self.failed or any(value > limits.get(name, math.inf) for name, value in values)


@dataclass(frozen=True)
class _Point:
    number: int
    params: Mapping[str, Any]


@dataclass(frozen=True)
class Trial(Outcome, _Point):  # in this order the fields are number, params, objective, constraints, reason
    """One finished trial.

    Attributes:
        number: that of its suggestion; the next one, if it was told without one.
        params: what was tried.
        objective: the cost; None if it crashed.
        constraints: values by name; None means violated, a missing name means that nothing was seen.
        reason: reason of the crash, in words.
    """


def labelled(constraints: Mapping[str, float | None]) -> dict[str, float | Label]:
    """Values of constraints as they are told, and as files and pages have them: `VIOLATED` where there is none."""
    return {name: VIOLATED if value is None else value for name, value in constraints.items()}


@dataclass(frozen=True)
class Failure:
    """A point on which the program failed with an error: neither a crash nor a result.

    Attributes:
        params: what was tried.
        error: the error, in words.
    """

    params: Mapping[str, Any]
    error: str


def outcome_of(said: object, constraints: Sequence[Constraint]) -> Outcome:
    """What a function's return value means: a cost, {"objective": .., constraint: ..}, or `CRASHED`; or its `Crash`."""
    if isinstance(said, Crash):
        return check_outcome(CRASHED, said.values, constraints, said.reason)
    values = dict(said) if isinstance(said, Mapping) else {"objective": said}
    if "objective" not in values:
        raise InputError(f"`rollout` must return 'objective' in its mapping; got {sorted(map(str, values))}.")
    return check_outcome(values.pop("objective"), values, constraints)


def check_outcome(
    objective: object, values: Mapping[str, object], constraints: Sequence[Constraint], reason: str = ""
) -> Outcome:
    """Decide what a trial ended in: the one place, whatever interface it was told through.

    Args:
        objective: a number, or `CRASHED` (also as a word). None, NaN, infinity and numbers beyond 1e100 are crashes
            too.
        values: per constraint a number or `VIOLATED` (also as a word); all are needed unless crashed. None, NaN,
            infinity and numbers beyond 1e100 are violations.
        constraints: the declared ones.
        reason: of a crash; empty: what was wrong with the cost.

    Raises:
        InputError: if something is neither a number nor a label, or a constraint is missing or unknown.
    """
    known = {constraint.name: constraint for constraint in constraints}
    unknown = [name for name in values if name not in known]
    if unknown:
        declared = ", ".join(map(repr, known)) or "none"
        raise InputError(f"`{unknown[0]}` must be a declared constraint; got {unknown!r}, declared: {declared}.")
    why = why_no_cost(objective)
    seen = {name: _number(name, values[name], VIOLATED) for name in known if name in values}
    missing = [name for name in known if name not in seen]
    if missing and why is None:
        raise InputError(
            f"`{missing[0]}` must be told with the objective; got nothing. "
            "Give its value, or `violated` (crashbo.VIOLATED in code)."
        )
    return Outcome(_number("objective", objective, CRASHED), seen, str(reason or why or ""))


def why_no_cost(objective: object) -> str | None:
    """Why a value is a crash and no cost, in words; None if it is a cost; refused if it is neither."""
    value = as_scalar(objective)
    if _number("objective", value, CRASHED) is not None:
        return None
    if value is None or isinstance(value, str):
        return "no cost" if value is None else ""
    return f"cost {value}" if isinstance(value, float) and not math.isfinite(value) else "cost beyond 1e100"


def as_scalar(value: Any) -> Any:
    """Unpack NumPy and torch scalars and one-element arrays; anything else is returned as it is."""
    try:
        return value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):
        return value


def is_number(value: object) -> bool:
    """Whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _number(name: str, value: object, label: Label) -> float | None:
    """The number that a model can take; None for the label, and for what says that there is none."""
    item = as_scalar(value)
    if item is None or (isinstance(item, str) and item == label):
        return None
    if not is_number(item):
        raise InputError(f"`{name}` must be a number or {label!r}; got {value!r}.")
    try:
        number = float(item)
    except OverflowError:  # an int no double can hold
        return None
    return number if abs(number) <= LARGEST else None
