"""Run a whole optimization in one call."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import crashbo
from crashbo.errors import InputError
from crashbo.guard import Jobs
from crashbo.optimizer import Optimizer
from crashbo.problem.history import History
from crashbo.problem.options import OptionKeywords, Options, is_count, require
from crashbo.problem.outcome import Constraint, Crash, Failure, Trial, is_number, outcome_of
from crashbo.problem.parameters import native
from crashbo.problem.problem import Direction
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Best
from crashbo.progress import progress_bar
from crashbo.search.strategy import Strategy

if TYPE_CHECKING:
    import pandas

Callback = Callable[[Optimizer, Trial], bool | None]
Kinds = tuple[type[Exception], ...]


@dataclass(frozen=True, repr=False)
class Result:
    """The result of `minimize`.

    Attributes:
        best: the best guess of the models; None without any trial.
        trials: all finished trials, in order.
        n_crashes: number of trials without a cost.
        thresholds: the most probable limits; `optimizer.limits` has their standard deviations too.
        interrupted: whether the run ended before all trials.
        optimizer: the optimizer of the run, to continue or to look at its models.
        errors: points on which the function failed with an error that is not a crash.
        stopped: why the run ended early, in words; "" if it did not.
    """

    best: Best | None
    trials: tuple[Trial, ...]
    n_crashes: int
    thresholds: dict[str, float]
    interrupted: bool
    optimizer: Optimizer
    errors: tuple[Failure, ...] = ()
    stopped: str = ""

    @property
    def best_trial(self) -> Trial | None:
        """The best trial that did not fail; None without one. `best` is the guess of the models."""
        return self.optimizer.best_trial

    def to_dataframe(self) -> "pandas.DataFrame":
        """All trials as a pandas data frame, one row per trial."""
        return crashbo.later("to_dataframe")(self)

    def __repr__(self) -> str:
        seen = self.best_trial
        parts = [
            f"{len(self.trials)} trials, {self.n_crashes} crashed" + f" (stopped: {self.stopped})" * bool(self.stopped),
            "no best guess" if self.best is None else f"best guess {str(self.best).rstrip('.')}",
            "no trial succeeded" if seen is None else f"best trial {seen.number}: {seen.objective:.6g}",
        ]
        return f"Result({'; '.join(parts)})"

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return str(crashbo.later("to_html")(self))


def minimize(
    rollout: Callable[[dict[str, Any]], Any],
    space: Space | Mapping[str, Any] | None = None,
    *,
    n_trials: int,
    constraints: Sequence[Constraint | str] = (),
    direction: Direction = "minimize",
    seed: int | None = 0,
    risk: float | None = None,
    crash_budget: int | None = None,
    initial_points: Sequence[Mapping[str, Any]] = (),
    catch: type[Exception] | tuple[type[Exception], ...] = (),
    timeout: float | None = None,
    max_failures: int | None = None,
    patience: int | None = None,
    n_jobs: int = 1,
    processes: bool = False,
    state: str | Path | None = None,
    callbacks: Sequence[Callback] = (),
    progress: bool | None = None,
    optimizer: Optimizer | None = None,
    strategy: str | Strategy = "default",
    acquisition: str = "auto",
    options: Options | None = None,
    **more: Unpack[OptionKeywords],
) -> Result:
    """Minimise an experiment that can crash (or maximise, with `direction="maximize"`).

    Ctrl-C stops the run and returns what is finished. With `state`, every trial is on disk before the
    next begins, and the same call resumes the run.

    An exception in `rollout` that is neither a `Crash` nor in `catch` ends the run. It is raised with the
    attribute `result`, which has all finished trials. The point is recorded in `errors` and not tried again.

    `constraints`, `direction`, `seed`, `initial_points`, `strategy` and `acquisition` are those of `Optimizer`; `risk`,
    `crash_budget` and the arguments in `more` are those of `Options`, given by name.

    Args:
        rollout: your experiment. It takes params and returns a cost, a mapping {"objective": .., constraint: ..} or
            `CRASHED`, or raises `Crash`. None, NaN, infinity and numbers beyond 1e100 are crashes too.
        space: the parameters; not needed with `optimizer`.
        n_trials: total number of trials, including those already told.
        catch: exceptions of `rollout` that count as crashes; their text is the reason.
        timeout: seconds after which no further trial begins.
        max_failures: end the run after this many failed trials. (`crash_budget` makes the search careful instead.)
        patience: end the run after this many trials in a row without an improvement.
        n_jobs: number of trials at the same time; -1: one per core.
        processes: run each trial in its own process instead of a thread. `rollout` must be importable. A
            process that dies raises `ChildProcessError`, which is a crash if `catch` includes it.
        state: file to save the state in, and to resume from if it exists. A file of another problem, or one
            that cannot be written, is refused before the first trial.
        callbacks: called with optimizer and trial after every trial; return True to stop.
        progress: show a progress bar; None: in notebooks and terminals.
        optimizer: an existing optimizer to use, with its own settings.
        options: all options together; `n_trials` is filled in.
    """
    stop = _Stop(native(n_trials), timeout, max_failures, patience)
    kinds, count = catch if isinstance(catch, tuple) else (catch,), native(n_jobs)
    catchable = all(isinstance(one, type) and issubclass(one, Exception) for one in kinds)
    require("n_jobs", count, is_count(count, -1) and count != 0, "be an integer >= 1, or -1 for one per core")
    require("catch", catch, catchable, "be exception classes, as after `except`")
    require("options", options, options is None or isinstance(options, Options), "be crashbo.Options or None")
    jobs = Jobs(rollout, count if count > 0 else os.cpu_count() or 1, processes=processes)
    named = {"risk": risk, "crash_budget": crash_budget, **more}
    beside = {**named, "options": options, "constraints": constraints, "initial_points": initial_points}
    given = [name for name, value in beside.items() if value is not None and value != ()]
    if optimizer is not None and given:
        raise InputError(f"`{given[0]}` must be left out with `optimizer`, which has its own settings.")
    settings = {
        "constraints": constraints,
        "direction": direction,
        "strategy": strategy,
        "acquisition": acquisition,
        "seed": seed,
        "initial_points": initial_points,
        "options": _joined_options(options, named, stop.n_trials),
    }
    file = None if state is None else Path(state)
    return _run(jobs, _start(optimizer, file, space, settings), stop, kinds, file, callbacks, progress)


@dataclass(frozen=True)
class _Stop:
    """When no further trial should begin; the arguments of `minimize`, checked."""

    n_trials: int
    timeout: float | None
    max_failures: int | None
    patience: int | None
    begun: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        timely = self.timeout is None or (is_number(self.timeout) and self.timeout > 0)
        require("n_trials", self.n_trials, is_count(self.n_trials), "be an integer >= 1")
        require("timeout", self.timeout, timely, "be a number of seconds > 0 or None")
        for name in ("max_failures", "patience"):
            value = getattr(self, name)
            require(name, value, value is None or is_count(native(value)), "be an integer >= 1 or None")

    def why(self, history: History) -> str:
        """Why no further trial should begin before all are made; "" while one should."""
        if self.timeout is not None and time.monotonic() >= self.begun + self.timeout:
            return "out of time"
        failed = int(history.failed.sum())
        if self.max_failures is not None and failed >= self.max_failures:
            return f"{failed} trials failed"
        seen, trials = history.best_trial, history.trials
        since = len(trials) if seen is None else len(trials) - 1 - trials.index(seen)
        return f"no progress in {since} trials" if self.patience is not None and since >= self.patience else ""


def _run(
    jobs: Jobs,
    optimizer: Optimizer,
    stop: _Stop,
    catch: Kinds,
    file: Path | None,
    callbacks: Sequence[Callback],
    progress: bool | None,
) -> Result:
    """Run trials until something stops that; what is finished is on disk before the next begins."""
    stopped = ""
    with progress_bar(stop.n_trials, len(optimizer.trials), progress) as update, _with_result(optimizer, file):
        try:
            _forget_left_over(optimizer)
            for trial in _trials(jobs, optimizer, stop, catch):
                if file is not None:
                    optimizer.save(file)
                update(len(optimizer.trials), _caption(optimizer.history))
                if any([callback(optimizer, trial) is True for callback in callbacks]):  # noqa: C419 (call all)
                    stopped = "by a callback"
                    break
            stopped = stopped or stop.why(optimizer.history)
        except KeyboardInterrupt:
            stopped = "interrupted"
        finally:
            jobs.stop()
            _forget_left_over(optimizer)
    return _result(optimizer, stopped if len(optimizer.trials) < stop.n_trials else "")


def _joined_options(options: Options | None, named: Mapping[str, Any], n_trials: int) -> Options:
    """The options, those given by name among them, with the number of trials unless they say another."""
    known = [one.name for one in fields(Options) if one.name != "n_trials"]
    unknown = [name for name in named if name not in known]
    if unknown:
        raise InputError(f"`{unknown[0]}` must be an argument of `minimize` or an option; options are {known}.")
    given = {name: value for name, value in named.items() if value is not None}
    if options is not None and given:
        raise InputError(f"`options` must come alone; got {sorted(given)} beside it. Put them in, or leave it out.")
    chosen = options or Options(**given)
    return replace(chosen, n_trials=chosen.n_trials or n_trials)


def _trials(jobs: Jobs, optimizer: Optimizer, stop: _Stop, catch: Kinds) -> Iterator[Trial]:
    """Run trials and tell what came of them; an error of the function itself is raised once all have ended."""
    broken: Exception | None = None
    while True:
        room = min(jobs.count, stop.n_trials - len(optimizer.trials))
        while len(jobs.running) < room and not (broken or stop.why(optimizer.history)):
            jobs.start(optimizer.ask())
        if not jobs.running:
            break
        suggestion, (said, error) = jobs.wait()
        try:
            if error is not None and not isinstance(error, Crash):
                if not isinstance(error, catch):
                    raise error
                error = Crash(f"{type(error).__name__}: {error}")
            trial = optimizer.record(suggestion, outcome_of(error or said, optimizer.constraints))
        except Exception as problem:
            optimizer.fail(suggestion, f"{type(problem).__name__}: {problem}")
            broken = broken or problem
        else:
            yield trial
    if broken is not None:
        raise broken


def _result(optimizer: Optimizer, stopped: str, *, modelled: bool = True) -> Result:
    trials = optimizer.trials
    best = optimizer.best() if trials and modelled else None
    limits, crashes = optimizer.thresholds if modelled else {}, sum(trial.crashed for trial in trials)
    return Result(best, trials, crashes, limits, bool(stopped), optimizer, optimizer.errors, stopped)


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
            try:
                result = _result(optimizer, "an error")
            except Exception:  # the model itself may be what failed
                result = _result(optimizer, "an error", modelled=False)
            error.result = result  # type: ignore[attr-defined]
            error.add_note(f"crashbo: {len(optimizer.trials)} trials are finished, see `error.result`{kept}.")
        raise


def _forget_left_over(optimizer: Optimizer) -> None:
    """Withdraw what an interrupted run left over; points of errors stay, so that they do not come again."""
    for suggestion in optimizer.pending:
        if suggestion.number not in optimizer.history.errors:
            optimizer.forget(suggestion)


def _start(
    optimizer: Optimizer | None, file: Path | None, space: Space | Mapping[str, Any] | None, settings: dict[str, Any]
) -> Optimizer:
    """The optimizer to go on with; a file that it would overwrite must hold nothing else."""
    wanted = optimizer if optimizer is not None or space is None else Optimizer(space, **settings)
    if file is not None:
        from crashbo.problem.state_files import check_writable, resume

        check_writable("state", file)
        known = None if wanted is None else wanted.problem
        if known is not None:
            known.space.to_json()  # refuses a constraint that is a function
        if file.exists():
            strategy = settings["strategy"] if known is None else known.strategy
            own = None if isinstance(strategy, str) else strategy
            anew = settings["seed"] is None and optimizer is None  # any seed will do
            loaded = resume(file, known, own, settings["options"].n_trials, any_seed=anew)
            if optimizer is None:
                return Optimizer.restore(loaded)
            if optimizer.trials[: len(loaded.trials)] != loaded.trials:
                raise InputError(
                    f"`state` must hold trials that `optimizer` knows; {file} has {len(loaded.trials)} others. Use "
                    "another file, or leave `optimizer` out to go on with those."
                )
    if wanted is None:
        raise InputError("`space` must be given unless `optimizer` is; got None.")
    return wanted


def _caption(history: History) -> str:
    failed, crashed = int(history.failed.sum()), sum(trial.crashed for trial in history.trials)
    words = f"{len(history.trials) - failed} succeeded, {crashed} crashed"
    words += f", {failed - crashed} violated a limit" * (failed > crashed)
    seen = history.best_trial
    return words if seen is None else f"{words}, best {seen.objective:.4g}"
