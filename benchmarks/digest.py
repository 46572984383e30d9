"""Fingerprints of whole runs: equal before and after a change that only moves code, on the same machine.

    python -m benchmarks.digest [--only NAME] [--out FILE] [--against FILE]

Prints a hash per run, made of every suggestion, its reason and the best guess, to the last bit. `--against` compares
with a file that `--out` wrote and exits with 1 if any run differs.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import crashbo
from crashbo import CRASHED, VIOLATED, Categorical, Constraint, Float, Int, Options

Outcome = tuple[Any, dict[str, Any]]  # cost or label, constraints and reason by name

LINE = {"x": (0.0, 1.0)}
SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
FOUR = dict.fromkeys("abcd", (0.0, 1.0))
MIXED = {
    "x": (0.0, 1.0),
    "rate": Float(1e-3, 1.0, log=True),
    "order": Int(1, 8),
    "kind": Categorical(["slow", "fast", "odd"]),
}
GRID = {"n": Int(1, 9), "m": Int(1, 64, log=True), "step": Float(0.0, 1.0, step=0.25)}


@dataclass(frozen=True)
class Run:
    """One run to take a fingerprint of."""

    space: Any
    rollout: Callable[[Mapping[str, Any], int], Outcome]
    trials: int = 14
    batch: int = 1
    settings: Mapping[str, Any] = field(default_factory=dict)


def numbers(params: Mapping[str, Any]) -> list[float]:
    """Params as numbers of about 0 to 1, whatever they are."""
    found = []
    for name, value in params.items():
        if isinstance(value, str):
            found.append(len(value) / 4)
        else:
            found.append({"order": 8, "n": 9, "m": 64}.get(name, 1) ** -1 * float(value))
    return found


def bowl(params: Mapping[str, Any]) -> float:
    """A bowl whose minimum differs by coordinate."""
    return sum((one - 0.35 - 0.1 * i) ** 2 for i, one in enumerate(numbers(params)))


def far(params: Mapping[str, Any], trial: int, *, edge: float = 0.6, above: bool = True) -> Outcome:
    """Crashes beyond a plane."""
    share = sum(numbers(params)) / len(params)
    return (CRASHED if (share > edge) == above else bowl(params), {})


def high(params: Mapping[str, Any], trial: int) -> Outcome:
    """Crashes where the cost is high, with noise."""
    cost = 3 * bowl(params) + 0.01 * math.sin(1e3 * trial)
    return (CRASHED if cost > 0.7 else cost, {})


def at_random(params: Mapping[str, Any], trial: int) -> Outcome:
    """Crashes every fourth time, wherever."""
    return (CRASHED if trial % 4 == 1 else bowl(params), {})


def named(params: Mapping[str, Any], trial: int) -> Outcome:
    """Crashes of two reasons with places of their own."""
    first, *others = numbers(params)
    if first > 0.7:
        return CRASHED, {"reason": "fell"}
    return (CRASHED, {"reason": "stalled"}) if others[0] < 0.25 else (bowl(params), {})


def limited(params: Mapping[str, Any], trial: int, *, names: tuple[str, ...] = ("g",), seen: bool = False) -> Outcome:
    """Constraints whose value is seen below their limit alone, or always."""
    values = {name: sum(numbers(params)) / (2 + i) for i, name in enumerate(names)}
    told = {name: VIOLATED if value > 0.5 and not seen else value for name, value in values.items()}
    return (CRASHED if numbers(params)[0] > 0.8 else bowl(params), told)


def never(params: Mapping[str, Any], trial: int) -> Outcome:
    """No crash at all."""
    return bowl(params), {}


def late(params: Mapping[str, Any], trial: int) -> Outcome:
    """Everything crashes at first."""
    return (CRASHED if trial < 6 else bowl(params), {})


def runs() -> dict[str, Run]:
    """All runs, by name."""
    constrained = crashbo.Space(SQUARE, constraints=["x + y <= 1.4"])
    unknown, known = {"constraints": ["g"]}, {"constraints": [Constraint("g", 0.5)]}
    several = {"constraints": ["g", Constraint("h", 0.4)]}
    paper = {"strategy": "paper"}
    pathwise = Options(sampler="pathwise", samples=4)
    fixed = Options(fixed={"objective": crashbo.FixedModel(0.2, 1.0)}, samples=4, starts=20)
    low = partial(far, above=False, edge=0.35)
    return {
        "line": Run(LINE, far),
        "line-none-crash": Run(LINE, never),
        "square": Run(SQUARE, far, 20),
        "square-long": Run(SQUARE, high, 32),
        "square-low": Run(SQUARE, low),
        "square-random": Run(SQUARE, at_random, 20),
        "square-late": Run(SQUARE, late),
        "square-reasons": Run(SQUARE, named, 24),
        "square-batch": Run(SQUARE, far, 16, 4),
        "square-constraint": Run(SQUARE, limited, settings=unknown),
        "square-known": Run(SQUARE, partial(limited, seen=True), settings=known),
        "square-two-constraints": Run(SQUARE, partial(limited, names=("g", "h")), settings=several),
        "square-region": Run(constrained, far),
        "square-maximise": Run(SQUARE, far, settings={"direction": "maximize"}),
        "square-careful": Run(SQUARE, far, settings={"options": Options(risk=0.05)}),
        "square-bold": Run(SQUARE, far, settings={"options": Options(risk=1.0)}),
        "square-budget": Run(SQUARE, far, settings={"options": Options(crash_budget=2, n_trials=14)}),
        "square-n-trials": Run(SQUARE, far, settings={"options": Options(n_trials=14)}),
        "square-absorb": Run(SQUARE, high, settings={"options": Options(crashes="absorb")}),
        "square-separate": Run(SQUARE, far, settings={"options": Options(crashes="separate")}),
        "square-given": Run(SQUARE, far, settings={"initial_points": [{"x": 0.2, "y": 0.3}]}),
        "four": Run(FOUR, far, 18),
        "mixed": Run(MIXED, high, 18),
        "mixed-batch": Run(MIXED, far, 18, 3),
        "grid": Run(GRID, far, 18),
        "paper-line": Run(LINE, far, 8, settings=paper | {"options": pathwise}),
        "paper-square": Run(SQUARE, high, 10, settings=paper | {"options": pathwise}),
        "paper-virtual": Run(LINE, high, 8, settings=paper | {"options": fixed}),
        "paper-constraint": Run(SQUARE, limited, 8, settings=paper | unknown | {"options": pathwise}),
        "paper-mixed": Run(MIXED, far, 8, 2, settings=paper | {"options": pathwise}),
    }


def fingerprint(run: Run) -> str:
    """Hash of all that a run suggests and guesses."""
    optimizer, seen = crashbo.Optimizer(run.space, seed=5, **run.settings), hashlib.sha256()
    trial = 0
    while trial < run.trials:
        asked = optimizer.ask(min(run.batch, run.trials - trial))
        for one in asked:
            seen.update(repr((dict(one), one.why.mode, one.why.value, one.why.success_probability)).encode())
        for one in reversed(asked):
            cost, more = run.rollout(one, trial)
            optimizer.tell(one, cost, **more)
            trial += 1
    best, relation = optimizer.best(), optimizer.relation
    seen.update(repr((best.params, best.mean, best.std, best.success_probability, best.feasible)).encode())
    seen.update(
        repr({name: (one.value, one.deviation, *one.interval) for name, one in optimizer.limits.items()}).encode()
    )
    seen.update(repr(relation and (relation.high, relation.unrelated, relation.low, relation.rate)).encode())
    return seen.hexdigest()[:16]


def main() -> None:
    """Print the fingerprints, and compare them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", help="runs whose name has this in it")
    parser.add_argument("--out", type=Path, help="file to write the fingerprints to")
    parser.add_argument("--against", type=Path, help="file to compare with")
    wanted = parser.parse_args()
    before = json.loads(wanted.against.read_text()) if wanted.against else {}
    found, changed = {}, []
    for name, run in runs().items():
        if wanted.only and wanted.only not in name:
            continue
        found[name] = fingerprint(run)
        differs = bool(before) and before.get(name) != found[name]
        changed += [name] * differs
        print(f"{found[name]}  {name}{'  CHANGED' * differs}", flush=True)
    if wanted.out:
        wanted.out.write_text(json.dumps(found, indent=1) + "\n")
    if changed:
        sys.exit(f"{len(changed)} of {len(found)} runs changed: {', '.join(changed)}")


if __name__ == "__main__":
    main()
