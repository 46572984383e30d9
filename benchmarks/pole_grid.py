"""What the robot's results are measured against: writes `problems/pole/reference.json`.

python benchmarks/pole_grid.py            # about two minutes on one core
python benchmarks/pole_grid.py --check    # compute it again and compare

Two weights: every cell of a dense grid is tried several times; the best of those that never failed are tried again
with fresh noise, the same for all, so that the winner's mean is not flattered by having won. Five weights: random
points, then random steps of shrinking width from the best of them and from the best cell; the end is tried again with
the same fresh noise. `--robot robot2d-v1` is the robot of version 0.1, without the five weights.
"""

import argparse
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from crashbo.research.problems.pole import POLES, rollout
from crashbo.research.problems.pole.tuning import Evaluation, PoleTuning, repeat

_POINTS, _STEPS, _TRIES = 2000, 1000, 3


def grid(cells: int) -> list[dict[str, float]]:
    """The centres of the cells."""
    middles = ((np.arange(cells) + 0.5) / cells).tolist()
    return [{"x1": x1, "x2": x2} for x1 in middles for x2 in middles]


def compute(robot: str, cells: int, repeats: int, finalists: int, final_repeats: int, seed: int) -> dict[str, Any]:
    """Try every cell, then the best ones again."""
    tuning: PoleTuning = POLES[robot].without_recovery()
    first: list[tuple[dict[str, float], Evaluation]] = [
        (params, repeat(tuning, params, range(seed, seed + repeats))) for params in grid(cells)
    ]
    stable = sorted((one for one in first if one[1].stable), key=lambda one: one[1].mean)
    fresh = range(seed + repeats, seed + repeats + final_repeats)
    final = [(params, repeat(tuning, params, fresh)) for params, _ in stable[:finalists]]
    best, value = min((one for one in final if one[1].stable), key=lambda one: one[1].mean)
    settings = tuning.settings
    safe = [rollout(settings.safe_gains, number, settings).cost for number in fresh]
    five, five_again = _five(best, seed, fresh) if robot == "robot2d" else (None, None)
    return {
        "cells": cells,
        "repeats": repeats,
        "finalists": finalists,
        "final_repeats": final_repeats,
        "seed": seed,
        "settings": {name: getattr(settings, name) for name in ("duration", "process_noise", "sensor_noise")},
        "best": best,
        "best_value": value.mean,
        "best_std": value.std,
        "stable_share": len(stable) / len(first),
        "safe_value": float(np.mean([cost for cost in safe if cost is not None])),
        "largest_value": max(max(one.costs) for _, one in first if one.costs),
        "five": five,
        "five_value": None if five_again is None else five_again.mean,
        "five_std": None if five_again is None else five_again.std,
    }


def _five(best: dict[str, float], seed: int, fresh: range) -> tuple[dict[str, float], Evaluation]:
    """The best point of a random search over five weights, and what it costs with fresh noise."""
    tuning, rng = POLES["robot5d"].without_recovery(), np.random.default_rng(seed)
    names = tuning.space.names

    def cost(x: Any) -> float:
        again = repeat(tuning, dict(zip(names, x.tolist(), strict=True)), range(seed, seed + _TRIES))
        return again.mean if again.stable else np.inf

    points = rng.random((_POINTS, 5))
    starts = [np.array([0.5, best["x1"], 0.5, 0.5, best["x2"]]), min(points, key=cost)]
    ends = [_steps(start, cost, rng) for start in starts]
    found = dict(zip(names, min(ends, key=cost).tolist(), strict=True))
    again = repeat(tuning, found, fresh)
    assert again.stable
    return found, again


def _steps(x: Any, cost: Any, rng: np.random.Generator) -> Any:
    """Improve a point by random steps, wider after a success and narrower after a failure."""
    value, width = cost(x), 0.15
    for _ in range(_STEPS):
        tried = np.clip(x + width * rng.standard_normal(5) * (rng.random(5) < 0.6), 0, 1)
        if (now := cost(tried)) < value:
            x, value, width = tried, now, min(0.3, 1.5 * width)
        else:
            width = max(0.005, 0.97 * width)
    return x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", choices=("robot2d", "robot2d-v1"), default="robot2d")
    parser.add_argument("--cells", type=int, default=40, help="along each side")
    parser.add_argument("--repeats", type=int, default=6, help="roll-outs of every cell")
    parser.add_argument("--finalists", type=int, default=30, help="cells tried again")
    parser.add_argument("--final-repeats", type=int, default=100, help="roll-outs of each of those")
    parser.add_argument("--seed", type=int, default=1_000_000, help="far from the seeds of the runs")
    parser.add_argument("--check", action="store_true", help="compare with the stored file instead of writing it")
    options = vars(parser.parse_args())
    check = options.pop("check")
    found = compute(**options)
    path = Path(str(files("crashbo.research.problems.pole").joinpath("reference.json")))
    stored = json.loads(path.read_text())
    if check:
        before = stored[options["robot"]]
        different = {name: (before[name], found[name]) for name in found if before[name] != found[name]}
        print(f"different: {different}" if different else "the same as stored")
        return
    path.write_text(json.dumps(stored | {options["robot"]: found}, indent=2, sort_keys=True) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
