"""One parameter as an axis: where its values lie, and which points of the unit cube they are."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.parameters import Categorical, Float, Int, Parameter
from crashbo.problem.space import Space
from crashbo.show.views import View

Scale: TypeAlias = Literal["linear", "log", "category"]


@dataclass(frozen=True)
class Axis:
    """An axis over the values of one parameter.

    Attributes:
        name: of the parameter.
        label: name and unit, for people.
        scale: "linear", "log", or "category": choices at 0, 1, 2, ...
        values: `m` places where the model is looked at, increasing; places of choices.
        edges: `m + 1` borders between them, for coloured cells.
        ticks: text by place; None lets the drawing choose.
        discrete: whether there is nothing between the values.
    """

    name: str
    label: str
    scale: Scale
    values: Array
    edges: Array
    ticks: Mapping[float, str] | None
    discrete: bool

    def place(self, parameter: Parameter, value: Any) -> float:
        """Where a value of the parameter lies on this axis."""
        if not isinstance(parameter, Categorical):
            return float(value)
        return parameter.locate(value) * parameter.size - 0.5


def make_axis(view: View, name: str, points: int) -> Axis:
    """Return the axis of a parameter, looked at in at most `points` places (all choices of a category).

    Raises:
        InputError: if there is no such parameter, or it is a constant.
    """
    if name not in view.varying:
        raise InputError(f"`parameter` must be one that varies, of {list(view.varying)}; got {name!r}.")
    parameter = view.space[name]
    label = view.label(name)
    if isinstance(parameter, Categorical):
        places = np.arange(parameter.size, dtype=np.float64)
        ticks = {float(place): str(choice) for place, choice in zip(places, parameter.choices, strict=True)}
        edges = np.arange(parameter.size + 1, dtype=np.float64) - 0.5
        return Axis(name, label, "category", places, edges, ticks, True)
    raw = _values(parameter, points)
    scale: Scale = "log" if parameter.log else "linear"
    discrete = math.isfinite(parameter.size)
    few = {float(value): f"{value:g}" for value in raw} if discrete and len(raw) <= 8 else None
    return Axis(name, label, scale, raw, _edges(raw, scale), few, discrete)


def _values(parameter: Float | Int, points: int) -> Array:
    """All values if they are few, else evenly spaced ones (evenly in the log on a log scale)."""
    if parameter.size > points:
        return np.unique([float(parameter.at(position)) for position in np.linspace(0, 1, points)])
    if isinstance(parameter, Int):
        return np.arange(parameter.low, parameter.high + 1, parameter.step, dtype=np.float64)
    return np.array([parameter.at((cell + 0.5) / parameter.size) for cell in range(int(parameter.size))])


def _edges(values: Array, scale: Scale) -> Array:
    """Borders halfway between the values, on the axis' own scale; the outer ones as far out again."""
    places = np.log(values) if scale == "log" else values
    middle = (places[1:] + places[:-1]) / 2
    edges = np.concatenate([[2 * places[0] - middle[0]], middle, [2 * places[-1] - middle[-1]]])
    return np.exp(edges) if scale == "log" else edges


def line_points(space: Space, axis: Axis, params: Mapping[str, Any]) -> Array:
    """Points of the unit cube along an axis, the other parameters as given, `m x d`."""
    base = space.encode(params)
    points = np.repeat(base[None], len(axis.values), axis=0)
    _fill(points, space, axis)
    return points


def plane_points(space: Space, x: Axis, y: Axis, params: Mapping[str, Any]) -> Array:
    """Points of the unit cube over two axes, the other parameters as given, `(len(y) len(x)) x d`."""
    base = space.encode(params)
    points = np.broadcast_to(base, (len(y.values), len(x.values), len(base))).copy()
    _fill(points, space, x)
    _fill(np.swapaxes(points, 0, 1), space, y)
    return points.reshape(-1, len(base))


def _fill(points: Array, space: Space, axis: Axis) -> None:
    """Write an axis' coordinates into points `... x m x d`."""
    parameter = space[axis.name]
    block = next(one for one in space.coordinates if one.name == axis.name)
    values: Sequence[Any] = parameter.choices if isinstance(parameter, Categorical) else axis.values.tolist()
    encoded = np.stack([block.spread(parameter.locate(value)) for value in values])
    points[..., block.start : block.stop] = encoded


def nearness(view: View, params: Mapping[str, Any], shown: Sequence[str]) -> Array:
    """How near each trial is to the slice through `params`, from 1 (on it) down to 0, `n`.

    The distance runs over the parameters not shown, each in its own range from 0 to 1, a
    different choice counting 1; at a distance of 1/2 a trial is as good as elsewhere.
    """
    hidden = [name for name in view.varying if name not in shown]
    if not hidden:
        return np.ones(len(view.trials))
    apart = np.stack([_distances(view, name, params[name]) for name in hidden])
    return np.clip(1 - 2 * np.sqrt(np.square(apart).mean(0)), 0.0, 1.0)


def _distances(view: View, name: str, other: Any) -> Array:
    parameter = view.space[name]
    if isinstance(parameter, Categorical):
        return np.array([trial.params[name] != other for trial in view.trials], dtype=np.float64)
    return np.abs(view.positions[name] - parameter.locate(other))
