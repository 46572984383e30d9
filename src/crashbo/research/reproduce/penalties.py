"""The heuristic-penalty story on the simulated robot: crashes told as a fixed cost, beside crashes told as such."""

from dataclasses import asdict, dataclass, field
from typing import Any

from crashbo.research.problems.pole.reference import grid_reference
from crashbo.research.reproduce.jobs import Job, Progress, counted, side_by_side
from crashbo.research.reproduce.methods import METHODS, PaperSettings, methods_of, table
from crashbo.research.reproduce.robot import TABLE_ROWS, Run, robot_statistics, run_once

PENALTIES = {"too low": 1.0, "about right": 10.0, "too high": 1000.0}
"""Fixed costs for crashes; good controllers cost 0.75, half of those that balance more than 1.6, poor ones up to 16."""


def reproduce_penalties(
    *,
    runs: int,
    seed: int = 1000,
    strategy: str = "both",
    paper: PaperSettings | None = None,
    progress: Progress | None = None,
) -> "PenaltyReport":
    """Tune the robot in 2D without a penalty, and with each of `PENALTIES` told as the cost of a crash.

    Args:
        runs: of each.
        seed: of the first.
        strategy: "paper", "default" or "both".
        paper: how the paper's strategy is run.
        progress: called with finished and total jobs.
    """
    paper = paper or PaperSettings()
    jobs: list[Job] = [
        (run_once, ("robot2d", seed + number), {"method": method, "paper": paper, "penalty": penalty})
        for number in range(runs)
        for method in methods_of(strategy)
        if method != "random"
        for penalty in (None, *PENALTIES.values())
    ]
    finished: list[Run] = counted(side_by_side(jobs), len(jobs), progress)
    order = list(METHODS)
    finished.sort(key=lambda run: (order.index(run.method), run.penalty or 0.0, run.seed))
    return PenaltyReport(paper.words, finished)


@dataclass(frozen=True)
class PenaltyReport:
    """Runs without a penalty and with several.

    Attributes:
        paper: how the paper's strategy was run, in words.
        runs: of all methods and penalties.
    """

    paper: str
    runs: list[Run] = field(default_factory=list)

    @property
    def methods(self) -> list[str]:
        """Those that were run."""
        return [method for method in METHODS if any(run.method == method for run in self.runs)]

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON: per method without a penalty, and with each."""
        return {
            "name": "penalties",
            "paper": self.paper,
            "methods": {
                method: {
                    "none": robot_statistics(self.of(None, method)),
                    "penalties": {
                        title: {"penalty": penalty, **robot_statistics(self.of(penalty, method))}
                        for title, penalty in PENALTIES.items()
                    },
                }
                for method in self.methods
            },
            "reference": grid_reference().summary(),
            "runs": [asdict(run) for run in self.runs],
        }

    def words(self) -> str:
        """A table per method, for a person."""
        titles = {"none": None} | {f"{value:g}, {title}": value for title, value in PENALTIES.items()}
        parts = []
        for method in self.methods:
            columns = {title: robot_statistics(self.of(penalty, method)) for title, penalty in titles.items()}
            count = len(self.of(None, method))
            parts.append(f"robot2d, {METHODS[method]}, {count} runs of each penalty of a crash.")
            parts += table(columns, TABLE_ROWS)
        return "\n".join([*parts, f"Paper's method: {self.paper}. Best of a grid: {grid_reference().best_value:.3g}."])

    def of(self, penalty: float | None, method: str) -> list[Run]:
        """The runs of a method with a penalty; None: without any."""
        return [run for run in self.runs if run.penalty == penalty and run.method == method]
