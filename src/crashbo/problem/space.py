"""The search space: named parameters and their map to the unit cube, where the models live."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.parameters import Categorical, Float, Int, Kind, Parameter, integer, native, params_at
from crashbo.problem.region import Region
from crashbo.problem.rules import Rule
from crashbo.problem.sobol import sobol

__all__ = ["Categorical", "Coordinates", "Float", "Int", "Parameter", "Space"]

_TYPES: dict[str, Any] = {one.__name__.lower(): one for one in (Float, Int, Categorical)}


@dataclass(frozen=True)
class Coordinates:
    """The coordinates start, ..., stop - 1 of the unit cube and the parameter they stand for.

    Kinds: "continuous"; "grid" and "log-grid", a cell for each value; "one-hot", a coordinate for each choice.
    """

    name: str
    parameter: Parameter
    start: int
    stop: int

    @property
    def kind(self) -> Kind:
        """How the models see the parameter."""
        return self.parameter.kind

    @property
    def cells(self) -> int:
        """The number of cells or choices; 0 for a continuum."""
        return 0 if self.kind == "continuous" else int(self.parameter.size)

    def round(self, unit: Array) -> Array:
        """Move `... x (stop - start)` points to the encoding whose cell holds them."""
        return self.spread(self.gather(unit))

    def spread(self, position: ArrayLike) -> Array:
        """Return the encoding, `... x (stop - start)`, of the values at positions in [0, 1]."""
        positions = np.asarray(position, dtype=np.float64)[..., None]
        if self.kind == "one-hot":
            return np.asarray(np.arange(self.cells) == self.parameter.cells(positions), dtype=np.float64)
        return self.parameter.round(positions)

    def gather(self, unit: Array) -> Array:
        """Return the positions in [0, 1] of points."""
        return self.parameter.middles(unit.argmax(-1)) if self.kind == "one-hot" else unit[..., 0]


class Space(Mapping[str, Parameter]):
    """Named parameters in a fixed order.

    `(low, high)` is short for `Float(low, high)`, and a list of choices is short for `Categorical(choices)`. A pair of
    numbers is always a range, as a tuple and as a list.

    In the unit cube, a continuous or integer parameter takes one coordinate, a choice among k takes k (one-hot),
    and a constant takes none. `coordinates` says which is which.

    Args:
        parameters: the parameters by name.
        constraints: known constraints between parameters: expressions such as "batch * width <= 4096", or functions of
            the params that return whether they are allowed. Every suggestion satisfies them.

    Raises:
        InputError: if there is no parameter, if a name, a parameter or a constraint is invalid, or if no point
            satisfies the constraints.
    """

    def __init__(
        self,
        parameters: Mapping[str, Parameter | Sequence[Any]],
        constraints: Sequence[str | Callable[[dict[str, Any]], Any]] = (),
    ) -> None:
        if not isinstance(parameters, Mapping) or not parameters:
            raise InputError(f"`parameters` must be a dict of at least one parameter; got {parameters!r}. Add one.")
        self._parameters = {name: _parameter(name, value) for name, value in parameters.items()}
        self.coordinates: tuple[Coordinates, ...] = ()
        self.dimension = 0
        for name, parameter in self.items():
            if parameter.size > 1:
                start = self.dimension
                self.dimension += int(parameter.size) if parameter.kind == "one-hot" else 1
                self.coordinates += (Coordinates(name, parameter, start, self.dimension),)
        if isinstance(constraints, str) or not isinstance(constraints, Sequence):
            raise InputError(f"`constraints` must be a list of expressions or functions; got {constraints!r}.")
        rules = [Rule(one, self) for one in constraints]
        self.constraints = tuple(constraints)
        self._region = Region(self._parameters, rules) if rules else None

    def __getitem__(self, name: str) -> Parameter:
        return self._parameters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parameters)

    def __len__(self) -> int:
        return len(self._parameters)

    def __eq__(self, other: object) -> bool:
        """Compare names, parameters and their order, since the order fixes the encoding; and constraints."""
        if not isinstance(other, Space):
            return False
        return tuple(self.items()) == tuple(other.items()) and self.constraints == other.constraints

    def __hash__(self) -> int:
        return hash((*self.items(), *self.constraints))

    def __repr__(self) -> str:
        more = f", constraints={list(self.constraints)!r}" if self.constraints else ""
        return f"Space({self._parameters!r}{more})"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in the order declared."""
        return tuple(self._parameters)

    @property
    def size(self) -> float:
        """The number of distinct points; infinity if any parameter is continuous."""
        sizes = [parameter.size for parameter in self.values()]
        return math.inf if math.inf in sizes else math.prod(sizes)

    def validate(self, params: Mapping[str, object]) -> dict[str, Any]:
        """Return the params as native Python values in the order of the space.

        Raises:
            InputError: if a parameter is missing, unknown, of a wrong type or out of bounds; the message names it.
        """
        if not isinstance(params, Mapping):
            raise InputError(f"`params` must map parameter names to values; got {params!r}. Pass a dict.")
        missing = [name for name in self if name not in params]
        unknown = [name for name in params if name not in self]
        if missing or unknown:
            raise InputError(
                f"`params` must have exactly the names {list(self)}; got {list(params)}. "
                + " ".join([f"Add {missing}."] * bool(missing) + [f"Remove {unknown}."] * bool(unknown))
            )
        return {name: parameter.check(name, params[name]) for name, parameter in self.items()}

    def broken(self, params: Mapping[str, object]) -> list[str]:
        """The constraints between parameters that these params break, in words."""
        return [] if self._region is None else self._region.broken(self.validate(params))

    def encode(self, params: Mapping[str, object]) -> Array:
        """Return the params as a point of the unit cube, shape `(dimension,)`."""
        return self.encode_valid([self.validate(params)])[0]

    def encode_valid(self, params: Sequence[Mapping[str, Any]]) -> Array:
        """Return params that are known to be valid as points of the unit cube, `n x dimension`."""
        columns = [parameter.positions([one[name] for one in params]) for name, parameter in self.items()]
        return self._spread(np.stack(columns, -1))

    def decode(self, unit: ArrayLike) -> dict[str, Any]:
        """Return the params at a point of the unit cube; the point is rounded to a valid one first."""
        point = self.round(unit)
        if point.ndim != 1:
            raise InputError(f"`unit` must have shape ({self.dimension},); got {point.shape}. Decode row by row.")
        return params_at(self, self._gather(point[None]))[0]

    def round(self, unit: ArrayLike) -> Array:
        """Round points of the unit cube, `... x dimension`, to valid encodings of integers and choices.

        Points outside the cube are moved to its border first.
        """
        points = np.asarray(unit, dtype=np.float64)
        shape, d = points.shape, self.dimension
        if shape[-1:] != (d,):
            raise InputError(f"`unit` must have shape (..., {d}); got {shape}. Give a column per coordinate.")
        if not np.isfinite(points).all():
            raise InputError("`unit` must be finite; got NaN or infinity. Check where the points come from.")
        return self._spread(self._gather(points.clip(0.0, 1.0)))

    def project(self, unit: Array) -> Array:
        """Return rounded points, `... x dimension`, moved to where all constraints between parameters hold."""
        if self._region is None:
            return unit
        positions = self._gather(unit.reshape(-1, self.dimension))
        return self._spread(self._region.project(positions)).reshape(unit.shape)

    def spread(self, n: int, seed: int) -> Array:
        """Return about n points all over the part of the unit cube where all constraints hold, quasi-random."""
        if self._region is None:
            return sobol(n, self.dimension, seed)
        return self._spread(self._region.spread(n, seed))

    def _gather(self, points: Array) -> Array:
        """The positions of points, one column per parameter, `... x len(space)`; 0 for constants."""
        positions = np.zeros((*points.shape[:-1], len(self)))
        for block in self.coordinates:
            positions[..., self.names.index(block.name)] = block.gather(points[..., block.start : block.stop])
        return positions

    def _spread(self, positions: Array) -> Array:
        """The valid points at positions, `... x dimension`."""
        points = np.empty((*positions.shape[:-1], self.dimension))
        for block in self.coordinates:
            points[..., block.start : block.stop] = block.spread(positions[..., self.names.index(block.name)])
        return points

    def sample(self, n: int, rng: np.random.Generator) -> list[dict[str, Any]]:
        """Return n params drawn uniformly, log-uniformly on a log scale; all satisfy the constraints."""
        count, region = _count(n), self._region
        return params_at(self, rng.random((count, len(self))) if region is None else region.sample(count, rng))

    def sobol(self, n: int, seed: int) -> list[dict[str, Any]]:
        """Return the first n params of a scrambled Sobol sequence, spread more evenly than `sample`.

        With constraints, only points that satisfy them; if the sequence has too few of these, points far from each
        other.
        """
        count, region = _count(n), self._region
        return params_at(self, sobol(count, len(self), seed) if region is None else region.ordered(count, seed))

    def to_json(self) -> dict[str, Any]:
        """Return a dict that `json` writes and reads back without loss."""
        data = {"parameters": [{"name": name} | _to_json(parameter) for name, parameter in self.items()]}
        for one in self.constraints:
            if not isinstance(one, str):
                name = getattr(one, "__name__", repr(one))
                rule = f"`constraints` must be expressions to be saved; got the function {name!r}."
                raise InputError(f"{rule} Write it like 'a + b <= 1', or save nothing.")
        return data | ({"constraints": list(self.constraints)} if self.constraints else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Space":
        """Return the space that `to_json` wrote."""
        try:
            entries = [dict(entry) for entry in data["parameters"]]
            parameters = {entry.pop("name"): _TYPES[entry.pop("type")](**entry) for entry in entries}
            constraints = [str(one) for one in data.get("constraints", ())]
        except (KeyError, TypeError) as error:
            raise InputError(f"`data` must be what `to_json` returns; got {data!r}. Write it anew.") from error
        if len(parameters) < len(entries):
            raise InputError(f"`data` must name each parameter once; got {list(parameters)}. Remove the repeated ones.")
        return cls(parameters, constraints)


def _parameter(name: object, value: object) -> Parameter:
    if not isinstance(name, str) or not name:
        raise InputError(f"`parameters` must be named by non-empty strings; got {name!r}. Rename it.")
    if isinstance(value, Parameter):
        return value
    if isinstance(value, str) or not isinstance(value, Sequence) or not len(value):
        raise InputError(
            f"`{name}` must be a Float, Int, Categorical, (low, high) or a list of choices; got {value!r}. "
            "Use one of these."
        )
    numbers = [one for one in map(native, value) if isinstance(one, int | float) and not isinstance(one, bool)]
    if len(numbers) < len(value):
        return Categorical(list(value))
    if len(value) != 2:
        raise InputError(
            f"`{name}` must be (low, high) if it holds numbers alone; got {value!r}. Use Categorical for choices."
        )
    try:
        return Float(*value)
    except InputError as error:
        raise InputError(f"`{name}` must be a valid range; got {value!r}. {error}") from error


def _to_json(parameter: Parameter) -> dict[str, Any]:
    values = {entry.name: getattr(parameter, entry.name) for entry in fields(parameter) if entry.init}
    if isinstance(parameter, Categorical):
        values["choices"] = list(parameter.choices)
    return {"type": type(parameter).__name__.lower()} | values


def _count(n: object) -> int:
    count = integer("n", n)
    if count < 0:
        raise InputError(f"`n` must not be negative; got {n}. Ask for at least 0 points.")
    return count
