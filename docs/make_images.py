"""Draw every picture of the docs: `python docs/make_images.py`, some minutes. Same pictures every time.

Screenshots of the report are taken too where Chromium is installed. `--only NAME ...` draws some alone;
`--reports DIR` takes the statistical comparison from files NAME.json as `crashbo reproduce NAME --json` prints.
"""

import argparse
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import crashbo
from crashbo import plots
from crashbo.research.problems import SYNTHETIC
from crashbo.research.reproduce import figures, robot_figures
from crashbo.research.reproduce.cases import make_case
from crashbo.research.reproduce.example1 import example1
from crashbo.research.reproduce.robot import tune as tune_robot
from crashbo.research.reproduce.simulations import Report, Run, evaluate, reproduce
from crashbo.show.gpcr import plot_posterior, plot_predictive
from crashbo.show.report import render_report

IMAGES = Path(__file__).parent / "images"
LARGEST = 140_000  # bytes
UNITS = {"kp": "N/m", "kd": "s", "objective": "J"}


def tune(params: dict[str, Any]) -> float:
    """A controller with four knobs that oscillates, or rings, where it is too sharp."""
    if params["kp"] * params["kd"] > 3.0:
        raise crashbo.Crash("oscillates")
    if params["filter"] == "none" and params["order"] > 5:
        raise crashbo.Crash("rings")
    gain = (params["kp"] - 6.0) ** 2 + 40.0 * (params["kd"] - 0.4) ** 2
    return gain + 0.4 * (params["order"] - 4) ** 2 + {"none": 0.0, "butter": 1.0, "bessel": 2.0}[params["filter"]]


@cache
def tuned(seed: int = 0, trials: int = 36) -> plots.View:
    """A run over mixed parameters."""
    space = {
        "kp": (0.0, 10.0),
        "kd": crashbo.Float(1e-2, 1.0, log=True),
        "order": crashbo.Int(1, 8),
        "filter": crashbo.Categorical(["none", "butter", "bessel"]),
    }
    result = crashbo.minimize(tune, space, n_trials=trials, seed=seed, progress=False)
    return plots.view(result, units=UNITS)


@cache
def finished(name: str, seed: int = 0) -> crashbo.Optimizer:
    return figures.finished_run(name, seed)


def random_search(seed: int) -> crashbo.Optimizer:
    """Random trials of Simulation I."""
    problem = SYNTHETIC["sim1"]
    optimizer, rng = crashbo.Optimizer(problem.space), np.random.default_rng(seed)
    for params in problem.space.sample(30, rng):
        evaluate(optimizer, problem, params, rng)
    return optimizer


def several_runs() -> dict[str, list[Any]]:
    seeds = range(8)
    return {"CrashBO": [finished("sim1", one) for one in seeds], "random search": [random_search(one) for one in seeds]}


def statistics(folder: Path | None) -> Any:
    names = ("sim1", "case2", "sim2", "case4")
    if folder is None:
        return figures.plot_statistics([reproduce(name, runs=3) for name in ("sim1", "case4")])
    paths = [folder / f"{name}.json" for name in names]
    found = [json.loads(path.read_text()) for path in paths if path.exists()]
    return figures.plot_statistics(
        [Report(one["name"], one["paper"], [Run(**run) for run in one["runs"]]) for one in found]
    )


@cache
def robot(name: str) -> dict[str, Any]:
    return robot_figures.robot_figures(name, tune_robot(name, 1000, method="default"), 1000)


def pictures(reports: Path | None) -> dict[str, Callable[[], Any]]:
    """What to draw, by file name."""
    return {
        "example1": lambda: plot_posterior(example1().curves()),
        "example1-predictive": lambda: plot_predictive(example1().curves(), *example1().predictive()),
        "cases": lambda: figures.plot_cases([make_case(number) for number in (1, 2, 3, 4)]),
        "model": lambda: plots.plot_model(make_case(4).optimizer, truth=make_case(4).problem),
        "sim1-maps": lambda: figures.plot_simulation("sim1", finished("sim1")),
        "sim2-maps": lambda: figures.plot_simulation("sim2", finished("sim2")),
        "sim1-thresholds": lambda: figures.plot_limits("sim1", finished("sim1")),
        "maps-mixed": lambda: plots.plot_maps(tuned(), "filter", "kd"),
        "slices": lambda: plots.plot_slices(tuned()),
        "pairs": lambda: plots.plot_pairs(tuned()),
        "convergence": lambda: plots.plot_convergence(tuned(), log=True),
        "bands": lambda: plots.plot_convergence(several_runs()),
        "parallel": lambda: plots.plot_parallel(tuned()),
        "importance": lambda: plots.plot_importance(tuned()),
        "statistics": lambda: statistics(reports),
        "robot2d-maps": lambda: robot("robot2d")["maps"],
        "robot2d-rollouts": lambda: robot("robot2d")["rollouts"],
    }


def save(figure: Any, name: str) -> Path:
    """Write a small PNG."""
    with tempfile.TemporaryDirectory() as folder:
        large = Path(folder) / "large.png"
        figure.savefig(large, dpi=100)
        return shrink(large, IMAGES / f"{name}.png")


def shrink(source: Path, target: Path) -> Path:
    """Keep a picture as it is if it is small, else with 256 colours."""
    if source.stat().st_size <= LARGEST:
        shutil.copyfile(source, target)
        return target
    with Image.open(source) as image:
        small = image.convert("RGB").quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        small.save(target, optimize=True)
    return target


def screenshots() -> list[Path]:
    """The report, where there is a browser to look with."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if browser is None:
        print("No Chromium: the screenshot of the report is left as it is. apt-get install chromium")
        return []
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(render_report(tuned(), title="Tuning the pole balancer", when=datetime(2026, 1, 1, tzinfo=UTC)))
        raw = Path(folder) / "report.png"
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--virtual-time-budget=9000"]
        look = ["--blink-settings=preferredColorScheme=1", f"--screenshot={raw}", "--window-size=1200,1750"]
        subprocess.run([browser, *flags, *look, page.as_uri()], check=True, capture_output=True)
        return [shrink(raw, IMAGES / "report.png")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=None, help="names of pictures")
    parser.add_argument("--reports", type=Path, default=None, help="folder of NAME.json files")
    chosen = parser.parse_args()
    IMAGES.mkdir(exist_ok=True)
    for name, draw in pictures(chosen.reports).items():
        if chosen.only is None or name in chosen.only:
            begin = time.perf_counter()
            path = save(draw(), name)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB, {time.perf_counter() - begin:.0f} s", flush=True)
    if chosen.only is None or "report" in chosen.only:
        for path in screenshots():
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
