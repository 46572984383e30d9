"""Run a whole optimization in one call."""

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from crashbo.errors import InputError
from crashbo.optimizer import Best, Optimizer
from crashbo.options import Options
from crashbo.outcome import CRASHED, Crash, Trial, as_scalar
from crashbo.space import Space

Callback = Callable[[Optimizer, Trial], bool | None]


@dataclass(frozen=True)
class Result:
    """A finished optimization.

    Attributes:
        best: the best guess; None without any trial.
        trials: all of them, in order.
        n_crashes: trials without a cost.
        thresholds: the most probable limits; `optimizer.limits` has their standard deviations too.
        interrupted: whether it was stopped before all trials.
        optimizer: to go on with.
    """

    best: Best | None
    trials: tuple[Trial, ...]
    n_crashes: int
    thresholds: dict[str, float]
    interrupted: bool
    optimizer: Optimizer


def minimize(
    rollout: Callable[[dict[str, Any]], Any],
    space: Space | Mapping[str, Any] | None = None,
    *,
    n_trials: int,
    optimizer: Optimizer | None = None,
    state: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    **settings: Any,
) -> Result:
    """Minimise an experiment that can crash (or maximise, with `direction="maximize"`).

    Ctrl-C stops it and returns what is finished. With `state`, every trial is on disk before the
    next begins, and the same call goes on where it stopped.

    Args:
        rollout: takes params; returns a cost, or a mapping {"objective": .., constraint: ..}, or
            `CRASHED`, or raises `Crash`. A cost of NaN or infinity counts as a crash.
        space: the parameters; not needed with `optimizer`.
        n_trials: in total, those already told included.
        optimizer: to use instead of a new one.
        state: file to keep the state in, and to resume from if it exists.
        callbacks: called after every trial with optimizer and trial; True stops.
        progress: show a bar; None: if a person watches.
        settings: of the `Optimizer`: constraints, direction, strategy, seed, options, ... The options learn `n_trials`.
    """
    if isinstance(n_trials, bool) or not isinstance(n_trials, int) or n_trials < 1:
        raise InputError(f"`n_trials` must be an integer >= 1; got {n_trials!r}.")
    settings = _with_horizon(settings, n_trials)
    optimizer = optimizer or _resume(state, space, settings) or _new(space, settings)
    interrupted = False
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        disable=not (console.is_terminal if progress is None else progress),
    )
    with bar:
        task = bar.add_task("trials", total=n_trials, completed=len(optimizer.trials))
        try:
            for suggestion in optimizer.pending:  # left over from an interrupted run
                optimizer.forget(suggestion)
            while len(optimizer.trials) < n_trials:
                trial = _one(rollout, optimizer)
                if state is not None:
                    optimizer.save(state)
                bar.update(task, completed=len(optimizer.trials), description=_caption(optimizer))
                if any([callback(optimizer, trial) is True for callback in callbacks]):  # noqa: C419 (call all)
                    interrupted = len(optimizer.trials) < n_trials
                    break
        except KeyboardInterrupt:
            interrupted = True
    trials = optimizer.trials
    return Result(
        best=optimizer.best() if trials else None,
        trials=trials,
        n_crashes=sum(trial.crashed for trial in trials),
        thresholds=optimizer.thresholds,
        interrupted=interrupted,
        optimizer=optimizer,
    )


def _resume(
    state: str | Path | None, space: Space | Mapping[str, Any] | None, settings: dict[str, Any]
) -> Optimizer | None:
    """Load the state if there is one, with today's number of trials; refuse it if it belongs to another problem."""
    if state is None or not Path(state).exists():
        return None
    strategy = settings.get("strategy", "default")
    own = None if isinstance(strategy, str) else strategy
    saved = Optimizer.load(state, strategy=own).to_json()
    saved["options"]["n_trials"] = settings["options"].n_trials
    loaded = Optimizer.from_json(saved, strategy=own)
    if space is not None:
        wanted, found = _new(space, settings).to_json(), loaded.to_json()
        for name in ("space", "constraints", "direction", "strategy", "acquisition", "seed", "options"):
            if json.dumps(_problem(wanted[name])) != json.dumps(_problem(found[name])):
                raise InputError(
                    f"`state` must belong to the same problem; {state} has another {name}. Use another file."
                )
    return loaded


def _with_horizon(settings: Mapping[str, Any], n_trials: int) -> dict[str, Any]:
    """The settings, with the number of trials among the options unless these say another."""
    options = settings.get("options") or Options()
    if not isinstance(options, Options):
        raise InputError(f"`options` must be crashbo.Options or None; got {options!r}.")
    return {**settings, "options": replace(options, n_trials=options.n_trials or n_trials)}


def _problem(value: Any) -> Any:
    """What makes a problem the same: all settings but the number of trials."""
    return {name: one for name, one in value.items() if name != "n_trials"} if isinstance(value, dict) else value


def _new(space: Space | Mapping[str, Any] | None, settings: dict[str, Any]) -> Optimizer:
    if space is None:
        raise InputError("`space` must be given unless `optimizer` is; got None.")
    return Optimizer(space, **settings)


def _one(rollout: Callable[[dict[str, Any]], Any], optimizer: Optimizer) -> Trial:
    """Run one trial and tell its outcome; on an unexpected error the suggestion is withdrawn."""
    suggestion = optimizer.ask()
    try:
        try:
            outcome = rollout(dict(suggestion))
        except Crash as crash:
            return optimizer.tell(suggestion, CRASHED, reason=crash.reason, **crash.values)
        values = dict(outcome) if isinstance(outcome, Mapping) else {"objective": outcome}
        if "objective" not in values:
            raise InputError(f"`rollout` must return 'objective' in its mapping; got {sorted(values)}.")
        objective = as_scalar(values.pop("objective"))
        if isinstance(objective, float) and not math.isfinite(objective):
            return optimizer.tell(suggestion, CRASHED, reason=f"cost {objective}", **values)
        return optimizer.tell(suggestion, objective, **values)
    except BaseException:
        if suggestion in optimizer.pending:
            optimizer.forget(suggestion)
        raise


def _caption(optimizer: Optimizer) -> str:
    failed, crashed = int(optimizer.history.failed.sum()), sum(trial.crashed for trial in optimizer.trials)
    words = f"{len(optimizer.trials) - failed} succeeded, {crashed} crashed"
    return f"{words}, {failed - crashed} broke a limit" if failed > crashed else words
