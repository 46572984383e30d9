"""The numbers behind the pictures of a model: plain arrays, computed once, no drawing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import torch
from torch import Tensor

from crashbo.errors import InputError
from crashbo.models.surrogates import OBJECTIVE
from crashbo.outcome import Trial
from crashbo.plots.axis import Array, Axis, line_points, make_axis, nearness
from crashbo.plots.views import Source, View, modelled
from crashbo.problems import Problem

Quantity: TypeAlias = Literal["truth", "mean", "std", "success", "acquisition", "unconstrained"]
MODES = {"cmes": "CMES", "mes": "mES", "mesco": "mESCO", "logei": "log EI", "success": "success probability"}


@dataclass(frozen=True)
class Marks:
    """The trials in a picture, `n` each.

    Attributes:
        x, y: where they lie; y is NaN where there is no value to put them at.
        failed: crashed or violated, as far as this picture is concerned.
        near: from 0 to 1, how near they lie to the slice shown.
        numbers: for people.
        texts: what happened, for people.
    """

    x: Array
    y: Array
    failed: np.ndarray
    near: Array
    numbers: tuple[int, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Curve:
    """One output along a line.

    Attributes:
        output: "objective" or a constraint.
        label: name and unit.
        mean, std: of the model, `m`.
        threshold: the limit the model works with; None if there is none.
        success: probability that this output does not fail, `m`.
        marks: the trials; y is NaN where only the label is known.
        label_level: where to draw those: on the limit they are beyond, else beyond all values seen.
        truth: the true output, `m`, NaN where undefined; None if unknown.
        true_threshold: None if unknown.
    """

    output: str
    label: str
    mean: Array
    std: Array
    threshold: float | None
    success: Array
    marks: Marks
    label_level: float
    truth: Array | None = None
    true_threshold: float | None = None


@dataclass(frozen=True)
class Line:
    """A model along one parameter, the others held.

    Attributes:
        axis: the parameter.
        curves: the objective first, then the constraints.
        success: probability that nothing fails, `m`.
        acquisition: what the next point is chosen by, scaled to a maximum of 1, `m`.
        unconstrained: the same without the weight of success, None where there is no such weight.
        mode: the acquisition's name, for people.
        best: place of the best guess on the axis; None if it lies elsewhere.
        next: place of the next point; None where other parameters are held.
        held: the other parameters' values.
    """

    axis: Axis
    curves: tuple[Curve, ...]
    success: Array
    acquisition: Array
    unconstrained: Array | None
    mode: str
    best: float | None
    next: float | None
    held: Mapping[str, Any]


@torch.no_grad()
def line(
    source: Source,
    parameter: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    points: int = 401,
    truth: Problem | None = None,
) -> Line:
    """Look at a model along one parameter.

    Args:
        source: what to draw.
        parameter: may be left out if only one varies.
        at: values of other parameters; the best guess has the rest.
        points: resolution.
        truth: the true problem, if known.
    """
    seen = modelled(source)
    name = _only(seen) if parameter is None else parameter
    axis = make_axis(seen, name, points)
    params = seen.params_at(at)
    grid = line_points(seen.space, axis, params)
    models = seen.models
    outputs = (OBJECTIVE, *models.constraints)
    curves = [_curve(seen, axis, output, grid, params, truth) for output in outputs]
    unconstrained = seen.decision.normalised_unconstrained(grid)
    held = held_params(seen, params, (name,))
    at_best = held == held_params(seen, seen.best.params, (name,))
    return Line(
        axis=axis,
        curves=tuple(curves),
        success=models.success(grid).numpy(),
        acquisition=seen.acquisition(grid, params, (name,)).numpy(),
        unconstrained=None if unconstrained is None else unconstrained.numpy(),
        mode=MODES[seen.decision.mode],
        best=axis.place(seen.space[name], seen.best.params[name]) if at_best else None,
        next=None if held else axis.place(seen.space[name], seen.decision.suggestion[name]),
        held=held,
    )


def _only(view: View) -> str:
    if len(view.varying) != 1:
        raise InputError(f"`parameter` must be given where several vary; got None, there are {list(view.varying)}.")
    return view.varying[0]


def held_params(view: View, params: Mapping[str, Any], shown: Sequence[str]) -> dict[str, Any]:
    return {name: params[name] for name in view.varying if name not in shown}


def _curve(
    view: View,
    axis: Axis,
    output: str,
    grid: Tensor,
    params: Mapping[str, Any],
    truth: Problem | None,
) -> Curve:
    mean, std = (value.numpy() for value in view.models.moments(grid, output))
    limit = view.models.thresholds.get(output, math.inf)
    sign = view.sign if output == OBJECTIVE else 1.0
    threshold = sign * limit if math.isfinite(limit) else None
    marks = _marks_along(view, axis, output, params)
    seen = marks.y[~marks.failed] if (~marks.failed).any() else sign * mean
    beyond = sign * ((sign * seen).max() + 0.08 * (np.ptp(seen) or 1.0))
    return Curve(
        output=output,
        label=output_label(view, output),
        mean=sign * mean,
        std=std,
        threshold=threshold,
        success=output_success(view, output, grid).numpy(),
        marks=marks,
        label_level=float(beyond) if threshold is None else threshold,
        truth=None if truth is None else true_values(view, axis, output, params, truth),
        true_threshold=None if truth is None else truth.thresholds.get(output),
    )


def output_success(view: View, output: str, grid: Tensor) -> Tensor:
    """Probability that one output does not fail."""
    models = view.models
    if output == OBJECTIVE:
        return (1 - models.chance) * models.objective.log_success(grid).exp()
    return models.constraints[output].log_success(grid, threshold=models.limits[output]).exp()


def output_label(view: View, output: str) -> str:
    if output == OBJECTIVE and not view.models.any_stable:
        return f"{view.objective} (none seen yet)"
    return view.label(output)


def true_values(view: View, axis: Axis, output: str, params: Mapping[str, Any], truth: Problem) -> Array:
    places = [{**params, axis.name: value} for value in axis.values.tolist()]
    if output == OBJECTIVE:
        return np.array([truth.value(place) for place in places])
    found = [truth.measure(**view.space.validate(place))[output] for place in places]
    return np.array([math.nan if value is None else value for value in found])


def describe(view: View, trial: Trial) -> str:
    """What came of a trial, in a few words."""
    violated = [name for name, value in trial.constraints.items() if value is None]
    if trial.objective is None:
        told = f"crashed: {trial.reason}" if trial.reason else "crashed"
    else:
        told = f"{view.objective} {trial.objective:.5g}"
    return ", ".join([told, *(f"{name} violated" for name in violated)])


def _marks_along(view: View, axis: Axis, output: str, params: Mapping[str, Any]) -> Marks:
    """The trials that say something about one output, along an axis."""
    rows = [i for i, one in enumerate(view.trials) if output == OBJECTIVE or output in one.constraints]
    trials = [view.trials[i] for i in rows]
    values = [one.objective if output == OBJECTIVE else one.constraints[output] for one in trials]
    return Marks(
        x=np.array([axis.place(view.space[axis.name], one.params[axis.name]) for one in trials]),
        y=np.array([math.nan if value is None else value for value in values]),
        failed=np.array([value is None for value in values], dtype=bool),
        near=nearness(view, params, (axis.name,))[rows],
        numbers=tuple(view.number(i) for i in rows),
        texts=tuple(describe(view, one) for one in trials),
    )


def slices(source: Source, *, at: Mapping[str, Any] | None = None, points: int = 101) -> tuple[Line, ...]:
    """Look at a model along every parameter that varies, the others held.

    Args:
        source, at, points: as in `line`.
    """
    seen = modelled(source)
    return tuple(line(seen, name, at=at, points=points) for name in seen.varying)


def held_text(held: Mapping[str, Any], units: Mapping[str, str] | None = None) -> str:
    """The held values in words, empty if nothing is held."""
    parts = [
        f"{name} = {value:.4g}" if isinstance(value, float) else f"{name} = {value}" for name, value in held.items()
    ]
    if units:
        parts = [f"{part} {units[name]}" if name in units else part for part, name in zip(parts, held, strict=True)]
    return ", ".join(parts)
