"""One parameter of an experiment: its values, their checks, and their places in [0, 1]."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np

from crashbo.arrays import Array
from crashbo.errors import InputError

Value: TypeAlias = bool | int | float | str | None
Kind: TypeAlias = Literal["continuous", "grid", "log-grid", "one-hot"]

_PLAIN = (bool, int, float, str, type(None))
_LARGEST_INT = 2**40  # up to here double precision tells the cells of a grid apart


@dataclass(frozen=True)
class Float:
    """A real number in [low, high]; with `log` on a log scale, with `step` on the grid low, low + step, ...

    With low = high it is a constant. Converting a value to the unit cube and back changes it by rounding only: about
    1e-15 of the larger bound, or 1e-13 of the value on a log scale. Bounds and grid values come back exactly.
    """

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        low, high = real("low", self.low), real("high", self.high)
        step = None if self.step is None else real("step", self.step)
        _set(self, low=low, high=high, step=step)
        _check_range(low, high, self.log, step)
        if not math.isfinite(high - low):
            raise InputError(f"`high` - `low` must be finite; got {low} and {high}. Narrow the range.")
        if self.log and low < high and math.log(low) == math.log(high):
            raise InputError(f"`high` must exceed `low` by more than rounding; got {low} and {high}. Drop `log`.")
        if step is not None and max(abs(low), abs(high)) / step > _LARGEST_INT:
            raise InputError(f"`step` must be at least 2**-40 of the larger bound; got {step}. Drop it.")

    @property
    def kind(self) -> Kind:
        """How the models see it."""
        return "continuous" if self.step is None else "grid"

    @cached_property
    def size(self) -> float:
        """The number of distinct values; infinity if continuous."""
        if self.low == self.high:
            return 1
        return math.inf if self.step is None else int((_exact(self.high) - _exact(self.low)) // _exact(self.step)) + 1

    def check(self, name: str, value: object) -> float:
        """Return the value as a float of this range; refuse any other."""
        number = real(name, value)
        return float(_nearest(self, name, number, max(1e-12 * abs(number), 1e-8 * (self.step or 0.0))))

    def locate(self, value: float) -> float:
        """Return the position of a value in [0, 1]; a grid value lies in the middle of its cell."""
        if self.size == 1:
            return 0.5
        if self.step is not None:
            return (min(round((value - self.low) / self.step), self.size - 1) + 0.5) / self.size
        if self.log:
            return (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return (value - self.low) / (self.high - self.low)

    def at(self, position: float) -> float:
        """Return the value at a position in [0, 1], the inverse of `locate`."""
        if self.step is not None:  # in decimal arithmetic 0 + 3 * 0.1 is 0.3
            return float(_exact(self.low) + cell_of(position, int(self.size)) * _exact(self.step))
        if position in (0.0, 1.0):
            return self.high if position else self.low
        if self.log:
            value = math.exp((1 - position) * math.log(self.low) + position * math.log(self.high))
        else:
            value = self.low + position * (self.high - self.low)
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Int:
    """An integer among low, low + step, ... up to high; with `log` on a log scale. With low = high it is a constant.

    Each integer k has a cell of [0, 1]: all cells have the same width, or on a log scale reach from log(k - 1/2) to
    log(k + 1/2).
    """

    low: int
    high: int
    log: bool = field(default=False, kw_only=True)
    step: int = field(default=1, kw_only=True)

    def __post_init__(self) -> None:
        low, high, step = integer("low", self.low), integer("high", self.high), integer("step", self.step)
        _set(self, low=low, high=high, step=step)
        _check_range(low, high, self.log, None if step == 1 else step)
        if max(-low, high) > _LARGEST_INT:
            raise InputError(f"`low` and `high` must lie within 2**40 of zero; got {low} and {high}. Use a Float.")

    @property
    def kind(self) -> Kind:
        """How the models see it."""
        return "log-grid" if self.log else "grid"

    @property
    def size(self) -> int:
        """The number of distinct values."""
        return (self.high - self.low) // self.step + 1

    def check(self, name: str, value: object) -> int:
        """Return the value as an int of this range; refuse any other."""
        return int(_nearest(self, name, integer(name, value), 0.0))

    def locate(self, value: int) -> float:
        """Return the position of a value in [0, 1], inside its cell."""
        if self.log:
            start, width = log_cells(self.low, self.size)
            return (math.log(value) - start) / width
        return (min(round((value - self.low) / self.step), self.size - 1) + 0.5) / self.size

    def at(self, position: float) -> int:
        """Return the value whose cell holds a position in [0, 1]."""
        if self.log:
            start, width = log_cells(self.low, self.size)
            return min(max(round(math.exp(start + position * width)), self.low), self.high)
        return self.low + self.step * cell_of(position, self.size)


@dataclass(frozen=True)
class Categorical:
    """One of several unordered choices: None, bools, numbers or strings. A single choice is a constant.

    Numbers are compared by value, but differ from bools: 1 and 1.0 are the same choice, 1 and True are not.
    """

    kind: ClassVar[Kind] = "one-hot"
    """How the models see it."""
    choices: Sequence[Value]
    _keys: tuple[tuple[bool, Value], ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        if isinstance(self.choices, str) or not isinstance(self.choices, Sequence) or not self.choices:
            raise InputError(f"`choices` must be a list of at least one choice; got {self.choices!r}. List the values.")
        choices = tuple(native(choice) for choice in self.choices)
        for one in choices:
            if type(one) not in _PLAIN or (isinstance(one, float) and not math.isfinite(one)):
                rule = "None, bools, finite numbers or strings"
                raise InputError(f"`choices` must be {rule}; got {one!r}. Name it by a string.")
        keys = tuple(_key(choice) for choice in choices)
        if len(set(keys)) < len(keys):
            raise InputError(f"`choices` must be unique; got {list(choices)}. Remove the repeated ones.")
        _set(self, choices=choices, _keys=keys)

    @property
    def size(self) -> int:
        """The number of choices."""
        return len(self.choices)

    def check(self, name: str, value: object) -> Value:
        """Return the choice equal to the value; refuse any other."""
        choice = native(value)
        if not isinstance(choice, _PLAIN) or _key(choice) not in self._keys:
            raise InputError(f"`{name}` must be one of {list(self.choices)}; got {value!r}. Pick a listed choice.")
        return self.choices[self._keys.index(_key(choice))]

    def locate(self, value: Value) -> float:
        """Return the middle of the choice's cell, where the cells share [0, 1] evenly."""
        return (self._keys.index(_key(value)) + 0.5) / self.size

    def at(self, position: float) -> Value:
        """Return the choice whose cell holds a position in [0, 1]."""
        return self.choices[cell_of(position, self.size)]


