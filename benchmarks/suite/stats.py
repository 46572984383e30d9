"""Figures of merit from the rows: regret, crashes, ranks, paired comparisons, calibration."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binomtest, rankdata, wilcoxon

from benchmarks.suite.methods import OURS
from benchmarks.suite.records import Row

Array: TypeAlias = NDArray[np.float64]
Run: TypeAlias = list[Row]
Runs: TypeAlias = dict[str, dict[str, dict[int, Run]]]
"""Runs by problem, method and seed."""
SIGNIFICANT = 0.05


def group_runs(rows: Iterable[Row]) -> Runs:
    """Return the rows run by run."""
    runs: Runs = {}
    for row in rows:
        runs.setdefault(row.problem, {}).setdefault(row.method, {}).setdefault(row.seed, []).append(row)
    return runs


def full_runs(rows: Sequence[Row]) -> tuple[list[Row], int]:
    """Return the rows of runs as long as the longest of their problem, and how many shorter runs were left out."""
    runs = group_runs(rows)
    longest = {
        name: max(len(run) for seeds in problem.values() for run in seeds.values()) for name, problem in runs.items()
    }
    short = {
        run[0].key
        for name, problem in runs.items()
        for seeds in problem.values()
        for run in seeds.values()
        if len(run) < longest[name]
    }
    return [row for row in rows if row.key not in short], len(short)


def regret_at(run: Run, trial: int | None = None) -> float:
    """Return the simple regret after a trial, or at the end; infinity where nothing succeeded."""
    return run[-1 if trial is None else min(trial, len(run)) - 1].regret


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    """Return median, lower and upper quartile, the higher of two neighbours where one of them is infinite."""
    found = [_quantile(values, share) for share in (0.5, 0.25, 0.75)]
    return found[0], found[1], found[2]


def _quantile(values: Sequence[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low, high = ordered[math.floor(place)], ordered[math.ceil(place)]
    part = place - math.floor(place)
    return high if part == 0 or math.isinf(high) else low + part * (high - low)


def median(values: Sequence[float]) -> float:
    """Return the median; infinity counts as a number."""
    return _quantile(values, 0.5)


def final_regrets(runs: Mapping[int, Run]) -> dict[int, float]:
    """Return the regret at the end by seed."""
    return {seed: regret_at(run) for seed, run in sorted(runs.items())}


def mean_crashes(runs: Mapping[int, Run]) -> float:
    """Return the crashed trials of a run, averaged over seeds."""
    return float(np.mean([sum(row.crashed for row in run) for run in runs.values()]))


def median_ask(runs: Iterable[Run], *, cpu: bool = False) -> float:
    """Return the median seconds of a suggestion, the shared design left out; NaN without any."""
    times = [row.ask_cpu_seconds if cpu else row.ask_seconds for run in runs for row in run]
    known = [one for one in times if one is not None]
    return float(np.median(known)) if known else math.nan


def ranks(problem: Mapping[str, Mapping[int, Run]]) -> dict[str, float]:
    """Return each method's rank by median regret at the end, 1 the best, ties averaged."""
    methods = list(problem)
    medians = [median(list(final_regrets(problem[method]).values())) for method in methods]
    return dict(zip(methods, rankdata(medians).tolist(), strict=True))


def mean_ranks(runs: Runs) -> tuple[dict[str, float], list[str]]:
    """Return mean ranks over the problems that every method has runs of, and those problems."""
    methods = {method for problem in runs.values() for method in problem}
    shared = [name for name, problem in runs.items() if set(problem) == methods]
    found = [ranks(runs[name]) for name in shared]
    return {method: float(np.mean([one[method] for one in found])) for method in methods if found}, shared


@dataclass(frozen=True)
class Comparison:
    """Two methods on the same seeds of a problem.

    Attributes:
        other: the method compared with.
        seeds: in common.
        p: of the two-sided Wilcoxon signed-rank test on regrets at the end.
        verdict: "better", "worse", or "same" where the test finds no difference.
    """

    other: str
    seeds: int
    p: float
    verdict: str


def compare(mine: Mapping[int, Run], other: Mapping[int, Run], name: str) -> Comparison:
    """Compare the regrets at the end, seed by seed; a run that never succeeded is worse than any that did."""
    seeds = sorted(set(mine) & set(other))
    a, b = (np.array([regret_at(runs[seed]) for seed in seeds]) for runs in (mine, other))
    a, b = _finite(a, b)
    gap = a - b
    p = 1.0 if not np.any(gap) else float(wilcoxon(gap).pvalue)
    if p >= SIGNIFICANT:
        return Comparison(name, len(seeds), p, "same")
    # The sign of the rank sum, not of the median: that is what the test is about.
    signed = float((np.sign(gap) * rankdata(np.abs(gap))).sum())
    return Comparison(name, len(seeds), p, "worse" if signed > 0 else "better")


