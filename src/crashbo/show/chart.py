"""A picture before it is drawn: panels, their sides and marks, as plain data.

Builders (`model_charts`, `run_charts`, `gpcr`) describe each picture once; `draw_matplotlib` and `draw_plotly` draw any
of them. Colours are names of a `Theme` or colours themselves. What has no name is not in the legend.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np

from crashbo.problem.arrays import Array
from crashbo.show.axis import Axis

Dash: TypeAlias = Literal["solid", "dash", "dot", "dashdot", "longdash"]
Symbol: TypeAlias = Literal["circle", "square", "cross", "x", "up", "down", "diamond", "star"]


@dataclass(frozen=True)
class Look:
    """How points look: "cross" is thin and without a rim; `size` is the width in points."""

    symbol: Symbol
    colour: str
    size: float = 6.0
    rim: str | None = None
    hollow: bool = False


@dataclass(frozen=True)
class Stroke:
    """A line through points, interrupted at NaN; `symbol` marks its points; `texts` are shown on hover."""

    x: Any
    y: Any
    colour: str
    name: str = ""
    dash: Dash = "solid"
    width: float = 2.0
    step: bool = False
    symbol: bool = False
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class Ribbon:
    """The area between two curves, interrupted at NaN."""

    x: Any
    low: Any
    high: Any
    colour: str
    name: str = ""


@dataclass(frozen=True)
class Points:
    """Single points, with bars of `error` up and down; `opacity` is one per point."""

    x: Any
    y: Any
    look: Look
    name: str = ""
    opacity: Any = None
    error: Any = None
    texts: Sequence[str] = ()


@dataclass(frozen=True)
class Surface:
    """Coloured cells between `x` and `y` edges; `bar` says whether they have a colour bar of their own."""

    x: Array
    y: Array
    values: Array
    colours: str
    name: str
    limits: tuple[float, float] | None = None
    bar: bool = True


@dataclass(frozen=True)
class Border:
    """Where values on a grid pass a level: a dashed line, or shade over all that is above."""

    x: Array
    y: Array
    values: Any
    level: float
    shade: bool = False


@dataclass(frozen=True)
class Bars:
    """Bars to the right."""

    y: Any
    lengths: Any
    colour: str
    name: str
    texts: Sequence[str]
    hatched: bool = False


@dataclass(frozen=True)
class Words:
    """Short texts, each to the right of its place."""

    x: Any
    y: Any
    texts: Sequence[str]


Mark: TypeAlias = Stroke | Ribbon | Points | Surface | Border | Bars | Words


@dataclass(frozen=True)
class Side:
    """One side of a panel.

    Attributes:
        label: of the side.
        log: a logarithmic scale.
        limits: None: where the marks end.
        ticks: text by place; None lets the drawing choose.
        whole: ticks at whole numbers only.
        bare: without texts of ticks and without a label.
        grid: whether lines cross the panel at the ticks.
        group: sides of one group are zoomed together on a screen.
    """

    label: str = ""
    log: bool = False
    limits: tuple[float, float] | None = None
    ticks: Mapping[float, str] | None = None
    whole: bool = False
    bare: bool = False
    grid: bool = True
    group: str = ""


@dataclass(frozen=True)
class Panel:
    """Marks over two sides; `square` where both are parameters; without a `frame` there are no spines."""

    marks: tuple[Mark, ...]
    x: Side
    y: Side
    title: str = ""
    square: bool = False
    frame: bool = True


@dataclass(frozen=True)
class Chart:
    """A whole picture.

    Attributes:
        rows: of panels; None where there is none.
        size: width and height in print, inches.
        heights: of the rows, relative.
        pixels: height on a screen; 0: as in print.
        title: above everything.
        note: small, below everything.
        columns: of the legend; 0: no legend.
        bar: a surface whose colour bar holds for all panels.
    """

    rows: tuple[tuple[Panel | None, ...], ...]
    size: tuple[float, float]
    heights: tuple[float, ...] = ()
    pixels: int = 0
    title: str = ""
    note: str = ""
    columns: int = 3
    bar: Surface | None = None


def column(panels: Sequence[Panel], height: float, heights: Sequence[float] = (), **looks: Any) -> Chart:
    """Panels below each other, of the usual width; the last one has the labels of them all."""
    upper = [replace(one, x=replace(one.x, bare=True)) for one in panels[:-1]]
    return Chart(tuple((one,) for one in (*upper, panels[-1])), (7.2, height), tuple(heights), **looks)


def axis_side(axis: Axis, *, label: bool = True, bare: bool = False, group: str = "") -> Side:
    """The side of a parameter."""
    return Side(axis.label if label else "", axis.scale == "log", axis.ends, axis.ticks, bare=bare, group=group)


def span(*values: Any, margin: float = 0.05) -> tuple[float, float] | None:
    """From the lowest to the highest of all values, with some room; None if there are none."""
    joined = np.concatenate([np.ravel(np.asarray(one, dtype=np.float64)) for one in values])
    found = joined[np.isfinite(joined)]
    if not len(found):
        return None
    room = margin * (float(np.ptp(found)) or 1.0)
    return float(found.min()) - room, float(found.max()) + room