Parameter: TypeAlias = Float | Int | Categorical


def params_at(parameters: Mapping[str, Parameter], positions: Array) -> list[dict[str, Any]]:
    """Return the values of all parameters at positions, `n x len(parameters)`."""
    named = list(parameters.items())
    return [{name: one.at(at) for (name, one), at in zip(named, row, strict=True)} for row in positions.tolist()]


def _set(instance: object, **attributes: object) -> None:
    for name, value in attributes.items():
        object.__setattr__(instance, name, value)  # the dataclasses are frozen to everyone else


def _key(choice: Any) -> tuple[bool, Value]:
    return isinstance(choice, bool), choice  # True == 1, yet they are different choices


def native(value: Any) -> Any:
    """Return a numpy scalar as the Python value it holds, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value


def real(name: str, value: object) -> float:
    """Return a finite number as a float; refuse anything else, bools too."""
    number = native(value)
    if isinstance(number, bool) or not isinstance(number, int | float) or not abs(number) <= sys.float_info.max:
        raise InputError(f"`{name}` must be a finite number; got {value!r}. Pass an int or a float.")
    return float(number)


def integer(name: str, value: object) -> int:
    """Return an integer, or a float that is one, as an int; refuse anything else, bools too."""
    number = native(value)
    if isinstance(number, float) and number.is_integer():
        number = int(number)
    if isinstance(number, bool) or not isinstance(number, int):
        raise InputError(f"`{name}` must be an integer; got {value!r}. Round it.")
    return int(number)


def _check_range(low: float, high: float, log: bool, step: float | None) -> None:
    if low > high:
        raise InputError(f"`low` must not exceed `high`; got {low} and {high}. Swap them.")
    if not isinstance(log, bool):
        raise InputError(f"`log` must be True or False; got {log!r}. Pass a bool.")
    if step is not None and step <= 0:
        raise InputError(f"`step` must be positive; got {step}. The grid starts at `low` and goes up.")
    if log and low <= 0:
        raise InputError(f"`low` must be positive on a log scale; got {low}. Raise it, or drop `log`.")
    if log and step is not None:
        raise InputError(f"`step` must be left out on a log scale; got {step}. Drop one of the two.")


def _nearest(parameter: Float | Int, name: str, value: float, tolerance: float) -> float:
    """The parameter's value next to one that must lie in its range and, off the grid, no further than a tolerance."""
    low, high, step = parameter.low, parameter.high, parameter.step
    if not low <= value <= high:
        raise InputError(f"`{name}` must lie in [{low}, {high}]; got {value}. Stay inside, or widen the space.")
    nearest = value if step is None else parameter.at(parameter.locate(value))  # type: ignore[arg-type]
    if abs(value - nearest) > tolerance:
        raise InputError(f"`{name}` must be {low} plus a multiple of {step}; got {value}. The nearest is {nearest}.")
    return nearest


def _exact(value: float) -> Decimal:
    return Decimal(repr(value))


def cell_of(position: float, cells: int) -> int:
    """Return which of the cells that share [0, 1] evenly holds the position."""
    return min(int(position * cells), cells - 1)


def cells_of(positions: Array, cells: float | Array) -> Array:
    """The same for arrays."""
    return np.minimum(np.floor(positions * cells), cells - 1)


def log_cells(first: int, cells: int) -> tuple[float, float]:
    """Return start and width of the log range of the integers first, first + 1, ..."""
    start = math.log(first - 0.5)
    return start, math.log(first + cells - 0.5) - start
