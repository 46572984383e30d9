"""The tables, as Markdown."""

import math
from collections.abc import Iterable, Sequence

from benchmarks.suite.methods import CRASHBO, OURS, method_names
from benchmarks.suite.records import Row
from benchmarks.suite.stats import (
    Runs,
    calibrate,
    compare,
    converging,
    final_regrets,
    full_runs,
    group_runs,
    head_to_head,
    holm,
    mean_crashes,
    mean_ranks,
    median,
    median_ask,
    peers,
    quartiles,
    regret_at,
)

_CHECKPOINTS = (20, 50, None)


def render(rows: Sequence[Row]) -> str:
    """Return all tables: overview, paired comparison, problem by problem, calibration."""
    rows, short = full_runs(rows)
    runs = _in_order(group_runs(rows))
    parts = ["## Overview", overview(runs)]
    if short:
        parts.append(f"{short} runs with fewer trials than others of the same problem are left out.")
    if any(CRASHBO in problem for problem in runs.values()):
        parts += ["## CrashBO and the best peer", paired(runs), "## CrashBO and every peer", run_by_run(runs)]
    parts += ["## Problem by problem", details(runs), "## Calibration", calibration(rows)]
    return "\n\n".join(parts) + "\n"


def overview(runs: Runs) -> str:
    """Return a line per method: mean rank, crashes, time, and how often nothing succeeded."""
    order, shared = mean_ranks(runs)
    lines = []
    for method in sorted(_methods(runs), key=lambda name: order.get(name, math.inf)):
        mine = [problem[method] for problem in runs.values() if method in problem]
        flat = [run for seeds in mine for run in seeds.values()]
        trials = sum(len(run) for run in flat)
        crashes = sum(row.crashed for run in flat for row in run)
        lines.append(
            [
                f"`{method}`",
                number(order.get(method, math.nan), 2),
                f"{crashes / trials:.1%}",
                str(sum(math.isinf(regret_at(run)) for run in flat)),
                number(1e3 * median_ask(flat), 1),
                number(1e3 * median_ask(flat, cpu=True), 1),
                str(len(flat)),
            ]
        )
    head = ["method", "mean rank", "crashed trials", "runs without success", "ask, ms", "ask, CPU ms", "runs"]
    note = (
        f"Mean rank in median regret at the end, over the {len(shared)} problems that all methods here have runs of; "
        "1 is best, ties averaged. Times are medians over suggestions."
    )
    return table(head, lines) + "\n\n" + note


def details(runs: Runs) -> str:
    """Return a table per problem: regret at 20, 50 and the end, crashes, time of a suggestion."""
    parts = []
    head = ["method", "regret at 20", "at 50", "at the end", "crashes", "ask, ms", "seeds"]
    for name, problem in runs.items():
        lines = []
        for method, seeds in problem.items():
            cells = [_spread([regret_at(run, trial) for run in seeds.values()]) for trial in _CHECKPOINTS]
            ask = number(1e3 * median_ask(seeds.values()), 1)
            lines.append([f"`{method}`", *cells, f"{mean_crashes(seeds):.1f}", ask, str(len(seeds))])
        trials = max(len(run) for seeds in problem.values() for run in seeds.values())
        parts.append(f"### {name}, {trials} trials\n\n{table(head, lines)}")
    return "\n\n".join(parts) + "\n\nMedian [quartiles] of simple regret over seeds; mean crashes."


def paired(runs: Runs, mine: str = CRASHBO) -> str:
    """Return a line per problem: ours against the best peer in regret, and the safest that converges in crashes."""
    lines, ps = [], []
    for name, problem in runs.items():
        others = peers(problem)
        if mine not in problem or not others:
            continue
        best = others[0]
        result = compare(problem[mine], problem[best], best)
        safe = min(converging(problem), key=lambda one: mean_crashes(problem[one]), default=None)
        ends = [median(list(final_regrets(problem[method]).values())) for method in (mine, best)]
        ps.append(result.p)
        lines.append(
            [
                name,
                number(ends[0]),
                f"`{best}` {number(ends[1])}",
                f"{result.p:.3g}",
                f"**{result.verdict}**" if result.verdict != "same" else "same",
                f"{mean_crashes(problem[mine]):.1f}",
                "none" if safe is None else f"`{safe}` {mean_crashes(problem[safe]):.1f}",
                str(result.seeds),
            ]
        )
    for line, corrected in zip(lines, holm(ps), strict=True):
        line.insert(4, f"{corrected:.3g}")
    head = [
        "problem",
        "regret",
        "best peer",
        "p",
        "p, Holm",
        "verdict",
        "crashes",
        "safest peer that converges",
        "seeds",
    ]
    note = (
        "Median regret at the end; p of the two-sided Wilcoxon signed-rank test on regrets paired by seed, alone and "
        "corrected for the number of problems after Holm; the verdict on CrashBO is that of the test alone. "
        "A peer converges if it is not significantly "
        "worse than the best peer and its median run succeeds."
    )
    return table(head, lines) + "\n\n" + note


