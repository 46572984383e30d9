"""Run a whole optimization in one call."""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from crashbo.errors import InputError
from crashbo.optimizer import Optimizer
from crashbo.options import Options
from crashbo.outcome import CRASHED, Crash, Failure, Trial, as_scalar
from crashbo.space import Space
from crashbo.suggestion import Best

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
        errors: points on which the function itself failed; they count neither as crashes nor as results.
    """

    best: Best | None
    trials: tuple[Trial, ...]
    n_crashes: int
    thresholds: dict[str, float]
    interrupted: bool
    optimizer: Optimizer
    errors: tuple[Failure, ...] = ()


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

    An exception in `rollout` that is no `Crash` ends it and loses nothing: it is raised with the attribute `result`,
    which has all finished trials, and the point is recorded among `errors`; the same call then tries another one.

    Args:
        rollout: takes params; returns a cost, or a mapping {"objective": .., constraint: ..}, or
            `CRASHED`, or raises `Crash`. A cost of NaN or infinity counts as a crash.
        space: the parameters; not needed with `optimizer`.
        n_trials: in total, those already told included.
        optimizer: to use instead of a new one.
        state: file to keep the state in, and to resume from if it exists. One of another problem is refused, and so
            is one that cannot be written, before the first trial.
        callbacks: called after every trial with optimizer and trial; True stops.
        progress: show a bar; None: if a person watches.
        settings: of the `Optimizer`: constraints, direction, strategy, seed, options, ... The options learn `n_trials`.
    """
    if isinstance(n_trials, bool) or not isinstance(n_trials, int) or n_trials < 1:
        raise InputError(f"`n_trials` must be an integer >= 1; got {n_trials!r}.")
    settings = _with_horizon(settings, n_trials)
    file = None if state is None else Path(state)
    optimizer = _start(optimizer, file, space, settings)
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
    with bar, _with_result(optimizer, file):
        task = bar.add_task("trials", total=n_trials, completed=len(optimizer.trials))
        try:
            _forget_left_over(optimizer)
            while len(optimizer.trials) < n_trials:
                trial = _one(rollout, optimizer)
                if file is not None:
                    optimizer.save(file)
                bar.update(task, completed=len(optimizer.trials), description=_caption(optimizer))
                if any([callback(optimizer, trial) is True for callback in callbacks]):  # noqa: C419 (call all)
                    interrupted = len(optimizer.trials) < n_trials
                    break
        except KeyboardInterrupt:
            interrupted = True
    return _result(optimizer, interrupted)


def _result(optimizer: Optimizer, interrupted: bool) -> Result:
    trials = optimizer.trials
    return Result(
        best=optimizer.best() if trials else None,
        trials=trials,
        n_crashes=sum(trial.crashed for trial in trials),
        thresholds=optimizer.thresholds,
        interrupted=interrupted,
        optimizer=optimizer,
        errors=optimizer.errors,
    )


@contextlib.contextmanager
def _with_result(optimizer: Optimizer, file: Path | None) -> Iterator[None]:
    """Within this, an exception carries all finished trials as its attribute `result`, and they are on disk."""
    try:
        yield
    except Exception as error:
        kept = ""
        if file is not None:
            with contextlib.suppress(OSError):
                optimizer.save(file)
                kept = f"; they are in {file} too"
        with contextlib.suppress(AttributeError, TypeError):  # an exception that takes no attributes
            error.result = _result_whatever_happens(optimizer)  # type: ignore[attr-defined]
            error.add_note(f"crashbo: {len(optimizer.trials)} trials are finished, see `error.result`{kept}.")
        raise


def _result_whatever_happens(optimizer: Optimizer) -> Result:
    """The result, without a best guess if the model is what failed."""
    try:
        return _result(optimizer, True)
    except Exception:
        trials = optimizer.trials
        crashes = sum(trial.crashed for trial in trials)
        return Result(None, trials, crashes, {}, True, optimizer, optimizer.errors)


def _forget_left_over(optimizer: Optimizer) -> None:
    """Withdraw what an interrupted run left over; points of errors stay, so that they do not come again."""
    failed = [failure.params for failure in optimizer.errors]
    for suggestion in optimizer.pending:
        if dict(suggestion) not in failed:
            optimizer.forget(suggestion)


def _start(
    optimizer: Optimizer | None, file: Path | None, space: Space | Mapping[str, Any] | None, settings: dict[str, Any]
) -> Optimizer:
    """The optimizer to go on with; a file that it would overwrite must hold nothing else."""
    wanted = optimizer if optimizer is not None or space is None else _new(space, settings)
    if file is None:
        return wanted or _new(space, settings)
    from crashbo.studies.state_files import check_writable, resume

    check_writable("state", file)
    if not file.exists():
        return wanted or _new(space, settings)
    strategy = settings.get("strategy", "default") if optimizer is None else optimizer.settings.strategy
    own = None if isinstance(strategy, str) else strategy
    found = resume(file, None if wanted is None else wanted.saved, own, settings["options"].n_trials)
    loaded = Optimizer.restore(found)
    if optimizer is None:
        return loaded
    if optimizer.trials[: len(loaded.trials)] != loaded.trials:
        raise InputError(
            f"`state` must hold trials that `optimizer` knows; {file} has {len(loaded.trials)} others. Use another "
            "file, or leave `optimizer` out to go on with those."
        )
    return optimizer


def _with_horizon(settings: Mapping[str, Any], n_trials: int) -> dict[str, Any]:
    """The settings, with the number of trials among the options unless these say another."""
    options = settings.get("options") or Options()
    if not isinstance(options, Options):
        raise InputError(f"`options` must be crashbo.Options or None; got {options!r}.")
    return {**settings, "options": replace(options, n_trials=options.n_trials or n_trials)}


def _new(space: Space | Mapping[str, Any] | None, settings: dict[str, Any]) -> Optimizer:
    if space is None:
        raise InputError("`space` must be given unless `optimizer` is; got None.")
    return Optimizer(space, **settings)


def _one(rollout: Callable[[dict[str, Any]], Any], optimizer: Optimizer) -> Trial:
    """Run one trial and tell its outcome; on an error of the function itself the point is recorded as one."""
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
    except Exception as error:
        if suggestion in optimizer.pending:
            optimizer.fail(suggestion, f"{type(error).__name__}: {error}")
        raise
    except BaseException:
        if suggestion in optimizer.pending:
            optimizer.forget(suggestion)
        raise


def _caption(optimizer: Optimizer) -> str:
    failed, crashed = int(optimizer.history.failed.sum()), sum(trial.crashed for trial in optimizer.trials)
    words = f"{len(optimizer.trials) - failed} succeeded, {crashed} crashed"
    return f"{words}, {failed - crashed} violated a limit" if failed > crashed else words
