"""The result of `minimize` for notebooks: as a table of pandas, and as HTML with a picture."""

import base64
from html import escape
from typing import TYPE_CHECKING, Any

from crashbo.errors import CrashBOError, MissingExtraError
from crashbo.minimization import Result
from crashbo.model.words import describe_limit
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.outcome import Trial

if TYPE_CHECKING:
    import pandas

STATUS, REASON = "status", "reason"


def to_dataframe(result: Result) -> "pandas.DataFrame":
    """All trials as a data frame, a row each; its index is the trial's number.

    Columns: the parameters, `objective` (NaN after a crash), the constraints (NaN where violated or not seen), `status`
    ("succeeded", "violated" or "crashed") and `reason`. A parameter of such a name is called `param_...`.
    """
    try:
        import pandas
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "`to_dataframe` needs pandas, which is not installed; run: pip install pandas"
        ) from error
    optimizer = result.optimizer
    constraints = [one.name for one in optimizer.constraints]
    taken = (OBJECTIVE, STATUS, REASON)
    names = {name: f"param_{name}" if name in taken else name for name in optimizer.space}
    rows: list[dict[str, Any]] = [
        {
            **{names[name]: value for name, value in trial.params.items()},
            OBJECTIVE: trial.objective,
            **{name: trial.constraints.get(name) for name in constraints},
            STATUS: status_of(result, trial),
            REASON: trial.reason,
        }
        for trial in result.trials
    ]
    index = pandas.Index([trial.number for trial in result.trials], name="trial", dtype=int)
    frame = pandas.DataFrame(rows, index=index, columns=[*names.values(), OBJECTIVE, *constraints, STATUS, REASON])
    return frame.astype(dict.fromkeys([OBJECTIVE, *constraints], float))


def status_of(result: Result, trial: Trial) -> str:
    """How a trial ended, in the words of all tables."""
    failed = trial.failed_under(result.optimizer.constraints)
    return "crashed" if trial.crashed else "violated" if failed else "succeeded"


def to_html(result: Result) -> str:
    """The result in a few lines, with a picture of the model."""
    rows = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{escape(words)}</td></tr>'
        for name, words in _lines(result)
    )
    return f"<div><table>{rows}</table>{_picture(result)}</div>"


def _lines(result: Result) -> list[tuple[str, str]]:
    seen, optimizer = result.best_trial, result.optimizer
    stopped = f"; stopped: {result.stopped}" if result.stopped else ""
    violated = sum(status_of(result, one) == "violated" for one in result.trials)
    counts = [f"{len(result.trials)}", f"{result.n_crashes} crashed", f"{violated} violated" * bool(violated)]
    lines = [
        ("best guess", "none yet" if result.best is None else str(result.best)),
        ("best trial", "none succeeded" if seen is None else f"{seen.number}: {seen.objective:.6g}, {_params(seen)}"),
        ("trials", ", ".join(filter(None, counts)) + stopped),
    ]
    limits = optimizer.limits if any(optimizer.history.failed) else {}
    lines += [(f"limit of {name}", describe_limit(limit)) for name, limit in limits.items()]
    if result.n_crashes:
        lines.append(("crashes", optimizer.crash_relation))
    return lines


def _params(trial: Trial) -> str:
    return ", ".join(
        f"{name} = {f'{one:.5g}' if isinstance(one, float) else one}" for name, one in trial.params.items()
    )


def _picture(result: Result) -> str:
    """The model over one or two parameters, else how the run went; nothing where there is nothing to draw."""
    from crashbo import plots

    varying = len([one for one in result.optimizer.space.values() if one.size > 1])
    try:
        if varying == 1:
            figure: Any = plots.plot_model(result)
        elif varying == 2:
            figure = plots.plot_maps(result, quantities=("mean", "success"))
        else:
            figure = plots.plot_convergence(result)
    except CrashBOError:
        return ""
    figure.set_dpi(80)
    data = base64.b64encode(figure._repr_png_()).decode()
    return f'<img alt="the model" src="data:image/png;base64,{data}">'
