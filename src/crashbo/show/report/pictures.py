"""The pictures of a report, as plotly figures in JSON, each with a caption."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations

from crashbo.errors import CrashBOError
from crashbo.show import data, history, planes
from crashbo.show.chart import Chart
from crashbo.show.data import held_text
from crashbo.show.draw_plotly import draw
from crashbo.show.importance import Importance
from crashbo.show.model_charts import layer_chart, line_chart, slice_chart
from crashbo.show.run_charts import convergence_chart, importance_chart, parallel_chart, thresholds_chart
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
    yield _guarded(
        "How it went", _HISTORY, "values and best so far", lambda: convergence_chart(history.convergence(view))
    )
    if not view.has_model:
        return
    if len(view.varying) == 1:
        yield _guarded("The model", _MODEL, "the model", lambda: line_chart(data.line(view)))
    else:
        yield _guarded("The model over two parameters", _MAPS, "", lambda: _maps(view, importance))
        yield _guarded("The model along each parameter", _SLICES, "", lambda: [_slices(view, importance)])
    paths = history.thresholds(view, fits=_LOOKS_BACK)
    if paths:
        yield _guarded("Learned limits", _LIMITS, "limits over trials", lambda: thresholds_chart(paths))
    if len(view.varying) > 1:
        if importance is not None:
            yield _guarded("What matters", _MATTERS, "importance", lambda: importance_chart(importance))
        yield _guarded("All trials", _PARALLEL, "trials as lines", lambda: parallel_chart(history.parallel(view)))


_HISTORY = "Every trial in turn. Crashed trials have no cost and are marked above the picture."
_MODEL = "What the model believes, with the limit it has learned and what it would try next."
_MAPS = (
    "White dots succeeded, orange crosses crashed, or broke this limit, the triangle is the best guess, the diamond "
    "the next point. Inside the dashed line success is likely enough. Trials far from the slice shown are faint."
)
_SLICES = "The other parameters are held at the best guess. Trials far from the slice are faint."
_LIMITS = "The limit after so many trials, with its standard deviation. It can only be learned from failures."
_MATTERS = "How much of the variation each parameter explains, by the fitted model."
_PARALLEL = "Every line is a trial. Click a group in the legend to hide it."


def _guarded(title: str, words: str, label: str, describe: Callable[[], Chart | list[Choice]]) -> Section:
    try:
        found = describe()
        choices = [Choice("", "", (_picture(found, label),))] if isinstance(found, Chart) else found
        return Section(title, words, tuple(choices))
    except CrashBOError as error:
        return Section(title, words, (), f"This could not be drawn: {error}")


def _picture(chart: Chart, label: str) -> Picture:
    figure = draw(chart)
    return Picture(inert(figure.to_json(engine="json")), int(figure.layout.height), label)  # compact as it is


def inert(text: str) -> str:
    """JSON that means the same, with nothing in it that HTML could read as a tag."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _maps(view: View, importance: Importance | None) -> list[Choice]:
    found = []
    for x, y in combinations(_paired(view, importance), 2):
        numbers = planes.maps(view, x, y, points=_RESOLUTION)
        held = held_text(numbers.held, view.units)
        drawn = [_picture(layer_chart(numbers, layer), layer.title) for layer in numbers.layers]
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
    return Choice("", "", tuple(_picture(slice_chart(line), line.axis.label) for line in lines))