def run_by_run(runs: Runs, mine: str = CRASHBO) -> str:
    """Return a line per peer: how often ours ends lower on the same problem and seed, and the crashes of both."""
    lines = []
    for method in _methods(runs):
        found = head_to_head(runs, mine, method) if method not in OURS else None
        if found is not None:
            crashes = [f"{one:.1f}" for one in found.crashes]
            lines.append([f"`{method}`", str(found.pairs), str(found.lower), f"{found.p:.1g}", *crashes])
    head = ["peer", "pairs", "CrashBO's regret is lower in", "p", "crashes per run", "the peer's"]
    note = "Runs on the same problem with the same seed; p of the two-sided sign test."
    return table(head, lines) + "\n\n" + note


def calibration(rows: Iterable[Row], *, first: int = 20) -> str:
    """Return a line per method that predicts success: its calibration error, and the share that succeeded by bin."""
    listed = list(rows)
    lines = []
    for method in _methods(group_runs(listed)):
        found = calibrate([row for row in listed if row.method == method], first=first)
        if found.count:
            cells = [f"{rate:.2f} ({count})" if count else "" for count, _, rate in found.bins]
            lines.append([f"`{method}`", f"{found.error:.3f}", str(found.count), *cells])
    edges = [f"{index / 10:.1f} to {(index + 1) / 10:.1f}" for index in range(10)]
    note = (
        f"Expected calibration error over ten bins, trials {first} and later; per bin of the predicted success "
        "probability the share that succeeded (and how many)."
    )
    return table(["method", "error", "trials", *edges], lines) + "\n\n" + note


def calibration_by_problem(rows: Iterable[Row], *, first: int = 20) -> str:
    """Return the calibration error of each method that predicts success, problem by problem."""
    listed = list(rows)
    methods = [name for name in _methods(group_runs(listed)) if _errors(listed, name, None, first)]
    lines = [
        [problem, *[_errors(listed, method, problem, first) for method in methods]]
        for problem in dict.fromkeys(row.problem for row in listed)
    ]
    return table(["problem", *[f"`{method}`" for method in methods]], lines)


def _errors(rows: Sequence[Row], method: str, problem: str | None, first: int) -> str:
    mine = [row for row in rows if row.method == method and problem in (None, row.problem)]
    found = calibrate(mine, first=first)
    return f"{found.error:.3f}" if found.count else ""


def _in_order(runs: Runs) -> Runs:
    """Problems and methods in the order of the suite."""
    from benchmarks.suite.problems import problems

    known = [name for name in problems() if name in runs] + [name for name in runs if name not in problems()]
    return {
        name: {method: dict(sorted(runs[name][method].items())) for method in _methods({name: runs[name]})}
        for name in known
    }


def _methods(runs: Runs) -> list[str]:
    found = {method for problem in runs.values() for method in problem}
    return [name for name in method_names() if name in found] + sorted(found - set(method_names()))


def _spread(values: Sequence[float]) -> str:
    middle, low, high = quartiles(values)
    return f"{number(middle)} [{number(low)}, {number(high)}]"


def number(value: float, digits: int | None = None) -> str:
    """Return a number as a cell: three digits, or so many behind the point; "none" for infinity, empty for NaN."""
    if not math.isfinite(value):
        return "none" if math.isinf(value) else ""
    return f"{value:.3g}" if digits is None else f"{value:.{digits}f}"


def table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    rule = ["---"] * len(head)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *lines])
