"""What the commands of the command line cost, beside version 0.1.0 on the same study in the same run.

    python benchmarks/commands.py [--runs 10] [--commands ask tell best help] [--json]

Version 0.1.0 is taken from `.venv-v010` (`make v010`); without it this version is timed alone. Both read copies of
the same two studies of 30 imported trials, without and with a constraint of unknown limit, and take turns. Printed are
least and median seconds of wall-clock and of processor time (user and system), one BLAS thread. On a machine that does
other things as well, compare processor times. A first round warms up: it also lets Python keep its bytecode, which an
installed package always has.
"""

import argparse
import csv
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import crashbo

TRIALS = 30
FORMER = Path(__file__).parents[1] / ".venv-v010" / "bin" / "python"
START = "import sys; from crashbo.cli import main; sys.argv[0] = 'crashbo'; main()"
WORDS = {
    "ask": ["ask"],
    "tell": ["tell", "0.5", "x=0.5", "y=0.5", "--params"],
    "best": ["best"],
    "help": ["--help"],
}
Times = list[tuple[float, float]]


def programs(former: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """The Python of each version, and its environment."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "CRASHBO"))} | one_thread
    here = str(Path(crashbo.__file__).parents[1])
    found = {"this version": (sys.executable, kept | {"PYTHONPATH": here})}
    return found | ({"0.1.0": (str(former), kept)} if former.exists() else {})


def make_study(folder: Path, program: tuple[str, dict[str, str]], *, constrained: bool) -> Path:
    """A study of 30 trials, some of them crashed."""
    X = np.random.default_rng(0).random((TRIALS, 2))
    cost = np.square(X - 0.6).sum(-1) + 0.3 * np.sin(6 * X).sum(-1)
    margin = np.cos(3 * X).sum(-1) - 0.6 * 2**0.5
    name = "constrained" if constrained else "plain"
    table, file = folder / f"{name}.csv", folder / f"{name}.db"
    with table.open("w", newline="") as handle:
        rows = csv.writer(handle)
        rows.writerow(["x", "y", "objective", *(["g"] if constrained else [])])
        for point, y, g in zip(X.tolist(), cost.tolist(), margin.tolist(), strict=True):
            crashed = g > (0.3 if constrained else 0.0)
            rows.writerow([*point, "" if crashed else y, *(["violated" if g > 0 else g] if constrained else [])])
    more = ["--constraint", "g"] if constrained else []
    call(program, ["new", "--float", "x", "0", "1", "--float", "y", "0", "1", *more, "--storage", str(file)])
    call(program, ["import", str(table), "--storage", str(file)])
    return file


def call(program: tuple[str, dict[str, str]], words: list[str]) -> tuple[float, float]:
    """Run a command; seconds on the clock and of the processor."""
    python, environment = program
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([python, "-c", START, *words], env=environment, check=True, stdout=subprocess.DEVNULL)
    wall, after = time.perf_counter() - begin, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare(
    name: str, study: Path | None, versions: dict[str, tuple[str, dict[str, str]]], runs: int
) -> dict[str, Times]:
    """Times of a command by version, in turn; every one gets a fresh copy of the study."""
    times: dict[str, Times] = {version: [] for version in versions}
    for nth in range(runs + 1):
        for version, program in versions.items():
            words = list(WORDS[name])
            if study is not None:
                words += ["--storage", shutil.copy(study, study.with_suffix(".copy.db"))]
            if study is not None and study.stem == "constrained" and name == "tell":
                words.append("g=-0.1")
            found = call(program, words)
            if nth:  # the first round warms up
                times[version].append(found)
    return times


def summary(times: Times) -> dict[str, float]:
    """Least and median times."""
    wall, processor = zip(*times, strict=True)
    return {
        "wall_least": min(wall),
        "wall_median": statistics.median(wall),
        "processor_least": min(processor),
        "processor_median": statistics.median(processor),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10, help="of each version and command")
    parser.add_argument("--commands", nargs="+", choices=list(WORDS), default=list(WORDS))
    parser.add_argument("--former", type=Path, default=FORMER, help="the Python that has version 0.1.0")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    versions = programs(arguments.former)
    rows = []
    if not arguments.json:
        heads = f"{'wall s: least':>14}{'median':>8}{'cpu s: least':>14}{'median':>8}"
        print(f"{'command':<9}{'study':<13}{'version':<14}{heads}")
    with tempfile.TemporaryDirectory() as folder:
        oldest = list(versions.values())[-1]  # later versions open its studies
        studies = [make_study(Path(folder), oldest, constrained=one) for one in (False, True)]
        for name in arguments.commands:
            for study in [None] if name == "help" else studies:
                where = "" if study is None else study.stem
                for version, times in compare(name, study, versions, arguments.runs).items():
                    figures = summary(times)
                    rows.append({"command": name, "study": where, "version": version, **figures})
                    if not arguments.json:
                        wall = f"{figures['wall_least']:14.3f}{figures['wall_median']:8.3f}"
                        processor = f"{figures['processor_least']:14.3f}{figures['processor_median']:8.3f}"
                        print(f"{name:<9}{where:<13}{version:<14}{wall}{processor}", flush=True)
    if arguments.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
