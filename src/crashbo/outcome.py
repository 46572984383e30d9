"""What a trial can end in: values, or labels where there is no value."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from numbers import Real
from typing import Any

from crashbo.errors import CrashBOError, InputError

_LARGEST = 1e100
_TAKEN = ("objective", "params", "reason", "self")


class Label(Enum):
    """An outcome without a value."""

    CRASHED = "crashed"
    VIOLATED = "violated"

    def __repr__(self) -> str:
        return f"crashbo.{self.name}"


CRASHED = Label.CRASHED
VIOLATED = Label.VIOLATED


class Crash(CrashBOError, RuntimeError):  # noqa: N818 (the public name says what happened)
    """Raise this in an experiment that crashed: `raise Crash("fell", reach=11.2)`.

    Args:
        reason: in words, kept with the trial.
        values: constraint values measured before the crash, or `VIOLATED`.
    """

    def __init__(self, reason: str = "", **values: float | Label) -> None:
        super().__init__(reason)
        self.reason = reason
        self.values = values


@dataclass(frozen=True)
class Constraint:
    """A constraint g(x) <= threshold beside the objective.

    Attributes:
        name: as used in `tell`.
        threshold: the limit, None if unknown: then the value is seen only while satisfied, and the
            limit is learned.
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
        if limit is not None and not (is_number(limit) and abs(limit) <= _LARGEST):
            raise InputError(f"`threshold` must be a finite number or None; got {self.threshold!r}.")


@dataclass(frozen=True)
class Trial:
    """One finished trial.

    Attributes:
        number: in the order told.
        params: what was tried.
        objective: its cost, None if it crashed.
        constraints: value, or None where violated; a name is missing where nothing was seen.
        reason: of the crash, in words.
    """

    number: int
    params: Mapping[str, Any]
    objective: float | None
    constraints: Mapping[str, float | None] = field(default_factory=dict)
    reason: str = ""

    @property
    def crashed(self) -> bool:
        """Whether there is no cost."""
        return self.objective is None

    @property
    def failed(self) -> bool:
        """Whether it crashed or a constraint was violated, as far as the trial alone tells; see `failed_under`."""
        return self.crashed or None in self.constraints.values()

    def failed_under(self, constraints: Sequence[Constraint]) -> bool:
        """Whether it crashed, a constraint was violated, or a value lies beyond a known limit."""
        limits = {one.name: one.threshold for one in constraints if one.threshold is not None}
        broken = (
            value is not None and name in limits and value > limits[name] for name, value in self.constraints.items()
        )
        return self.failed or any(broken)


@dataclass(frozen=True)
class Failure:
    """A point whose trial ended in an error of the program itself: neither a crash nor a result.

    Attributes:
        params: what was tried.
        error: in words.
    """

    params: Mapping[str, Any]
    error: str


def check_outcome(
    objective: object, values: Mapping[str, object], constraints: Sequence[Constraint]
) -> tuple[float | None, dict[str, float | None]]:
    """Validate what a user tells about a trial.

    Args:
        objective: a finite number, or `CRASHED`.
        values: per constraint a finite number or `VIOLATED`; all are needed unless crashed.
        constraints: the declared ones.

    Returns:
        The objective, None if crashed, and the constraints, None where violated.
    """
    known = {constraint.name: constraint for constraint in constraints}
    unknown = [name for name in values if name not in known]
    if unknown:
        declared = ", ".join(map(repr, known)) or "none"
        raise InputError(f"`{unknown[0]}` must be a declared constraint; got {unknown!r}, declared: {declared}.")
    cost = None if objective is CRASHED else _finite("objective", objective, "crashbo.CRASHED")
    seen = {
        name: None if values[name] is VIOLATED else _finite(name, values[name], "crashbo.VIOLATED")
        for name in known
        if name in values
    }
    missing = [name for name in known if name not in seen]
    if missing and cost is not None:
        raise InputError(
            f"`{missing[0]}` must be told with the objective; got nothing. Give its value or crashbo.VIOLATED."
        )
    return cost, seen


def as_scalar(value: Any) -> Any:
    """Unpack NumPy and torch scalars and one-element arrays; anything else is returned as it is."""
    try:
        return value.item() if hasattr(value, "item") else value
    except (ValueError, RuntimeError):
        return value


def is_number(value: object) -> bool:
    """Whether a value is a real number, and not a bool."""
    return isinstance(value, Real) and not isinstance(value, bool)


def _finite(name: str, value: object, label: str) -> float:
    item = as_scalar(value)
    try:
        number = float(item) if is_number(item) else math.nan
    except OverflowError:  # an int no double can hold
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"`{name}` must be a finite number or {label}; got {value!r}.")
    if abs(number) > _LARGEST:
        raise InputError(f"`{name}` must be below 1e100 in size; got {value!r}.")
    return number
