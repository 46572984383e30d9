"""The numbers behind the pictures of a run: thresholds, convergence, parallel coordinates."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import InputError
from crashbo.model.memory import Memory
from crashbo.model.surrogate import Limit
from crashbo.model.threads import few_threads
from crashbo.problem.arrays import Array
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.outcome import Trial
from crashbo.problem.parameters import Categorical
from crashbo.search import make_strategy
from crashbo.search.strategy import Strategy
from crashbo.show.data import describe
from crashbo.show.views import Source, View, modelled, view

_HUGE = 1e300
NO_LIMIT = "`source` must have a learned limit; got none: nothing failed, or crashes are no high costs."
TOP = 0.86  # where costs end in parallel coordinates; crashed trials end above


@dataclass(frozen=True)
class ThresholdPath:
    """One output's learned limit over the trials.

    Attributes:
        output: "objective" or a constraint.
        label: name and unit.
        trials: `k`, after how many trials (1 is after the first).
        limit: `k`, the most probable limit; NaN where there was none.
        deviation: `k`, its standard deviation.
        worst: `k`, the worst value seen without failure so far; NaN before the first.
        failures: after how many trials a failure of this output was told.
        true: None if unknown.
    """

    output: str
    label: str
    trials: NDArray[np.int64]
    limit: Array
    deviation: Array
    worst: Array
    failures: NDArray[np.int64]
    true: float | None = None

    @property
    def alone(self) -> NDArray[np.bool_]:
        """`k`, whether a limit is known but neither before nor after: a point of a line without length."""
        known = np.concatenate([[False], np.isfinite(self.limit), [False]])
        return np.asarray(known[1:-1] & ~known[:-2] & ~known[2:])


@dataclass(frozen=True)
class Convergence:
    """One run, trial by trial, `n` each.

    Attributes:
        label: of the objective, with its unit.
        numbers: of the trials, for people.
        values: the objective; NaN where crashed.
        failed: crashed, or a limit broken, known or not.
        best: the best value of a trial that did not fail, so far; NaN before the first.
        minimise: whether low is good.
        texts: what happened.
    """

    label: str
    numbers: tuple[int, ...]
    values: Array
    failed: NDArray[np.bool_]
    best: Array
    minimise: bool
    texts: tuple[str, ...]

    @property
    def places(self) -> NDArray[np.int64]:
        """Where the trials stand along the axis: at their numbers, or in the order told where those do not rise."""
        numbers = np.array(self.numbers, dtype=np.int64)
        return numbers if (np.diff(numbers) > 0).all() else np.arange(len(numbers))


@dataclass(frozen=True)
class Band:
    """Several runs as one: median and quartiles per trial, `n` each.

    A run without a value yet counts as worse than any with one.

    Attributes:
        name: of the method.
        low, middle, high: quartiles and median; infinite where they fall on a run without a value.
        failed_share: of the runs, per trial; None if not known.
        runs: how many.
    """

    name: str
    low: Array
    middle: Array
    high: Array
    failed_share: Array | None
    runs: int


@dataclass(frozen=True)
class Parallel:
    """Every trial as a line over all parameters and the objective.

    Attributes:
        names: labels of the parameters that vary.
        positions: `n x p`, from 0 to 1 along each parameter (log scales and choices included).
        ticks: per parameter, text by position.
        values: `n`, the objective; NaN where crashed.
        failed: `n`.
        label: of the objective.
        numbers, texts: for people.
    """

    names: tuple[str, ...]
    positions: Array
    ticks: tuple[Mapping[float, str], ...]
    values: Array
    failed: NDArray[np.bool_]
    label: str
    numbers: tuple[int, ...]
    texts: tuple[str, ...]


def thresholds(source: Source, *, fits: int = 40, true: Mapping[str, float] | None = None) -> tuple[ThresholdPath, ...]:
    """Follow the learned limits over the trials: what the models of the first trials said.

    Args:
        source: what to draw.
        fits: largest number of fits, evenly spaced over the trials; the last trial is always one of them.
        true: the true limits, where known.
    """
    seen = modelled(source)
    count = len(seen.trials)
    after = np.unique(np.linspace(1, count, min(fits, count)).round().astype(np.int64))
    # With a memory of its own, so that the optimizer's keeps what it knows.
    strategy = make_strategy(seen.optimizer.settings.strategy, Memory())
    past = [_limits_after(seen, int(k), strategy) for k in after]
    outputs = [OBJECTIVE, *(one.name for one in seen.optimizer.constraints if one.threshold is None)]
    paths = [_path(seen, output, after, past, (true or {}).get(output)) for output in outputs]
    return tuple(path for path in paths if np.isfinite(path.limit).any())


def _limits_after(view: View, count: int, strategy: Strategy) -> Mapping[str, Limit]:
    """The limits after the first trials, by output, minimised."""
    if count == len(view.trials):
        return view.models.limits
    with few_threads(count):
        return strategy.surrogate(view.optimizer.history.first(count)).limits


def _path(
    view: View, output: str, after: NDArray[np.int64], past: Sequence[Mapping[str, Limit]], true: float | None
) -> ThresholdPath:
    sign = view.sign if output == OBJECTIVE else 1.0
    nothing = Limit(math.nan, math.nan)
    found = [limits.get(output, nothing) for limits in past]
    values = [_value(one, output) for one in view.trials]
    seen = np.array([math.nan if value is None else value for value in values])
    failed = [i + 1 for i, one in enumerate(view.trials) if view.failed_in(one, output)]
    return ThresholdPath(
        output=output,
        label=view.label(output),
        trials=after,
        limit=sign * np.array([one.value for one in found]),
        deviation=np.array([one.deviation for one in found]),
        worst=(sign * np.fmax.accumulate(sign * seen))[after - 1],
        failures=np.array(failed, dtype=np.int64),
        true=true,
    )


def _value(trial: Trial, output: str) -> float | None:
    return trial.objective if output == OBJECTIVE else trial.constraints.get(output)


def convergence(source: Source) -> Convergence:
    """Follow a run trial by trial: values, failures, best so far."""
    seen = view(source)
    values = np.array([math.nan if one.objective is None else one.objective for one in seen.trials])
    lost = np.array([seen.failed(one) for one in seen.trials], dtype=bool)
    best = seen.sign * np.fmin.accumulate(np.where(lost, math.nan, seen.sign * values))
    return Convergence(
        label=seen.label(OBJECTIVE),
        numbers=tuple(seen.number(i) for i in range(len(values))),
        values=values,
        failed=lost,
        best=best,
        minimise=seen.sign > 0,
        texts=tuple(describe(seen, one) for one in seen.trials),
    )


def band(
    name: str, curves: Sequence[Sequence[float] | Array], failures: Sequence[Sequence[bool]] | None = None
) -> Band:
    """Join several runs into median and quartiles.

    Args:
        name: of the method.
        curves: one per run, low is good (negate what is maximised); NaN for "nothing yet". Runs of
            different length are compared over the shortest.
        failures: per run and trial, whether it failed.
    """
    if not curves or min(len(one) for one in curves) == 0:
        raise InputError(f"`curves` must hold at least one run of at least one trial; got {len(curves)} runs.")
    length = min(len(one) for one in curves)
    table = np.array([list(one)[:length] for one in curves], dtype=np.float64)
    table = np.where(np.isfinite(table), table, _HUGE)
    quartiles = np.quantile(table, [0.25, 0.5, 0.75], axis=0)
    low, middle, high = np.where(quartiles > 1e200, math.inf, quartiles)
    share = None if failures is None else np.array([list(one)[:length] for one in failures], dtype=float).mean(0)
    return Band(name, low, middle, high, share, len(curves))


def band_of(name: str, sources: Sequence[Source]) -> Band:
    """Join several runs of an optimizer: best value so far, and the share of failures.

    Args:
        name: of the method.
        sources: one per run.
    """
    runs = [convergence(one) for one in sources]
    if len({one.minimise for one in runs}) > 1:
        raise InputError("`sources` must all minimise or all maximise; got both.")
    sign = 1.0 if not runs or runs[0].minimise else -1.0
    joined = band(name, [sign * one.best for one in runs], [one.failed.tolist() for one in runs])
    if sign > 0:
        return joined
    return replace(joined, low=-joined.low, middle=-joined.middle, high=-joined.high)


def parallel(source: Source) -> Parallel:
    """Place every trial along every parameter that varies."""
    seen = view(source)
    names = seen.varying
    places = [[seen.space[name].locate(one.params[name]) for name in names] for one in seen.trials]
    values = [math.nan if one.objective is None else one.objective for one in seen.trials]
    return Parallel(
        names=tuple(seen.label(name) for name in names),
        positions=np.array(places, dtype=np.float64).reshape(len(seen.trials), len(names)),
        ticks=tuple(_ticks(seen, name) for name in names),
        values=np.array(values),
        failed=np.array([seen.failed(one) for one in seen.trials], dtype=bool),
        label=seen.label(OBJECTIVE),
        numbers=tuple(seen.number(i) for i in range(len(values))),
        texts=tuple(describe(seen, one) for one in seen.trials),
    )


def _ticks(view: View, name: str) -> dict[float, str]:
    """All choices or a few integers by name; else the values at even positions."""
    parameter = view.space[name]
    if isinstance(parameter, Categorical):
        return {parameter.locate(choice): str(choice) for choice in parameter.choices}
    positions = np.linspace(0, 1, 5 if parameter.size > 5 else int(parameter.size))
    values = sorted({parameter.at(float(position)) for position in positions})
    return {parameter.locate(value): f"{value:.3g}" for value in values}


def parallel_heights(numbers: Parallel) -> tuple[Array, float, float]:
    """Heights of the lines' ends from 0 to 1, crashed ones at 1; lowest and highest cost."""
    seen = numbers.values[np.isfinite(numbers.values)]
    low, high = (float(seen.min()), float(seen.max())) if len(seen) else (0.0, 1.0)
    high = high if high > low else low + 1.0
    return np.where(np.isnan(numbers.values), 1.0, TOP * (numbers.values - low) / (high - low)), low, high


