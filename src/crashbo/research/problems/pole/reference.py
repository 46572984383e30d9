"""The best of a grid over two weights, and of a random search over five; `benchmarks/pole_grid.py` computed them."""

import json
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True)
class GridReference:
    """What the grid found, and the random search over five weights.

    Attributes:
        cells: along each side; the params are the cells' centres.
        repeats: roll-outs of each cell.
        finalists: how many of the best cells were tried again.
        final_repeats: roll-outs of each finalist.
        seed: of the first roll-out of each cell.
        settings: duration and noise levels of the roll-outs.
        best: params of the best cell, among those where no roll-out failed.
        best_value, best_std: its mean cost and standard deviation over roll-outs.
        stable_share: of the cells, no roll-out failed.
        safe_value: mean cost of the safe controller.
        largest_value: the highest cost of a roll-out that did not fail.
        five: params of the best point of the random search over five weights; None without one.
        five_value, five_std: as for the best cell.
    """

    cells: int
    repeats: int
    finalists: int
    final_repeats: int
    seed: int
    settings: dict[str, float]
    best: dict[str, float]
    best_value: float
    best_std: float
    stable_share: float
    safe_value: float
    largest_value: float
    five: dict[str, float] | None
    five_value: float | None
    five_std: float | None

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return asdict(self)


@cache
def grid_reference(name: str = "robot2d") -> GridReference:
    """Return the stored reference of the robot, "robot2d", or of that of version 0.1, "robot2d-v1"."""
    return GridReference(**json.loads(files(__package__).joinpath("reference.json").read_text())[name])
