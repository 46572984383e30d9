"""Many runs: what is left to do, done by several processes, each result on disk at once."""

import multiprocessing
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path

from benchmarks.suite.draws import draw_name
from benchmarks.suite.problems import find_budget
from benchmarks.suite.records import Key, Row, append_run, count_trials, drop_runs, only_writer, read_rows
from benchmarks.suite.runs import run_one
from crashbo.errors import InputError

FAILURES = "failures.log"
_RUNS_PER_PROCESS = 40  # then a fresh one, in case a library keeps memory


@dataclass(frozen=True)
class Finished:
    """A run that ended.

    Attributes:
        key: of the run.
        rows: its trials; none if it failed.
        error: the traceback if it failed.
    """

    key: Key
    rows: tuple[Row, ...] = ()
    error: str = ""


def list_jobs(names: Sequence[str], methods: Sequence[str], seeds: Sequence[int]) -> list[Key]:
    """Return all runs, seed by seed, so that a part of them already compares all methods."""
    return [(name, method, seed) for seed in seeds for name in names for method in methods]


def list_draws(numbers: Sequence[int], methods: Sequence[str]) -> list[Key]:
    """Return one run per draw and method, draw by draw; the seed is the draw's number."""
    return [(draw_name(number), method, number) for number in numbers for method in methods]


def left_to_do(folder: Path, jobs: Iterable[Key], trials: int | None = None) -> list[Key]:
    """Return the runs that are not on disk in full."""
    done = count_trials(read_rows(folder))

    def enough(key: Key) -> bool:
        budget = find_budget(key[0])
        return done.get(key, 0) >= min(budget, trials or budget)

    return [key for key in jobs if not enough(key)]


def run_jobs(
    folder: Path,
    jobs: Sequence[Key],
    *,
    workers: int = 1,
    trials: int | None = None,
    report: Callable[[Finished], None] = lambda one: None,
) -> int:
    """Do what is left to do; return how many runs failed.

    A failed run is written to `failures.log` and tried again next time. Killed at any moment, nothing is lost but the
    runs under way.

    Args:
        folder: of the results.
        jobs: to be on disk in the end.
        workers: processes at a time; 1 runs here.
        trials: fewer than the budgets, to try things out.
        report: called after every run.
    """
    with only_writer(folder):
        todo = left_to_do(folder, jobs, trials)
        drop_runs(folder, set(todo))
        failed = 0
        for finished in _in_turn(todo, trials) if workers == 1 else _side_by_side(todo, trials, workers):
            if finished.error:
                failed += 1
                with (folder / FAILURES).open("a") as handle:
                    handle.write(f"{finished.key}\n{finished.error}\n")
            else:
                append_run(folder, finished.rows)
            report(finished)
    return failed


def _in_turn(todo: Sequence[Key], trials: int | None) -> Iterator[Finished]:
    for key in todo:
        yield _attempt(key, trials)


def _side_by_side(todo: Sequence[Key], trials: int | None, workers: int) -> Iterator[Finished]:
    """Runs in several processes; new ones after some runs. (`max_tasks_per_child` may wait for ever in Python 3.11.)"""
    context, some = multiprocessing.get_context("spawn"), workers * _RUNS_PER_PROCESS
    for begin in range(0, len(todo), some):
        with ProcessPoolExecutor(workers, context, _one_thread) as pool:
            futures: list[Future[Finished]] = [pool.submit(_attempt, key, trials) for key in todo[begin : begin + some]]
            try:
                for future in as_completed(futures):
                    yield future.result()
            except BrokenProcessPool as error:
                raise InputError("`workers` must fit into memory; one was killed. Run again to go on.") from error
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


def _attempt(key: Key, trials: int | None) -> Finished:
    try:
        return Finished(key, tuple(run_one(key, trials)))
    except Exception:
        return Finished(key, error=traceback.format_exc())


def _one_thread() -> None:
    """Give each process one thread, so that processes do not slow each other down."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    import torch

    torch.set_num_threads(1)