def holm(ps: Sequence[float]) -> list[float]:
    """Return p values corrected for their number, after Holm."""
    order = sorted(range(len(ps)), key=lambda i: ps[i])
    corrected, highest = [1.0] * len(ps), 0.0
    for place, i in enumerate(order):
        highest = max(highest, min(1.0, (len(ps) - place) * ps[i]))
        corrected[i] = highest
    return corrected


@dataclass(frozen=True)
class HeadToHead:
    """Two methods over all runs with the same problem and seed.

    Attributes:
        pairs: of runs.
        lower: pairs in which ours ends with the lower regret.
        p: of the two-sided sign test, ties left out.
        crashes: per run, ours and the other's.
    """

    pairs: int
    lower: int
    p: float
    crashes: tuple[float, float]


def head_to_head(runs: Runs, mine: str, other: str) -> HeadToHead | None:
    """Compare two methods run by run; None if they share no problem and seed.

    Of few seeds of many problems that says more than medians, whose ranks hang on single runs.
    """
    both = [problem for problem in runs.values() if mine in problem and other in problem]
    pairs = [
        (one[mine][seed], one[other][seed]) for one in both for seed in sorted(one[mine].keys() & one[other].keys())
    ]
    if not pairs:
        return None
    ends = [(regret_at(ours), regret_at(others)) for ours, others in pairs]
    lower, decided = sum(a < b for a, b in ends), sum(a != b for a, b in ends)
    p = float(binomtest(lower, decided).pvalue) if decided else 1.0
    ours, others = (sum(row.crashed for pair in pairs for row in pair[i]) / len(pairs) for i in (0, 1))
    return HeadToHead(len(pairs), lower, p, (ours, others))


def _finite(a: Array, b: Array) -> tuple[Array, Array]:
    """Stand-ins for infinity beyond all finite regrets; only ranks of differences matter."""
    finite = np.concatenate([a, b])[np.isfinite(np.concatenate([a, b]))]
    beyond = 1e3 * (1.0 + (np.abs(finite).max() if len(finite) else 0.0))
    return np.where(np.isfinite(a), a, beyond), np.where(np.isfinite(b), b, beyond)


def peers(problem: Mapping[str, Mapping[int, Run]]) -> list[str]:
    """Return the methods that are not ours, the best first: by median regret at the end, then by crashes."""
    names = [name for name in problem if name not in OURS]
    return sorted(
        names, key=lambda name: (median(list(final_regrets(problem[name]).values())), mean_crashes(problem[name]))
    )


def converging(problem: Mapping[str, Mapping[int, Run]]) -> list[str]:
    """Return the peers that are not significantly worse than the best peer and whose median run succeeds."""
    order = peers(problem)
    return [
        name
        for name in order
        if math.isfinite(median(list(final_regrets(problem[name]).values())))
        and compare(problem[name], problem[order[0]], order[0]).verdict != "worse"
    ]


@dataclass(frozen=True)
class Calibration:
    """Predicted success against what happened.

    Attributes:
        error: the expected calibration error over bins of one width.
        bins: per bin how many, the mean prediction and the share that succeeded; NaN where empty.
    """

    error: float
    bins: tuple[tuple[int, float, float], ...]

    @property
    def count(self) -> int:
        """How many predictions there were."""
        return sum(one[0] for one in self.bins)


def calibrate(rows: Iterable[Row], *, first: int = 20, bins: int = 10) -> Calibration:
    """Return the calibration of success probabilities from a trial on.

    Math: `sum_b n_b / n |mean prediction in b - success rate in b|`
    """
    pairs = [
        (row.success_probability, not row.crashed)
        for row in rows
        if row.success_probability is not None and row.trial >= first
    ]
    if not pairs:
        return Calibration(math.nan, ((0, math.nan, math.nan),) * bins)
    predicted, succeeded = np.array(pairs, dtype=np.float64).T
    place = np.minimum((predicted * bins).astype(int), bins - 1)
    found = []
    for index in range(bins):
        here = place == index
        some = bool(here.any())
        means = (float(predicted[here].mean()), float(succeeded[here].mean())) if some else (math.nan, math.nan)
        found.append((int(here.sum()), *means))
    error = sum(count * abs(a - b) for count, a, b in found if count) / len(pairs)
    return Calibration(error, tuple(found))