def logarithmic(values: Array, log: bool | None) -> bool:
    """Whether an axis is logarithmic: as told, else where values are positive over two orders of magnitude."""
    finite = values[np.isfinite(values)]
    if log is not None or not len(finite):
        return bool(log)
    return bool(finite.min() > 0 and finite.max() / finite.min() > 100)


def drawable(bands: Sequence[Band], log: bool | None) -> tuple[list[tuple[Array, Array, Array]], bool]:
    """Quartiles and medians that can be drawn, and whether on a logarithmic axis.

    NaN where there is nothing to draw. An upper quartile among runs without a value is drawn at the top;
    on a logarithmic axis, what is not positive is drawn at the bottom.
    """
    everything = np.concatenate([np.concatenate([one.low, one.middle, one.high]) for one in bands])
    finite = everything[np.isfinite(everything)]
    positive = finite[finite > 0]
    use_log = logarithmic(everything, log) and len(positive) > 0
    floor = float(positive.min()) if use_log else -math.inf
    top = float(finite.max()) if len(finite) else math.nan
    found = []
    for one in bands:
        low, middle, high = (
            np.where(np.isfinite(part), np.maximum(part, floor), math.nan) for part in (one.low, one.middle, one.high)
        )
        found.append((low, middle, np.where(np.isnan(high) & np.isfinite(low), top, high)))
    return found, use_log
