"""What all plotly pictures share: safe text, axes over parameters, themes."""

import html
from functools import cache
from typing import Any

import numpy as np
import plotly.graph_objects as go

from crashbo.show.axis import Axis
from crashbo.show.theme import COLOUR_MAPS, Theme

SCALES = {quantity: name if name == "RdYlBu" else name.capitalize() for quantity, name in COLOUR_MAPS.items()}


def safe(text: str) -> str:
    """Text that plotly shows as it is: it reads a little HTML in labels."""
    return html.escape(" ".join(text.split()), quote=False)


def titled(label: str, held: str) -> str:
    """A label, with the values held below it."""
    return f"{safe(label)}<br><sup>held: {safe(held)}</sup>" if held else safe(label)


def see_through(colour: str, share: float = 0.22) -> str:
    """A hex colour with some of it showing through."""
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{share})"


def small(values: Any) -> np.ndarray:
    """Values as single precision: enough for a screen, half the size in a file."""
    return np.asarray(values, dtype=np.float32)


def axis_layout(axis: Axis, *, title: bool = True) -> dict[str, Any]:
    """Scale, limits, ticks and title of a parameter's axis."""
    whole = axis.edges if axis.discrete else axis.values
    ends = np.log10(whole[[0, -1]]) if axis.scale == "log" else whole[[0, -1]]
    found: dict[str, Any] = {"type": "log" if axis.scale == "log" else "linear", "range": ends.tolist()}
    if axis.ticks is not None:
        texts = [safe(text if len(text) <= 18 else text[:17] + "…") for text in axis.ticks.values()]
        found |= {"tickvals": list(axis.ticks), "ticktext": texts}
    elif axis.scale == "log" and ends[1] - ends[0] >= 1:
        found |= {"dtick": 1}  # powers of ten only: the digits between them would touch
    return found | ({"title_text": safe(axis.label)} if title else {})


@cache
def template(theme: Theme) -> go.layout.Template:
    """Ground, text and grid of a theme."""
    axis = {
        "gridcolor": theme.grid,
        "linecolor": theme.muted,
        "zeroline": False,
        "title": {"standoff": 8},
        "automargin": True,
    }
    return go.layout.Template(
        layout={
            "paper_bgcolor": theme.background,
            "plot_bgcolor": theme.background,
            "font": {"color": theme.ink, "family": "system-ui, sans-serif", "size": 13},
            "hoverlabel": {"bgcolor": theme.background, "font": {"color": theme.ink}},
            "xaxis": axis,
            "yaxis": axis,
        }
    )


def dressed(figure: go.Figure, theme: Theme, *, height: int) -> go.Figure:
    """Give a figure its theme, its height and a legend above it."""
    figure.update_layout(
        template=template(theme),
        height=height,
        margin={"l": 60, "r": 20, "t": 50, "b": 55},
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "font": {"size": 12}},
    )
    return figure
