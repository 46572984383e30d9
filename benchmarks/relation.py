"""How often `Optimizer.crash_relation` is right, on drawn problems whose margins have a known relation to the cost.

`python -m benchmarks.relation --draws 40` prints, after 20 and 60 trials, how often the likeliest kind is the true one:
where `crash_relation` names a cause and where it says "unclear", and by how likely the kind is said to be. Trials lie
as a search leaves them: half quasi-random, half around the best so far. Every fifth problem has no margin at all: its
crashes are random.
"""

import argparse
import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.suite.draws.landscape import Landscape, make_landscape
from benchmarks.suite.problem import Problem
from crashbo import CRASHED, Optimizer
from crashbo.model.numbers import RELATED
from crashbo.problem.sobol import sobol

KINDS = ("high", "unrelated", "low", "random")
BINS = (0.0, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)


def true_kind(landscape: Landscape) -> str:
    """The relation by the correlation of the highest margin with the cost's field, over the space."""
    points = sobol(2048, landscape.recipe.dimension, 0)
    margin = landscape.margins(points).max(-1)
    correlation = float(np.corrcoef(landscape.field(points), margin)[0, 1])
    return "high" if correlation > RELATED else "low" if correlation < -RELATED else "unrelated"


def run(number: int, counts: tuple[int, ...]) -> Iterator[tuple[int, str, str, float, bool]]:
    """Trials of a draw; after each count: the true kind, the likeliest, its probability, whether it is named."""
    landscape, rng = make_landscape(number), np.random.default_rng(number)
    chance = float(rng.uniform(0.1, 0.4)) if number % 5 == 4 else 0.0
    kind = "random" if chance else true_kind(landscape)
    space = landscape.axes.space
    problem = Problem("", "", space, 1, landscape.truth, 0.0, ())
    optimizer = Optimizer(space)
    design = sobol(64, landscape.recipe.dimension, number)
    best, lowest = design[0], np.inf
    for trial in range(max(counts)):
        near = np.clip(best + 0.15 * rng.standard_normal(len(best)), 0.0, 1.0)
        share = design[trial // 2] if trial % 2 == 0 or trial < 8 else near
        params = {name: one.at(float(at)) for (name, one), at in zip(space.items(), share, strict=True)}
        cost, held = (one[0] for one in problem.truth(problem.row(params)[None]))
        crashed = rng.random() < chance if chance else not held
        optimizer.tell(params, CRASHED if crashed else float(cost))
        if not crashed and cost < lowest:
            best, lowest = share, cost
        if trial + 1 in counts and optimizer.relation is not None:
            said = {name: float(getattr(optimizer.relation, name)) for name in KINDS}
            top = max(said, key=said.__getitem__)
            yield trial + 1, kind, top, said[top], "unclear" not in optimizer.crash_relation


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--trials", type=int, nargs="+", default=[20, 60])
    chosen = parser.parse_args()
    found = []
    for number in range(chosen.first, chosen.first + chosen.draws):
        for one in run(number, tuple(chosen.trials)):
            found.append(one)
            print(number, *one, flush=True)
    for count in chosen.trials:
        for words, wanted in (("a cause is named", True), ("unclear", False)):
            right = [kind == top for n, kind, top, _, named in found if n == count and named == wanted]
            print(f"after {count} trials, {words}: {len(right)} problems, right in {_mean(right):.0%}")
        print(f"after {count} trials: said to be, problems, right")
        for low, high in itertools.pairwise(BINS):
            right = [kind == top for n, kind, top, share, _ in found if n == count and low < share <= high]
            print(f"{low:.0%} to {high:.0%}: {len(right)}, {_mean(right):.0%}")


def _mean(right: list[bool]) -> float:
    return float(np.mean(right)) if right else float("nan")


if __name__ == "__main__":
    main()
