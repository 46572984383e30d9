"""The numbers behind the maps of a model over two parameters: plain arrays, no drawing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.problem.history import OBJECTIVE
from crashbo.show.axis import Axis, make_axis, plane_points
from crashbo.show.data import Line, Marks, held_params, line, output_label, trial_marks, true_values
from crashbo.show.views import Source, View, modelled

if TYPE_CHECKING:
    from crashbo.research.problems import Problem

Quantity: TypeAlias = Literal["truth", "mean", "std", "success", "acquisition", "unconstrained"]


@dataclass(frozen=True)
class Layer:
    """One coloured map.

    Attributes:
        output: what it is about: "objective" or a constraint.
        quantity: what of it.
        title: for people.
        unit_label: for the colour bar.
        values: `len(y) x len(x)`, NaN where undefined.
    """

    output: str
    quantity: Quantity
    title: str
    unit_label: str
    values: Array


@dataclass(frozen=True)
class Maps:
    """A model over two parameters, the others held.

    Attributes:
        x, y: the parameters.
        layers: the maps.
        marks: the trials, with all that failed marked; see `marks_of`.
        output_marks: the trials that say something about an output, with its own failures marked, by output.
        best, next: places.
        pending: places of suggestions that are out.
        success: probability that nothing fails, `len(y) x len(x)`.
        safe_level: the probability that counts as safe, 1 - delta.
        held: the other parameters' values.
        infeasible: where trials truly fail, None if unknown.
        minimum: the true minimum's place, None if unknown.
    """

    x: Axis
    y: Axis
    layers: tuple[Layer, ...]
    marks: Marks
    output_marks: Mapping[str, Marks]
    best: tuple[float, float]
    next: tuple[float, float]
    pending: tuple[tuple[float, float], ...]
    success: Array
    safe_level: float
    held: Mapping[str, Any]
    infeasible: np.ndarray | None = None
    minimum: tuple[float, float] | None = None

    def layer(self, quantity: Quantity, output: str = OBJECTIVE) -> Layer:
        """One of the layers."""
        return next(one for one in self.layers if (one.quantity, one.output) == (quantity, output))

    def marks_of(self, layer: Layer) -> Marks:
        """The trials on a map: a map of one output marks the failures of that output."""
        whole = layer.quantity == "success" and layer.output == OBJECTIVE
        return self.marks if whole else self.output_marks[layer.output]


@dataclass(frozen=True)
class Pairs:
    """A model along every parameter and over every pair of them.

    Attributes:
        lines: by parameter.
        maps: one layer each, by (x, y) with y after x.
    """

    lines: Mapping[str, Line]
    maps: Mapping[tuple[str, str], Maps]


def maps(
    source: Source,
    x: str | None = None,
    y: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    points: int = 61,
    quantities: Sequence[Quantity] = ("mean", "std", "success", "acquisition"),
    truth: "Problem | None" = None,
) -> Maps:
    """Look at a model over two parameters.

    Args:
        source: what to draw.
        x, y: the parameters; may be left out if there are only two.
        at: values of other parameters; the best guess has the rest.
        points: resolution along each axis.
        quantities: which maps. "success" of the objective is the probability that nothing fails at
            all, of a constraint that it holds; acquisitions belong to the objective.
        truth: the true problem, if known: adds the true outputs.
    """
    seen = modelled(source)
    _check(quantities)
    first, second = _two(seen, x, y)
    horizontal, vertical = make_axis(seen, first, points), make_axis(seen, second, points)
    params = seen.params_at(at)
    grid = plane_points(seen.space, horizontal, vertical, params)
    shape = len(vertical.values), len(horizontal.values)
    found = _truths(seen, horizontal, vertical, params, truth) if truth is not None else []
    success = seen.models.success(grid)
    for output in seen.models.outputs:
        for quantity, values in _quantities(seen, output, grid, params, (first, second), quantities, success).items():
            found.append(Layer(output, quantity, *_titles(seen, output, quantity), values.reshape(shape)))
    place = partial(_place, seen, horizontal, vertical)
    return Maps(
        x=horizontal,
        y=vertical,
        layers=tuple(found),
        marks=trial_marks(seen, horizontal, vertical, None, params),
        output_marks={one: trial_marks(seen, horizontal, vertical, one, params) for one in seen.models.outputs},
        best=place(seen.best.params),
        next=place(seen.decision.suggestion),
        pending=tuple(place(one) for one in seen.optimizer.pending),
        success=success.reshape(shape),
        safe_level=1 - seen.optimizer.options.delta,
        held=held_params(seen, params, (first, second)),
        infeasible=None if truth is None else _infeasible(horizontal, vertical, params, truth),
        minimum=None if truth is None else place(truth.minimiser),
    )


def _check(quantities: Sequence[Quantity]) -> None:
    unknown = [one for one in quantities if one not in get_args(Quantity)]
    if unknown or isinstance(quantities, str) or not quantities:
        raise InputError(f"`quantities` must be some of {', '.join(get_args(Quantity))}; got {quantities!r}.")


def _place(view: View, x: Axis, y: Axis, where: Mapping[str, Any]) -> tuple[float, float]:
    return x.place(view.space[x.name], where[x.name]), y.place(view.space[y.name], where[y.name])


def _two(view: View, x: str | None, y: str | None) -> tuple[str, str]:
    names = view.varying
    if len(names) < 2:
        raise InputError(f"`source` must have two parameters that vary for a map; got {list(names)}. Draw a line.")
    if (x is None or y is None) and len(names) > 2:
        raise InputError(f"`x` and `y` must be given where more than two vary; got {x!r} and {y!r} of {list(names)}.")
    first = x if x is not None else next(name for name in names if name != y)
    second = y if y is not None else next(name for name in names if name != first)
    if first == second:
        raise InputError(f"`x` and `y` must be different parameters; got {first!r} twice.")
    return first, second


def _quantities(
    view: View,
    output: str,
    grid: Array,
    params: Mapping[str, Any],
    shown: Sequence[str],
    wanted: Sequence[Quantity],
    success: Array,
) -> dict[Quantity, Array]:
    """What was asked for of one output on a grid, in that order; what it does not have is left out."""
    found: dict[Quantity, Array | None] = {}
    if "mean" in wanted or "std" in wanted:
        mean, found["std"] = view.models.moments(grid, output)
        found["mean"] = mean * (view.sign if output == OBJECTIVE else 1.0)
    if "success" in wanted:
        found["success"] = success if output == OBJECTIVE else view.models.success(grid, output)
    if "acquisition" in wanted and output == OBJECTIVE:
        found["acquisition"] = view.acquisition(grid, params, shown)
    if "unconstrained" in wanted and output == OBJECTIVE:
        found["unconstrained"] = view.decision.scaled_gain(grid)
    return {name: values for name in wanted if (values := found.get(name)) is not None}


def _titles(view: View, output: str, quantity: Quantity) -> tuple[str, str]:
    name, label = view.name(output), output_label(view, output)
    mode = view.decision.name
    if quantity == "success":
        title = "success probability" if output == OBJECTIVE else f"probability that {name} holds"
        return title, "probability"
    return {
        "mean": (f"{name}, mean", label),
        "std": (f"{name}, standard deviation", label),
        "acquisition": (f"where to try next ({mode})", "relative to its maximum"),
        "unconstrained": (f"{mode}, success left out", "relative to its maximum"),
    }[quantity]


def _truths(view: View, x: Axis, y: Axis, params: Mapping[str, Any], truth: "Problem") -> list[Layer]:
    found = []
    for output in view.models.outputs:
        rows = [true_values(view, x, output, {**params, y.name: value}, truth) for value in y.values.tolist()]
        found.append(Layer(output, "truth", f"{view.name(output)}, true", view.label(output), np.stack(rows)))
    return found


def _infeasible(x: Axis, y: Axis, params: Mapping[str, Any], truth: "Problem") -> np.ndarray:
    return np.array(
        [
            [not truth.feasible({**params, x.name: across, y.name: up}) for across in x.values.tolist()]
            for up in y.values.tolist()
        ]
    )


def pairs(
    source: Source,
    *,
    names: Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    quantity: Quantity = "mean",
    points: int = 31,
) -> Pairs:
    """Look at a model over every pair of parameters, the others held.

    Args:
        source: what to draw.
        names: of the parameters to pair; None: all that vary.
        at: values of other parameters; the best guess has the rest.
        quantity: of the objective.
        points: resolution along each axis.
    """
    seen = modelled(source)
    chosen = tuple(names or seen.varying)
    if len(chosen) < 2:
        raise InputError(f"`names` must be at least two parameters; got {list(chosen)}. Draw a line.")
    order = [(a, b) for i, a in enumerate(chosen) for b in chosen[i + 1 :]]
    return Pairs(
        lines={name: line(seen, name, at=at, points=max(points, 61)) for name in chosen},
        maps={(a, b): maps(seen, a, b, at=at, points=points, quantities=(quantity,)) for a, b in order},
    )
