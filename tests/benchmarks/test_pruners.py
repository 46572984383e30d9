"""The comparison of samplers beside pruners."""

import pytest
from benchmarks.pruners import CONTINUED, PRUNERS, STEPS, TASKS, Ran, run, table


@pytest.mark.parametrize("task", list(TASKS))
@pytest.mark.parametrize("pruner", list(PRUNERS))
def test_every_curve_and_pruner_runs(task: str, pruner: str) -> None:
    ran = run(task, pruner, "TPE", seed=1, trials=12)
    assert ran.best >= 0
    assert ran.pruned + ran.crashed < 12
    assert 12 <= ran.steps + ran.crashed <= 12 * STEPS


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = (run("noisy", "Hyperband", "TPE", seed=2, trials=10) for _ in range(2))
    assert (first.best, first.pruned, first.steps) == (second.best, second.pruned, second.steps)


def test_a_study_is_continued_by_another_sampler() -> None:
    assert run("bowl", "Median", CONTINUED, seed=0, trials=8).best >= 0


def test_the_table_has_medians() -> None:
    runs = [Ran("bowl", "Median", "TPE", seed, best, 3, 0, 100, 1.0) for seed, best in enumerate([0.1, 0.3, 0.2])]
    assert table(runs).splitlines()[-1] == "| bowl | Median | TPE | 0.2 | 0.3 | 3 | 0 | 100 |"
