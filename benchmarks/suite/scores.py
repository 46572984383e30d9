"""Scores over drawn problems: regret in units of random search's, crashes, ranks, paired comparisons."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy.stats import binomtest, rankdata

from benchmarks.suite.draws import draw_number
from benchmarks.suite.problems import find_problem
from benchmarks.suite.records import Row
from benchmarks.suite.stats import Run, regret_at
from benchmarks.suite.tables import number, table

CHECKPOINTS = (20, 50)
REFERENCE, REFERENCE_TRIAL = "random", 50
LOWEST = 1e-6
DrawnRuns: TypeAlias = dict[str, dict[str, Run]]
"""Runs by draw and method; a draw has one seed."""


@dataclass(frozen=True)
class Score:
    """A method at a trial, over all draws.

    Attributes:
        method, trial: of the score.
        geometric_mean, median, percentile_90: of normalised regret.
        mean_rank: among the methods, 1 the best, ties averaged.
        crashes_asked: share of crashes among the trials that the method suggested, up to the trial; NaN without any.
        crashes: share of crashed trials, the design included.
        without_success: runs in which nothing had succeeded yet.
    """

    method: str
    trial: int
    geometric_mean: float
    median: float
    percentile_90: float
    mean_rank: float
    crashes_asked: float
    crashes: float
    without_success: int


@dataclass(frozen=True)
class Pairing:
    """One method against another at a trial, draw by draw.

    Attributes:
        method, other, trial: compared.
        wins, losses, ties: draws on which the method's regret is lower, higher, the same.
        ratio: geometric mean of the method's normalised regret over the other's.
        p: of the two-sided sign test, ties left out.
    """

    method: str
    other: str
    trial: int
    wins: int
    losses: int
    ties: int
    ratio: float
    p: float


@dataclass(frozen=True)
class Report:
    """All scores of some runs.

    Attributes:
        draws: how many draws every method has runs of; all else is over these.
        left_out: draws that some method has no full run of.
        scores: by trial, then from the lowest geometric mean up.
        pairings: of one method against each other one; empty if none was named.
    """

    draws: int
    left_out: int
    scores: tuple[Score, ...]
    pairings: tuple[Pairing, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the report as plain lists and numbers; None stands for NaN."""
        return {
            "draws": self.draws,
            "left_out": self.left_out,
            "scores": [_plain(one) for one in self.scores],
            "pairings": [_plain(one) for one in self.pairings],
        }


def make_report(
    rows: Iterable[Row],
    *,
    against: str | None = None,
    typical: Callable[[str], float] | None = None,
    checkpoints: Sequence[int] = CHECKPOINTS,
) -> Report:
    """Return the scores of all methods in the rows.

    Args:
        rows: of drawn problems, random search's among them.
        against: a method to compare with each other one.
        typical: stands in for random search's regret where that is 0 or infinite; by default `typical_regret`.
        checkpoints: trials at which to score; runs of slow methods may end at the last of them.
    """
    runs = group_draws(rows)
    methods = sorted({method for found in runs.values() for method in found})
    full = {name: found for name, found in runs.items() if _complete(found, methods, checkpoints[-1])}
    units = {name: reference(found, name, typical or typical_regret) for name, found in full.items()}
    scores, pairings = list[Score](), list[Pairing]()
    for trial in checkpoints if full else ():
        values = {
            method: np.array([normalised(found[method], units[name], trial) for name, found in full.items()])
            for method in methods
        }
        ranks = _mean_ranks(values)
        part = [
            _score(method, trial, values[method], ranks[method], [one[method] for one in full.values()])
            for method in methods
        ]
        scores += sorted(part, key=lambda one: one.geometric_mean)
        if against in methods:
            pairings += [pair(against, other, trial, values) for other in methods if other != against]
    return Report(len(full), len(runs) - len(full), tuple(scores), tuple(pairings))


def group_draws(rows: Iterable[Row]) -> DrawnRuns:
    """Return the rows of drawn problems run by run; others are left out."""
    runs: DrawnRuns = {}
    for row in rows:
        if draw_number(row.problem) is not None:
            runs.setdefault(row.problem, {}).setdefault(row.method, []).append(row)
    return runs


def reference(found: Mapping[str, Run], name: str, typical: Callable[[str], float]) -> float:
    """Return the unit of regret on a draw: random search's regret at trial 50 if it is positive and finite."""
    regret = regret_at(found[REFERENCE], REFERENCE_TRIAL)
    return regret if 0 < regret < math.inf else typical(name)


