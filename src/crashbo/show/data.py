"""The numbers behind the pictures of a model: plain arrays, computed once, no drawing."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from crashbo.errors import InputError
from crashbo.model.surrogate import Limit
from crashbo.problem.arrays import Array
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.outcome import Trial
from crashbo.show.axis import Axis, line_points, make_axis, nearness
from crashbo.show.views import Source, View, modelled

if TYPE_CHECKING:
    from crashbo.research.problems import Problem


@dataclass(frozen=True)
class Marks:
    """The trials in a picture, `n` each.

    Attributes:
        x, y: where they lie; y is NaN where there is no value to put them at.
        failed: crashed or a limit broken, as far as this picture is concerned.
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
        limit: the learned or known limit; None if there is none.
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
    limit: Limit | None
    success: Array
    marks: Marks
    label_level: float
    truth: Array | None = None
    true_threshold: float | None = None

    def failures(self) -> list[tuple[np.ndarray, str]]:
        """Which trials failed, in groups that a legend names: without a value, and with one beyond a known limit."""
        unknown = np.isnan(self.marks.y)
        words = "crashed: value unknown" if self.output == OBJECTIVE else "violated: value unknown"
        groups = [(self.marks.failed & unknown, words), (self.marks.failed & ~unknown, "limit broken")]
        return [(rows, name) for rows, name in groups if rows.any()]


@dataclass(frozen=True)
class Line:
    """A model along one parameter, the others held.

    Attributes:
        axis: the parameter.
        curves: the objective first, then the constraints.
        success: probability that nothing fails, `m`.
        acquisition: what the next point is chosen by, from 0 to 1, `m`.
        unconstrained: the same without regard to failures; None where they make no difference.
        mode: what that is, for people.
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


def line(
    source: Source,
    parameter: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    points: int = 401,
    truth: "Problem | None" = None,
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
    curves = [_curve(seen, axis, output, grid, params, truth) for output in models.outputs]
    held = held_params(seen, params, (name,))
    at_best = held == held_params(seen, seen.best.params, (name,))
    return Line(
        axis=axis,
        curves=tuple(curves),
        success=models.success(grid),
        acquisition=seen.acquisition(grid, params, (name,)),
        unconstrained=seen.decision.scaled_gain(grid),
        mode=seen.decision.name,
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
    grid: Array,
    params: Mapping[str, Any],
    truth: "Problem | None",
) -> Curve:
    mean, std = view.models.moments(grid, output)
    limit = view.limits.get(output)
    sign = view.sign if output == OBJECTIVE else 1.0
    marks = trial_marks(view, axis, None, output, params)
    known = np.isfinite(marks.y)
    seen = marks.y[known] if known.any() else sign * mean
    beyond = sign * ((sign * seen).max() + 0.08 * (np.ptp(seen) or 1.0))
    return Curve(
        output=output,
        label=output_label(view, output),
        mean=sign * mean,
        std=std,
        limit=limit,
        success=view.models.success(grid, output),
        marks=marks,
        label_level=float(beyond) if limit is None else limit.value,
        truth=None if truth is None else true_values(view, axis, output, params, truth),
        true_threshold=None if truth is None else truth.thresholds.get(output),
    )


def limit_name(curve: Curve) -> str:
    """What a limit is called in a legend."""
    assert curve.limit is not None
    return "learned limit" if curve.limit.deviation else "limit"


def output_label(view: View, output: str) -> str:
    if output == OBJECTIVE and not view.models.any_cost:
        return f"{view.objective} (none seen yet)"
    return view.label(output)


def true_values(view: View, axis: Axis, output: str, params: Mapping[str, Any], truth: "Problem") -> Array:
    places = [{**params, axis.name: value} for value in axis.values.tolist()]
    if output == OBJECTIVE:
        return np.array([truth.value(place) for place in places])
    found = [truth.measure(**view.space.validate(place))[output] for place in places]
    return np.array([math.nan if value is None else value for value in found])


def describe(view: View, trial: Trial) -> str:
    """What came of a trial, in a few words."""
    broken = [name for name in trial.constraints if view.failed_in(trial, name)]
    if trial.objective is None:
        told = f"crashed: {trial.reason}" if trial.reason else "crashed"
    else:
        told = f"{view.objective} {trial.objective:.5g}"
    return ", ".join([told, *(_broken(name, trial.constraints[name]) for name in broken)])


def _broken(name: str, value: float | None) -> str:
    return f"{name} violated" if value is None else f"{name} {value:.5g}, over its limit"


def trial_marks(view: View, x: Axis, y: Axis | None, output: str | None, params: Mapping[str, Any]) -> Marks:
    """The trials that say something about an output and whether they failed in it; of None: all, in anything.

    Args:
        view: the run.
        x: the axis they lie along.
        y: the second axis; None: they lie at the height of their values.
        output: "objective", a constraint, or None.
        params: what the picture holds the other parameters at.
    """
    rows = [i for i, one in enumerate(view.trials) if output in (None, OBJECTIVE) or output in one.constraints]
    trials = [view.trials[i] for i in rows]

    def places(axis: Axis) -> Array:
        return np.array([axis.place(view.space[axis.name], one.params[axis.name]) for one in trials])

    values = [one.objective if output in (None, OBJECTIVE) else one.constraints[output] for one in trials]
    failed = [view.failed(one) if output is None else view.failed_in(one, output) for one in trials]
    return Marks(
        x=places(x),
        y=np.array([math.nan if value is None else value for value in values]) if y is None else places(y),
        failed=np.array(failed, dtype=bool),
        near=nearness(view, params, (x.name,) if y is None else (x.name, y.name))[rows],
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
