"""Speed of the simulated robot: steps per second and time of a roll-out of 20 simulated seconds.

python benchmarks/pole.py [--json]
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from crashbo.research.problems.pole import SAFE_GAINS, Settings, rollout
from crashbo.research.problems.pole.compiled import COMPILED
from crashbo.research.problems.pole.mujoco import mujoco_rollout


def seconds(run: Callable[[int], Any], repeats: int) -> float:
    """Median CPU seconds of a call, after one that warms up."""
    run(0)
    times = []
    for number in range(1, repeats + 1):
        begin = time.process_time()
        run(number)
        times.append(time.process_time() - begin)
    return statistics.median(times)


def row(name: str, run: Callable[[int], Any], repeats: int) -> dict[str, Any]:
    """Figures of one robot."""
    spent = seconds(run, repeats)
    return {"robot": name, "rollout_ms": 1e3 * spent, "steps_per_second": Settings().steps / spent}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    begin = time.process_time()
    first = rollout(SAFE_GAINS, 7)
    ready = time.process_time() - begin
    same = rollout(SAFE_GAINS, 7).cost == first.cost
    rows = [row("simulation", lambda seed: rollout(SAFE_GAINS, seed), 50)]
    try:
        rows.append(row("mujoco", lambda seed: mujoco_rollout(SAFE_GAINS, seed), 3))
    except ValueError as error:
        print(f"left out: {error}")
    if arguments.json:
        print(
            json.dumps({"compiled": COMPILED, "first_call_s": ready, "repeats_exactly": same, "rows": rows}, indent=2)
        )
        return
    print(f"{'robot':12}{'roll-out ms':>14}{'steps per second':>19}")
    for one in rows:
        print(f"{one['robot']:12}{one['rollout_ms']:14.2f}{one['steps_per_second']:19,.0f}")
    print(f"compiled: {COMPILED}; first call {ready:.1f} s (compiling, or loading what was compiled)")
    print(f"the same seed again gave {'the same' if same else 'ANOTHER'} cost")


if __name__ == "__main__":
    main()
