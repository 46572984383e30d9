"""What runs beside what: the paper's strategy, the default, random search; and what all of them report."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crashbo.errors import InputError
from crashbo.optimizer import Optimizer
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.options import FixedModel, Options
from crashbo.problem.outcome import Constraint
from crashbo.problem.space import Space

Strategies = Literal["paper", "default", "both"]
METHODS = {"paper": "paper's method", "default": "default", "random": "random search"}


def methods_of(strategy: str) -> tuple[str, ...]:
    """The methods to run for `--strategy`, random search beside them."""
    if strategy not in ("paper", "default", "both"):
        raise InputError(f"`strategy` must be 'paper', 'default' or 'both'; got {strategy!r}.")
    return (*(("paper", "default") if strategy == "both" else (strategy,)), "random")


@dataclass(frozen=True)
class PaperSettings:
    """How the paper's strategy is run.

    Attributes:
        learned: learn hyperparameters instead of fixing them as the paper does.
        sampler: of the minimum, "virtual" as in the paper or "pathwise".
        starts: random points at the lowest of which a virtual sample's local search begins; the paper prints 1.
    """

    learned: bool = False
    sampler: str = "virtual"
    starts: int = 200

    @property
    def words(self) -> str:
        """For people."""
        which = "learned" if self.learned else "fixed"
        minima = "pathwise minima" if self.sampler == "pathwise" else f"virtual evaluations, starts: {self.starts}"
        return f"hyperparameters {which}, {minima}"

    def options(self, fixed: Mapping[str, FixedModel]) -> Options:
        """One random point first, the paper's delta."""
        used = {} if self.learned else dict(fixed)
        return Options(initial=1, random_start=True, delta=0.05, fixed=used, sampler=self.sampler, starts=self.starts)


def make_optimizer(
    space: Space,
    constraints: Sequence[Constraint],
    seed: int,
    method: str,
    fixed: Mapping[str, FixedModel],
    paper: PaperSettings | None = None,
) -> Optimizer:
    """The optimizer of a method. Random search has the paper's models, for its best guess.

    Args:
        space, constraints, seed: of the optimizer.
        method: in `METHODS`.
        fixed: the paper's hyperparameters by output.
        paper: how the paper's strategy is run.
    """
    if method not in METHODS:
        raise InputError(f"`method` must be one of {', '.join(METHODS)}; got {method!r}.")
    if method == "default":
        return Optimizer(space, constraints=constraints, seed=seed)
    options = (paper or PaperSettings()).options(fixed)
    return Optimizer(space, constraints=constraints, seed=seed, strategy="paper", options=options)


@dataclass
class LimitCurves:
    """The limits as the strategy reports them, after every trial; None where it reports none."""

    outputs: tuple[str, ...]
    values: dict[str, list[float | None]]
    deviations: dict[str, list[float | None]]

    @classmethod
    def of(cls, constraints: Iterable[str]) -> "LimitCurves":
        """Without any yet."""
        outputs = (OBJECTIVE, *constraints)
        return cls(outputs, {one: [] for one in outputs}, {one: [] for one in outputs})

    def add(self, optimizer: Optimizer) -> None:
        """Look at the optimizer's limits now."""
        found = optimizer.limits
        for one in self.outputs:
            self.values[one].append(found[one].value if one in found else None)
            self.deviations[one].append(found[one].deviation if one in found else None)


def final_limits(optimizer: Optimizer) -> dict[str, dict[str, float]]:
    """Value, deviation and likely range of all limits, ready for JSON."""
    return {
        name: {"value": one.value, "deviation": one.deviation, "low": one.interval[0], "high": one.interval[1]}
        for name, one in optimizer.limits.items()
    }


def limit_statistics(runs: Sequence[Any], true: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """Per output: mean and deviation of the limits over runs, mean of the deviations stated, and in how many runs.

    Where the true limit is known, also in how many runs it lies within the range stated, that of 95 % probability.
    """
    found = {}
    for name in sorted({name for run in runs for name in run.limits}):
        limits = [run.limits[name] for run in runs if name in run.limits]
        stated = statistics.mean(one["deviation"] for one in limits)
        found[name] = {**spread([one["value"] for one in limits]), "stated_deviation": stated, "runs": len(limits)}
        if name in true:
            found[name]["covering"] = sum(one["low"] <= true[name] <= one["high"] for one in limits)
    return found


def spread(values: Sequence[float]) -> dict[str, float]:
    """Mean and standard deviation; 0 for one value."""
    return {"mean": statistics.mean(values), "std": deviation(values)}


def deviation(values: Sequence[float]) -> float:
    """Standard deviation; 0 for one value."""
    return statistics.stdev(values) if len(values) > 1 else 0.0


def standard_error(values: Sequence[float]) -> float:
    """Of the mean; 0 for one value."""
    return deviation(values) / len(values) ** 0.5


def as_text(value: float | None) -> str:
    """Four digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def table(columns: Mapping[str, Mapping[str, Any]], rows: Mapping[str, str], width: int = 38) -> list[str]:
    """Lines of a table for people.

    Args:
        columns: numbers by key, by title.
        rows: key and text of each row.
        width: of the texts.
    """
    lines = [" " * width + "".join(f"{title:>18}" for title in columns)]
    lines += [
        f"{text:{width}}" + "".join(f"{as_text(one[key]):>18}" for one in columns.values())
        for key, text in rows.items()
    ]
    return lines


def limit_lines(columns: Mapping[str, Mapping[str, Any]], true: Mapping[str, float], word: str = "true") -> list[str]:
    """What each method says about the limits, for people."""
    lines = []
    for title, one in columns.items():
        for name, limit in one["limits"].items():
            within = f", within the stated range in {limit['covering']} runs" if name in true else ""
            truth = f"; {word} {true[name]:g}{within}" if name in true else ""
            lines.append(
                f"Limit of {name}, {title}: {limit['mean']:.4g} ± {limit['std']:.2g} over {limit['runs']} runs, each "
                f"stated to ± {limit['stated_deviation']:.2g}{truth}."
            )
    return lines
