"""The dense grid the robot's results are measured against: writes `problems/pole/reference.json`.

python benchmarks/pole_grid.py            # about a minute on one core
python benchmarks/pole_grid.py --check    # compute it again and compare

Every cell is tried several times; the best of those that never failed are tried again with fresh noise, the
same for all, so that the winner's mean is not flattered by having won.
"""

import argparse
import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from crashbo.problems.pole import POLES, SAFE_GAINS, rollout
from crashbo.problems.pole.tuning import Evaluation, PoleTuning, repeat


def grid(cells: int) -> list[dict[str, float]]:
    """The centres of the cells."""
    middles = ((np.arange(cells) + 0.5) / cells).tolist()
    return [{"x1": x1, "x2": x2} for x1 in middles for x2 in middles]


def compute(cells: int, repeats: int, finalists: int, final_repeats: int, seed: int) -> dict[str, Any]:
    """Try every cell, then the best ones again."""
    tuning: PoleTuning = POLES["robot2d"].without_recovery()
    first: list[tuple[dict[str, float], Evaluation]] = [
        (params, repeat(tuning, params, range(seed, seed + repeats))) for params in grid(cells)
    ]
    stable = sorted((one for one in first if one[1].stable), key=lambda one: one[1].mean)
    fresh = range(seed + repeats, seed + repeats + final_repeats)
    final = [(params, repeat(tuning, params, fresh)) for params, _ in stable[:finalists]]
    best, value = min((one for one in final if one[1].stable), key=lambda one: one[1].mean)
    safe = [rollout(SAFE_GAINS, number, tuning.settings).cost for number in fresh]
    settings = tuning.settings
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
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=40, help="along each side")
    parser.add_argument("--repeats", type=int, default=6, help="roll-outs of every cell")
    parser.add_argument("--finalists", type=int, default=30, help="cells tried again")
    parser.add_argument("--final-repeats", type=int, default=100, help="roll-outs of each of those")
    parser.add_argument("--seed", type=int, default=1_000_000, help="far from the seeds of the runs")
    parser.add_argument("--check", action="store_true", help="compare with the stored file instead of writing it")
    options = vars(parser.parse_args())
    check = options.pop("check")
    found = compute(**options)
    path = Path(str(files("crashbo.problems.pole").joinpath("reference.json")))
    if check:
        stored = json.loads(path.read_text())
        different = {name: (stored[name], found[name]) for name in found if stored[name] != found[name]}
        print(f"different: {different}" if different else "the same as stored")
        return
    path.write_text(json.dumps(found, indent=2) + "\n")
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