def typical_regret(name: str) -> float:
    """Return the median regret of uniform points of a draw that succeed, as if random search had one such trial.

    Where even that is 0, the largest; 1 if all points that succeed are the same.
    """
    problem = find_problem(name)
    points = problem.space.sobol(1024, 0)
    costs, succeeds = problem.truth(np.array([problem.row(params) for params in points]))
    regrets = costs[succeeds] - problem.optimum
    return float(np.median(regrets)) or float(regrets.max()) or 1.0


def normalised(run: Run, unit: float, trial: int) -> float:
    """Return the regret after a trial over the unit, at least 1e-6; infinity where nothing succeeded."""
    return max(regret_at(run, trial) / unit, LOWEST)


def counted(values: np.ndarray) -> np.ndarray:
    """Return normalised regrets as means count them: 1 where nothing succeeded."""
    return np.where(np.isfinite(values), values, 1.0)


def pair(method: str, other: str, trial: int, values: Mapping[str, np.ndarray]) -> Pairing:
    """Compare two methods draw by draw; a run without success is worse than any other."""
    mine, theirs = values[method], values[other]
    wins, losses = int((mine < theirs).sum()), int((mine > theirs).sum())
    p = float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0
    ratio = float(np.exp(np.mean(np.log(counted(mine)) - np.log(counted(theirs)))))
    return Pairing(method, other, trial, wins, losses, len(mine) - wins - losses, ratio, p)


def render(report: Report) -> str:
    """Return the report as Markdown."""
    parts = [f"{report.draws} draws that every method has a full run of; {report.left_out} more are left out."]
    head = [
        "method",
        "geometric mean",
        "median",
        "90 %",
        "mean rank",
        "crashes of suggestions",
        "in all",
        "no success",
    ]
    for trial in sorted({one.trial for one in report.scores}):
        lines = [
            [
                f"`{one.method}`",
                number(one.geometric_mean),
                number(one.median),
                number(one.percentile_90),
                number(one.mean_rank, 2),
                f"{one.crashes_asked:.1%}",
                f"{one.crashes:.1%}",
                str(one.without_success),
            ]
            for one in report.scores
            if one.trial == trial
        ]
        parts += [f"### After {trial} trials", table(head, lines)]
    if report.pairings:
        parts += [f"### `{report.pairings[0].method}` against each other", _pairing_table(report.pairings)]
    parts.append(
        f"Regret over random search's at trial {REFERENCE_TRIAL} on the same draw, at least {LOWEST:g}; 1 where "
        "nothing succeeded, which in ranks and pairs is worse than any success."
    )
    return "\n\n".join(parts) + "\n"


def _pairing_table(pairings: Sequence[Pairing]) -> str:
    lines = [
        [
            str(one.trial),
            f"`{one.other}`",
            str(one.wins),
            str(one.losses),
            str(one.ties),
            number(one.ratio),
            number(one.p),
        ]
        for one in pairings
    ]
    head = ["trial", "other", "wins", "losses", "ties", "ratio of regrets", "p, sign test"]
    return table(head, lines)


def _complete(found: Mapping[str, Run], methods: Sequence[str], last: int) -> bool:
    """Whether each method has a run to the last checkpoint, and random search one that gives the unit."""
    enough = len(found.get(REFERENCE, ())) >= REFERENCE_TRIAL
    return enough and all(len(found.get(method, ())) >= last for method in methods)


def _mean_ranks(values: Mapping[str, np.ndarray]) -> dict[str, float]:
    ranks = rankdata(np.array(list(values.values())), axis=0)
    return dict(zip(values, ranks.mean(-1).tolist(), strict=True))


def _score(method: str, trial: int, values: np.ndarray, rank: float, runs: Sequence[Run]) -> Score:
    finite = counted(values)
    rows = [row for run in runs for row in run[:trial]]
    asked = [row for row in rows if row.ask_seconds is not None]
    return Score(
        method,
        trial,
        float(np.exp(np.log(finite).mean())),
        float(np.median(finite)),
        float(np.quantile(finite, 0.9)),
        rank,
        _share(asked),
        _share(rows),
        int(np.isinf(values).sum()),
    )


def _share(rows: Sequence[Row]) -> float:
    return sum(row.crashed for row in rows) / len(rows) if rows else math.nan


def _plain(one: Score | Pairing) -> dict[str, Any]:
    return {
        key: None if isinstance(value, float) and math.isnan(value) else value for key, value in asdict(one).items()
    }
