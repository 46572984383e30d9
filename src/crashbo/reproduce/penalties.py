"""The heuristic-penalty story on the simulated robot: crashes told as a fixed cost, beside CrashBO."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from crashbo.problems.pole.reference import grid_reference
from crashbo.reproduce.robot import TABLE_ROWS, Run, as_text, robot_statistics, run_once
from crashbo.reproduce.simulations import Job, side_by_side

PENALTIES = {"too low": 1.0, "about right": 10.0, "too high": 1000.0}
"""Fixed costs for crashes; good controllers cost about 1, poor ones that balance up to 50."""


def reproduce_penalties(
    *,
    runs: int,
    seed: int = 0,
    learned: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> "PenaltyReport":
    """Tune the robot in 2D without a penalty, and with each of `PENALTIES` told as the cost of a crash.

    Args:
        runs: of each.
        seed: of the first.
        learned: hyperparameters learned (the default) or the paper's fixed ones.
        progress: called with finished and total jobs.
    """
    chosen = True if learned is None else learned
    jobs: list[Job] = [
        (run_once, ("robot2d", seed + number), {"learned": chosen, "penalty": penalty})
        for number in range(runs)
        for penalty in (None, *PENALTIES.values())
    ]
    finished: list[Run] = []
    for run in side_by_side(jobs):
        finished.append(run)
        if progress is not None:
            progress(len(finished), len(jobs))
    finished.sort(key=lambda run: (run.penalty or 0.0, run.seed))
    return PenaltyReport("learned" if chosen else "fixed", finished)


@dataclass(frozen=True)
class PenaltyReport:
    """Runs without a penalty and with several."""

    hyperparameters: str
    runs: list[Run] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON: without a penalty at the top, each penalty beside it."""
        return {
            "name": "penalties",
            "hyperparameters": self.hyperparameters,
            **robot_statistics(self.of(None)),
            "penalties": {
                title: {"penalty": penalty, **robot_statistics(self.of(penalty))}
                for title, penalty in PENALTIES.items()
            },
            "reference": grid_reference().summary(),
            "runs": [asdict(run) for run in self.runs],
        }

    def words(self) -> str:
        """A table, for a person."""
        columns = {"none (GPCR)": None} | {f"{value:g}, {title}": value for title, value in PENALTIES.items()}
        found = [robot_statistics(self.of(penalty)) for penalty in columns.values()]
        rows = [
            f"robot2d: {found[0]['number_of_runs']} runs of each, hyperparameters {self.hyperparameters}.",
            f"{'penalty of a crash':38}" + "".join(f"{title:>18}" for title in columns),
        ]
        for key, text in TABLE_ROWS.items():
            rows.append(f"{text:38}" + "".join(f"{as_text(one[key]):>18}" for one in found))
        return "\n".join([*rows, f"Best of a grid: {grid_reference().best_value:.3g}."])

    def of(self, penalty: float | None) -> list[Run]:
        """The runs with a penalty; None: without any."""
        return [run for run in self.runs if run.penalty == penalty]
