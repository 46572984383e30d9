"""The demo: tune the simulated pole-balancing robot, keep the study, leave a report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crashbo.optimizer import Optimizer
from crashbo.problem.problem import Problem
from crashbo.research.pole_figures import animate_rollouts, plot_rollouts
from crashbo.research.problems.pole import POLES, Evaluation, repeat, rollout
from crashbo.research.problems.pole.rollout import Outcome
from crashbo.show.draw_matplotlib import draw
from crashbo.show.figures import plot_convergence, plot_maps
from crashbo.show.history import thresholds
from crashbo.show.report import Extra, write_report
from crashbo.show.report.summary import shown
from crashbo.show.run_charts import thresholds_chart
from crashbo.show.views import View
from crashbo.store import asking, recording
from crashbo.store.definition import Definition
from crashbo.store.storage import Place, find_place
from crashbo.store.study import Study, create_study, study_exists

TRIALS = 30
_ROBOT = POLES["robot2d"]
_CHECKS = 5
_SEEN = 4.0  # s: a crash shown at about this time is neither over before one looks nor too late for the moving picture


@dataclass(frozen=True)
class Step:
    """What the demo has done so far, for whoever watches.

    Attributes:
        number: trials done.
        total: trials in all.
        crashes: of those done.
        best: lowest cost so far, None if all crashed.
        last: what became of the last trial, in words.
        threshold: the learned crash threshold; None before there is one.
    """

    number: int
    total: int
    crashes: int
    best: float | None
    last: str
    threshold: float | None

    @classmethod
    def after(cls, costs: Sequence[float | None], total: int, outcome: Outcome, threshold: float | None) -> "Step":
        """The step that ended with `outcome`; `threshold` was learned before it, so a cost that held may exceed it."""
        held = [cost for cost in costs if cost is not None]
        last = f"crashed: {outcome.reason}" if outcome.cost is None else f"balanced, cost {outcome.cost:.3g}"
        shown = None if threshold is None else max([threshold, *held])
        return cls(len(costs), total, len(costs) - len(held), min(held, default=None), last, shown)


@dataclass(frozen=True)
class Demo:
    """What came of the demo.

    Attributes:
        place: of the study.
        optimizer: at its end.
        before: the safe controller the robot started with, re-evaluated.
        after: the best guess, re-evaluated.
        files: left behind, the report first.
    """

    place: Place
    optimizer: Optimizer
    before: Evaluation
    after: Evaluation
    files: tuple[Path, ...]

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        best = self.optimizer.best()
        return {
            "trials": len(self.optimizer.trials),
            "crashes": sum(trial.crashed for trial in self.optimizer.trials),
            "best": best.params,
            "success_probability": best.success_probability,
            "safe_cost": self.before.mean,
            "tuned_cost": self.after.mean,
            "tuned_stable": self.after.stable,
            "thresholds": self.optimizer.thresholds,
            "limits": {name: vars(limit) for name, limit in self.optimizer.limits.items()},
            "relation": self.optimizer.crash_relation,
            "storage": str(self.place),
            "study": self.place.study,
            "files": [str(path) for path in self.files],
        }

    def words(self) -> str:
        """The result in a few sentences."""
        numbers = self.summary()
        settings = ", ".join(f"{name} = {shown(value)}" for name, value in numbers["best"].items())
        steady = (
            f"balanced in all {_CHECKS} roll-outs" if self.after.stable else f"failed in {len(self.after.failures)}"
        )
        return (
            f"Tuned the robot in {numbers['trials']} trials; {numbers['crashes']} of them crashed, and no penalty was "
            f"needed.\nBest guess: {settings}. Tried {_CHECKS} times more it {steady}, mean cost "
            f"{self.after.mean:.3g}; the gains it started from barely balance, at {self.before.mean:.3g}.\n"
            f"{numbers['relation']}"
        )


def run_demo(folder: Path, *, seed: int = 0, trials: int = TRIALS, watch: Callable[[Step], None] | None = None) -> Demo:
    """Tune the robot in two dimensions and write study, pictures and report.

    Args:
        folder: for everything that is left behind.
        seed: same seed, same result on one machine.
        trials: to run.
        watch: called after every trial.
    """
    folder.mkdir(parents=True, exist_ok=True)
    study = _new_study(folder, seed)
    for number in range(trials):
        asked = asking.ask(study)
        assert asked is not None
        outcome = _ROBOT.without_recovery().rollout(asked.params, 1000 * seed + number)
        if outcome.cost is None:
            recording.crash(study, asked.number, outcome.reason)
        else:
            recording.tell(study, asked.number, outcome.cost)
        if watch is not None:
            costs = [one.objective for one in study.records()]
            watch(Step.after(costs, trials, outcome, asked.thresholds.get("objective")))
    optimizer = asking.use_sampler(study).optimizer(study.inner)
    params = optimizer.best().params
    checks = range(10_000 * (seed + 1), 10_000 * (seed + 1) + _CHECKS)
    safe = [rollout(_ROBOT.settings.safe_gains, one, _ROBOT.without_recovery().settings) for one in checks]
    before = Evaluation(
        tuple(one.cost for one in safe if one.cost is not None), tuple(one.reason for one in safe if one.failed)
    )
    story = _story(optimizer, params, checks[0])
    return Demo(study.place, optimizer, before, repeat(_ROBOT, params, checks), _files(folder, optimizer, story))


def _story(optimizer: Optimizer, params: Mapping[str, Any], noise: int) -> dict[str, Outcome]:
    """The gains known before, a trial that crashes after a while under this noise, and the best guess."""
    found = {"before: safe gains": rollout(_ROBOT.settings.safe_gains, noise, _ROBOT.settings)}
    tried = {one.number: _ROBOT.rollout(one.params, noise) for one in optimizer.trials if one.crashed}
    crashed = {number: one for number, one in tried.items() if one.failed}
    if crashed:
        number, outcome = min(crashed.items(), key=lambda one: abs(one[1].seconds - _SEEN))
        found[f"trial {number}: {outcome.reason}"] = outcome
    return found | {"after: best guess": _ROBOT.rollout(params, noise)}


def _new_study(folder: Path, seed: int) -> Study:
    """A study of its own for every run, so that earlier ones stay."""
    number = 1
    while study_exists(place := find_place(str(folder / "study.db"), f"demo-{number}")):
        number += 1
    return create_study(place, Definition(Problem(_ROBOT.space, seed=seed)))


def _files(folder: Path, optimizer: Optimizer, story: dict[str, Outcome]) -> tuple[Path, ...]:
    """Draw everything; the report comes first."""
    seen = View(optimizer)
    limits = thresholds(seen)
    figures = {
        "surface.png": plot_maps(seen),
        "convergence.png": plot_convergence(seen),
        **({"threshold.png": draw(thresholds_chart(limits))} if limits else {}),
        "rollouts.png": plot_rollouts(story),
    }
    paths = [folder / name for name in figures]
    for path, figure in zip(paths, figures.values(), strict=True):
        figure.savefig(path)
    moving = animate_rollouts(story, folder / "pole.gif")
    extras = [
        Extra(
            "Before, on the way and after",
            "The gains known before, a trial that crashed and the best guess, under the same disturbances.",
            paths[-1],
        ),
        Extra(
            "The pole",
            "It is tapped every 5 s, from both sides in turn. Angles and positions are shown eight times larger than "
            "they are. After a crash the safe gains take over.",
            moving,
        ),
    ]
    report = write_report(seen, folder / "report.html", title="Tuning the pole-balancing robot", extras=extras)
    return (report, *paths, moving)
