"""Pictures of the pole: what a roll-out looked like, and a moving one."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.animation import FuncAnimation, PillowWriter
from matplotlib.figure import Figure

from crashbo.research.problems.pole.rollout import MONITOR, Outcome
from crashbo.show.canvas import style
from crashbo.show.chart import Look, Mark, Panel, Points, Side, Stroke, column
from crashbo.show.draw_matplotlib import draw
from crashbo.show.theme import ThemeName, get_theme

_LENGTH = 1.067  # m, of the pole
_ROWS = (
    ("angle", "angle [mrad]", 1e3, "angle"),
    ("position", "hand [cm]", 1e2, "reach"),
    ("command", "command [m/s²]", 1.0, None),
)


def plot_rollouts(
    rollouts: Mapping[str, Outcome],
    *,
    theme: ThemeName = "light",
    seconds: float = 20.0,
    limits: Mapping[str, float] | None = None,
) -> Figure:
    """Draw roll-outs over time: the pole's angle, the hand's position and what was commanded.

    Args:
        rollouts: by name, such as before and after tuning; at most three.
        theme: "light" or "dark".
        seconds: to show at most.
        limits: on "angle" and "reach"; those of the robot if not given.
    """
    limits = limits or MONITOR.limits
    palette = ("orange", "blue") if len(rollouts) < 3 else ("orange", "green", "blue")
    panels = []
    for attribute, label, factor, limit in _ROWS:
        marks: list[Mark] = []
        for (name, outcome), colour in zip(rollouts.items(), palette, strict=False):
            path, values = outcome.trajectory, factor * getattr(outcome.trajectory, attribute)
            shown = path.time <= seconds
            marks.append(Stroke(path.time[shown], values[shown], colour, name, width=1.1))
            if outcome.cost is None and outcome.seconds <= seconds:
                row = min(int(np.searchsorted(path.time, outcome.seconds)), len(path.time) - 1)
                marks.append(Points(path.time[[row]], values[[row]], Look("x", "vermilion", 8)))
        for height in () if limit is None else (-factor * limits[limit], factor * limits[limit]):
            marks.append(Stroke([0.0, seconds], [height] * 2, "vermilion", "limit of the robot", "dash", 1.0))
        panels.append(Panel(tuple(marks), Side("time [s]"), Side(label)))
    return draw(column(panels, 5.2, columns=3 if max(map(len, rollouts)) < 24 else 1), theme)


def animate_rollouts(
    rollouts: Mapping[str, Outcome], path: Path, *, seconds: float = 14.0, frames: int = 12, magnify: float = 8.0
) -> Path:
    """Write a GIF of poles balancing side by side; a pole turns red when its roll-out has failed.

    Args:
        rollouts: by name.
        path: of the GIF.
        seconds: to show.
        frames: per second.
        magnify: angles and positions are shown so many times larger, or one would see nothing.
    """
    theme = get_theme("light")
    with mpl.rc_context(style(theme)):
        figure = Figure(figsize=(3.6 * len(rollouts), 2.5), dpi=90, layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(rollouts)))
        poles = []
        for axes, (name, outcome) in zip(panels, rollouts.items(), strict=True):
            axes.set(xlim=(-1.5, 1.5), ylim=(-0.15, 1.45), title=name, xticks=[], yticks=[], aspect="equal")
            axes.grid(False)
            axes.axhline(0.0, color=theme.muted, lw=1)
            for side in (-1, 1):
                axes.axvline(side * magnify * MONITOR.limits["reach"], 0.0, 0.2, color=theme.vermilion, lw=1, ls="--")
            ending = f"failed after {outcome.seconds:.1f} s" if outcome.cost is None else f"cost {outcome.cost:.2f}"
            axes.text(0.5, 0.93, ending, transform=axes.transAxes, ha="center", color=theme.muted)
            (pole,) = axes.plot([], [], color=theme.blue, lw=4, solid_capstyle="round")
            (hand,) = axes.plot([], [], "s", color=theme.ink, ms=12)
            poles.append((pole, hand, outcome))

        def draw(frame: int) -> list[object]:
            for pole, hand, outcome in poles:
                trajectory = outcome.trajectory
                row = min(int(np.searchsorted(trajectory.time, frame / frames)), len(trajectory.time) - 1)
                x, angle = magnify * trajectory.position[row], magnify * trajectory.angle[row]
                pole.set_data([x, x + _LENGTH * np.sin(angle)], [0.0, _LENGTH * np.cos(angle)])
                hand.set_data([x], [0.0])
                pole.set_color(theme.vermilion if outcome.failed and frame / frames >= outcome.seconds else theme.blue)
            return []

        figure.draw_without_rendering()
        figure.set_layout_engine("none")  # it is the same in every frame, and takes half of the time
        moving = FuncAnimation(figure, draw, frames=int(seconds * frames))  # type: ignore[arg-type]
        path.parent.mkdir(parents=True, exist_ok=True)
        moving.save(path, writer=PillowWriter(fps=frames))
    return path
