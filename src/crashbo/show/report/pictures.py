"""The pictures of a report, as plotly figures in JSON, each with a caption."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from crashbo.errors import CrashBOError
from crashbo.show import data, history, planes
from crashbo.show import interactive as screen
from crashbo.show.data import held_text
from crashbo.show.importance import Importance
from crashbo.show.run_interactive import draw_convergence, draw_importance, draw_parallel, draw_thresholds
from crashbo.show.views import View

_RESOLUTION = 41  # of a map, along each axis
_PAIRS_OF_ALL_UP_TO = 5  # parameters; of more, the most important four are paired
_MOST_SLICES = 12
_LOOKS_BACK = 15  # fits for the history of the limits


@dataclass(frozen=True)
class Picture:
    """One plot.

    Attributes:
        figure: plotly's JSON.
        height: in pixels.
        label: what it shows, for those who do not see it.
    """

    figure: str
    height: int
    label: str


@dataclass(frozen=True)
class Choice:
    """Pictures that belong together, one of several such groups."""

    name: str
    note: str
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Section:
    """A heading, some words and its pictures; a reader picks one of the choices if there are several."""

    title: str
    words: str
    choices: tuple[Choice, ...]
    trouble: str = ""


def sections(view: View, importance: Importance | None) -> Iterator[Section]:
    """Draw everything there is to draw; what cannot be drawn says why, the rest stays."""
    if not view.trials:
        return
    yield _guarded("How it went", _HISTORY, lambda: [_only(_picture(_convergence(view), "values and best so far"))])
    if not view.has_model:
        return
    if len(view.varying) == 1:
        yield _guarded("The model", _MODEL, lambda: [_only(_picture(screen.plot_model(view), "the model"))])
    else:
        yield _guarded("The model over two parameters", _MAPS, lambda: _maps(view, importance))
        yield _guarded("The model along each parameter", _SLICES, lambda: [_slices(view, importance)])
    paths = history.thresholds(view, fits=_LOOKS_BACK)
    if paths:
        yield _guarded(
            "Learned limits", _LIMITS, lambda: [_only(_picture(draw_thresholds(paths), "limits over trials"))]
        )
    if len(view.varying) > 1:
        if importance is not None:
            yield _guarded(
                "What matters", _MATTERS, lambda: [_only(_picture(draw_importance(importance), "importance"))]
            )
        yield _guarded("All trials", _PARALLEL, lambda: [_only(_picture(_parallel(view), "trials as lines"))])


_HISTORY = "Every trial in turn. Crashed trials have no cost and are marked above the picture."
_MODEL = "What the model believes, with the limit it has learned and what it would try next."
_MAPS = (
    "White dots succeeded, orange crosses failed in what the map shows, the triangle is the best guess, the diamond "
    "the next point. Inside the dashed line success is likely enough. Trials far from the slice shown are faint."
)
_SLICES = "The other parameters are held at the best guess. Trials far from the slice are faint."
_LIMITS = "The limit after so many trials, with its standard deviation. It can only be learned from failures."
_MATTERS = "How much of the variation each parameter explains, by the fitted model."
_PARALLEL = "Every line is a trial. Click a group in the legend to hide it."


def _guarded(title: str, words: str, draw: Callable[[], list[Choice]]) -> Section:
    try:
        return Section(title, words, tuple(draw()))
    except CrashBOError as error:
        return Section(title, words, (), f"This could not be drawn: {error}")


def _only(*pictures: Picture) -> Choice:
    return Choice("", "", pictures)


def _picture(figure: Any, label: str) -> Picture:
    return Picture(_json(figure), int(figure.layout.height), label)


def _json(figure: Any) -> str:
    """JSON without a character that could end the script element it lies in."""
    return inert(figure.to_json(engine="json"))  # compact as it is


def inert(text: str) -> str:
    """JSON that means the same, with nothing in it that HTML could read as a tag."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _convergence(view: View) -> Any:
    return draw_convergence(history.convergence(view))


def _parallel(view: View) -> Any:
    return draw_parallel(history.parallel(view))


def _maps(view: View, importance: Importance | None) -> list[Choice]:
    found = []
    for x, y in combinations(_paired(view, importance), 2):
        numbers = planes.maps(view, x, y, points=_RESOLUTION)
        held = held_text(numbers.held, view.units)
        drawn = [_picture(screen.draw_layer(numbers, layer), layer.title) for layer in numbers.layers]
        found.append(Choice(f"{x} and {y}", f"Held: {held}." if held else "", tuple(drawn)))
    return found


def _paired(view: View, importance: Importance | None) -> list[str]:
    """The parameters whose pairs are shown, in the order of the space."""
    names = list(view.varying)
    if len(names) <= _PAIRS_OF_ALL_UP_TO or importance is None:
        return names[:_PAIRS_OF_ALL_UP_TO]
    weight = dict(zip(names, importance.cost + importance.success, strict=True))
    chosen = sorted(names, key=lambda name: -weight[name])[:4]
    return [name for name in names if name in chosen]


def _slices(view: View, importance: Importance | None) -> Choice:
    names = list(view.varying)
    if len(names) > _MOST_SLICES and importance is not None:
        weight = dict(zip(names, importance.cost + importance.success, strict=True))
        names = sorted(names, key=lambda name: -weight[name])[:_MOST_SLICES]
    lines = [data.line(view, name, points=101) for name in names]
    return Choice("", "", tuple(_picture(screen.draw_slice(line), line.axis.label) for line in lines))
