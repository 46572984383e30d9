"""One parameter of an experiment: its values, their checks, and their places in [0, 1]."""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import InputError
from crashbo.problem.arrays import Array

Value: TypeAlias = bool | int | float | str | None
Kind: TypeAlias = Literal["continuous", "grid", "log-grid", "one-hot"]

_PLAIN = (bool, int, float, str, type(None))
_LARGEST_INT = 2**40  # up to here double precision tells the cells of a grid apart


class _Parameter(ABC):
    """The maps between values and positions in [0, 1].

    Values are a continuum, or have the numbers 0, 1, ..., size - 1 and own a cell each, all of the same width.
    """

    kind: Kind
    """How the models see it."""
    size: float
    """The number of distinct values; infinity if continuous."""

    def at(self, position: float) -> Any:
        """Return the value at a position in [0, 1], the inverse of `locate`."""
        return self.values(np.array([position])).tolist()[0]

    def locate(self, value: Any) -> float:
        """Return the position of a value in [0, 1]; if it owns a cell, inside of that."""
        return float(self.positions([value])[0])

    @abstractmethod
    def values(self, positions: Array) -> NDArray[Any]:
        """Return the values at `n` positions; `tolist` makes them native."""

    @abstractmethod
    def positions(self, values: Sequence[Any]) -> Array:
        """Return the positions of `n` values."""

    def cells(self, positions: Array) -> Array:
        """Return the numbers of the values whose cells hold the positions."""
        return np.minimum(np.floor(positions * self.size), self.size - 1)

    def middles(self, cells: Array) -> Array:
        """Return the positions of the values with these numbers."""
        return (cells + 0.5) / self.size

    def round(self, positions: Array) -> Array:
        """Move positions to those of the values whose cells hold them; in a continuum they stay."""
        return positions if self.size == math.inf else self.middles(self.cells(positions))


@dataclass(frozen=True)
class Float(_Parameter):
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
        _check_range(low, high, self.log, step)
        if not math.isfinite(high - low):
            raise InputError(f"`high` - `low` must be finite; got {low} and {high}. Narrow the range.")
        if self.log and low < high and math.log(low) == math.log(high):
            raise InputError(f"`high` must exceed `low` by more than rounding; got {low} and {high}. Drop `log`.")
        if step is not None and max(abs(low), abs(high)) / step > _LARGEST_INT:
            raise InputError(f"`step` must be at least 2**-40 of the larger bound; got {step}. Drop it.")
        size = math.inf if step is None else int((_exact(high) - _exact(low)) // _exact(step)) + 1
        _set(self, low=low, high=high, step=step, size=1 if low == high else size)
        _set(self, kind="continuous" if step is None else "grid")

    def check(self, name: str, value: object) -> float:
        """Return the value as a float of this range; refuse any other."""
        number = real(name, value)
        return float(_nearest(self, name, number, max(1e-12 * abs(number), 1e-8 * (self.step or 0.0))))

    def positions(self, values: Sequence[float]) -> Array:
        low, high, numbers = self.low, self.high, np.asarray(values, dtype=np.float64)
        if self.size < math.inf:
            return self.middles(_steps(self, numbers))
        if self.log:
            low, high, numbers = math.log(low), math.log(high), np.log(numbers)
        return (numbers - low) / (high - low)

    def values(self, positions: Array) -> Array:
        low, high = self.low, self.high
        if self.step is not None:  # in decimal arithmetic 0 + 3 * 0.1 is 0.3
            cells, back = np.unique(self.cells(positions), return_inverse=True)
            return np.array([float(_exact(low) + int(cell) * _exact(self.step)) for cell in cells])[back]
        if self.log:
            values = np.exp((1 - positions) * math.log(low) + positions * math.log(high))
        else:
            values = low + positions * (high - low)
        values[positions == 0.0], values[positions == 1.0] = low, high
        return np.clip(values, low, high)


@dataclass(frozen=True)
class Int(_Parameter):
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
        _check_range(low, high, self.log, None if step == 1 else step)
        if max(-low, high) > _LARGEST_INT:
            raise InputError(f"`low` and `high` must lie within 2**40 of zero; got {low} and {high}. Use a Float.")
        if step > _LARGEST_INT:
            raise InputError("`step` must not exceed 2**40. Without a step, every integer is a value.")
        _set(self, low=low, high=high, step=step, size=(high - low) // step + 1)
        _set(self, kind="log-grid" if self.log else "grid")

    def check(self, name: str, value: object) -> int:
        """Return the value as an int of this range; refuse any other."""
        return int(_nearest(self, name, integer(name, value), 0.0))

    def positions(self, values: Sequence[int]) -> Array:
        return self.middles(_steps(self, np.asarray(values, dtype=np.float64)))

    def values(self, positions: Array) -> NDArray[np.int64]:
        return (self.low + self.step * self.cells(positions)).astype(np.int64)

    def cells(self, positions: Array) -> Array:
        if not self.log:
            return super().cells(positions)
        start, width = self._logs()
        return np.clip(np.rint(np.exp(start + positions * width)), self.low, self.high) - self.low

    def middles(self, cells: Array) -> Array:
        if not self.log:
            return super().middles(cells)
        start, width = self._logs()
        return (np.log(self.low + cells) - start) / width

    def _logs(self) -> tuple[float, float]:
        """Start and width of the range on a log scale."""
        start = math.log(self.low - 0.5)
        return start, math.log(self.high + 0.5) - start


@dataclass(frozen=True)
class Categorical(_Parameter):
    """One of several unordered choices: None, bools, numbers or strings. A single choice is a constant.

    Numbers are compared by value, but differ from bools: 1 and 1.0 are the same choice, 1 and True are not.
    """

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
        _set(self, choices=choices, _keys=keys, kind="one-hot", size=len(choices))

    def check(self, name: str, value: object) -> Value:
        """Return the choice equal to the value; refuse any other."""
        choice = native(value)
        if not isinstance(choice, _PLAIN) or _key(choice) not in self._keys:
            raise InputError(f"`{name}` must be one of {list(self.choices)}; got {value!r}. Pick a listed choice.")
        return self.choices[self._keys.index(_key(choice))]

    def positions(self, values: Sequence[Value]) -> Array:
        return self.middles(np.array([self._keys.index(_key(value)) for value in values]))

    def values(self, positions: Array) -> NDArray[Any]:
        return np.array(self.choices, dtype=object)[self.cells(positions).astype(int)]


Parameter: TypeAlias = Float | Int | Categorical


def params_at(parameters: Mapping[str, Parameter], positions: Array) -> list[dict[str, Any]]:
    """Return the values of all parameters at positions, `n x len(parameters)`."""
    columns = [one.values(column).tolist() for one, column in zip(parameters.values(), positions.T, strict=True)]
    return [dict(zip(parameters, row, strict=True)) for row in zip(*columns, strict=True)]


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
    nearest = value if step is None else parameter.at(parameter.locate(value))
    if abs(value - nearest) > tolerance:
        raise InputError(f"`{name}` must be {low} plus a multiple of {step}; got {value}. The nearest is {nearest}.")
    return nearest


def _exact(value: float) -> Decimal:
    return Decimal(repr(value))


def _steps(parameter: Float | Int, values: Array) -> Array:
    """The numbers of the grid's values next to these."""
    return np.minimum(np.rint((values - parameter.low) / (parameter.step or 1.0)), parameter.size - 1)
