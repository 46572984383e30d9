"""What all matplotlib pictures share: figures in a theme, axes over parameters, marks of trials."""

import importlib
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crashbo.progress import in_notebook
from crashbo.show.axis import Axis
from crashbo.show.theme import Theme, get_theme

FAINTEST = 0.2  # opacity of a trial far from the slice shown


def style(theme: Theme) -> dict[Any, Any]:
    """Settings of matplotlib for a theme."""
    return {
        "font.size": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.titlesize": 10,
        "grid.alpha": 0.6,
        "grid.linewidth": 0.6,
        "legend.frameon": False,
        "figure.dpi": 150,
        "figure.facecolor": theme.background,
        "axes.facecolor": theme.background,
        "grid.color": theme.grid,
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "axes.edgecolor": theme.muted,
        "xtick.color": theme.muted,
        "ytick.color": theme.muted,
        "xtick.labelcolor": theme.ink,
        "ytick.labelcolor": theme.ink,
    }


class Picture(Figure):
    """A figure that a notebook shows without further ado, and that `show` shows anywhere."""

    def _repr_png_(self) -> bytes:
        target = io.BytesIO()
        self.savefig(target, format="png", bbox_inches="tight")
        return target.getvalue()

    def show(self, warn: bool = True) -> None:
        """Show it: below the cell of a notebook, in a window where matplotlib has one, else in a file that it names."""
        if in_notebook():
            importlib.import_module("IPython.display").display(self)
            return
        from matplotlib import pyplot

        png = self._repr_png_()
        window = pyplot.figure(figsize=tuple(self.get_size_inches()))
        if window.canvas.required_interactive_framework is None:
            pyplot.close(window)
            with tempfile.NamedTemporaryFile(suffix=".png", prefix="crashbo-", delete=False) as target:
                target.write(png)
            print(f"There is no window to show the picture in; it is in {target.name}")
            return
        axes = window.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.imshow(pyplot.imread(io.BytesIO(png)))
        pyplot.show()


@contextmanager
def canvas(name: str, width: float, height: float) -> Iterator[tuple[Figure, Theme]]:
    """Give a figure in a theme; draw inside the `with`."""
    theme = get_theme(name)
    with mpl.rc_context(style(theme)):
        yield Picture(figsize=(width, height), layout="constrained"), theme


def plain(text: str) -> str:
    """Text that matplotlib shows as it is: dollars are no formulas, line breaks are spaces."""
    return " ".join(text.split()).replace("$", r"\$")


def shorten(text: str, length: int = 28) -> str:
    """Text that fits beside its neighbours."""
    clean = " ".join(text.split())
    return plain(clean if len(clean) <= length else clean[: length - 1] + "…")


def dress(axes: Axes, axis: Axis, *, vertical: bool = False, label: bool = True) -> None:
    """Make one side of the axes that of a parameter: scale, limits, ticks, label."""
    side: Literal["x", "y"] = "y" if vertical else "x"
    if axis.scale == "log":
        getattr(axes, f"set_{side}scale")("log")
    whole = axis.edges if axis.discrete else axis.values
    getattr(axes, f"set_{side}lim")(whole[0], whole[-1])
    if axis.ticks is not None:
        texts = [shorten(text, 14) for text in axis.ticks.values()]
        long = not vertical and sum(map(len, texts)) > 24
        getattr(axes, f"set_{side}ticks")(
            list(axis.ticks), texts, **({"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if long else {})
        )
        axes.tick_params(axis=side, which="minor", length=0, labelcolor="none")
    if label:
        getattr(axes, f"set_{side}label")(shorten(axis.label))


def band(axes: Axes, x: Any, low: Any, high: Any, color: str, label: str | None = None) -> None:
    """Fill between two curves."""
    values = [np.asarray(one).tolist() for one in (x, low, high)]
    axes.fill_between(*values, color=color, alpha=0.22, lw=0, label=label)


def scatter(axes: Axes, x: Any, y: Any, near: Any, *, label: str, **looks: Any) -> None:
    """Draw marks, fainter the farther they are from the slice; nothing if there are none."""
    if len(x):
        axes.scatter(x, y, alpha=np.clip(near, FAINTEST, 1.0), clip_on=False, **looks).set_gid(label)
        axes.scatter([], [], label=label, **looks)  # what the legend shows is not faint


def legend_on_top(figure: Figure, *sources: Axes, columns: int = 3) -> None:
    """One legend above everything, each entry once."""
    entries: dict[str, Any] = {}
    for axes in sources:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(text, handle)
    handles = list(entries.values())
    figure.legend(handles, list(entries), loc="outside upper center", ncols=columns, fontsize=9)


def whole_numbers(axes: Axes) -> None:
    """Tick whole numbers of trials only."""
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
