"""What all matplotlib pictures share: figures in a theme, plain texts, one legend."""

import importlib
import io
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crashbo.progress import in_notebook
from crashbo.show.theme import Theme, get_theme


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


def legend_on_top(figure: Figure, *sources: Axes, columns: int = 3) -> None:
    """One legend above everything, each entry once."""
    entries: dict[str, Any] = {}
    for axes in sources:
        for handle, text in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(text, handle)
    handles = list(entries.values())
    figure.legend(handles, list(entries), loc="outside upper center", ncols=columns, fontsize=9)
