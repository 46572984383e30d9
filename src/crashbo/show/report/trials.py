"""The table of trials: sortable and filterable, and readable without any script."""

from collections.abc import Sequence
from typing import Any

from crashbo.problem.history import OBJECTIVE
from crashbo.problem.outcome import Trial
from crashbo.show.report.page import text
from crashbo.show.report.summary import outcome, shown
from crashbo.show.views import View


def trials_section(view: View) -> str:
    """All trials as a table with a filter."""
    if not view.trials:
        return ""
    constraints = [one.name for one in view.optimizer.constraints]
    titles = ["trial", "outcome", view.label(OBJECTIVE), *map(view.label, constraints)]
    titles += [*map(view.label, view.space.names), "reason"]
    head = "".join(_heading(title) for title in titles)
    rows = "".join(_row(view, index, one, constraints) for index, one in enumerate(view.trials))
    return (
        "<section><h2>Trials</h2><div class='filters'>"
        "<label>Find <input type='search' id='find' placeholder='text in any column'></label>"
        "<label>Outcome <select id='outcome'><option value=''>all</option><option>succeeded</option>"
        "<option>crashed</option><option>violated</option><option>pruned</option></select></label>"
        f"<span id='matches' role='status' class='muted'>{len(view.trials)} of {len(view.trials)} trials</span></div>"
        f"<div class='scroll tall'><table id='trials'><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        "</section>"
    )


def _heading(title: str) -> str:
    return f"<th scope='col' aria-sort='none'><button type='button'>{text(title)}</button></th>"


def _row(view: View, index: int, trial: Trial, constraints: Sequence[str]) -> str:
    word = outcome(view, index)
    values: list[Any] = [trial.objective, *(trial.constraints.get(name, "") for name in constraints)]
    cells = [
        _cell(view.number(index)),
        f"<td data-value='{word}'><span class='badge {word}'>{word}</span></td>",
        _cell("" if values[0] is None else values[0]),
        *(_cell("violated" if value is None else value) for value in values[1:]),
        *(_cell(trial.params[name]) for name in view.space.names),
        _cell(trial.reason),
    ]
    return f"<tr data-outcome='{word}'>{''.join(cells)}</tr>"


def _cell(value: Any) -> str:
    numeric = isinstance(value, (int, float)) and not isinstance(value, bool)
    kind = " class='number'" if numeric else ""
    return f"<td{kind} data-value='{text(str(value))}'>{text(shown(value))}</td>"
