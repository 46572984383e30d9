"""The robot's figures, from short runs: what they show, and that commands draw them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from crashbo.cli import app
from crashbo.research.problems.pole.reference import grid_reference
from crashbo.research.reproduce import penalties, robot, robot_figures
from crashbo.research.reproduce.penalties import PENALTIES, PenaltyReport
from crashbo.research.reproduce.robot import ROBOTS, RobotReport, Run, rollout_seed, run_once, tune

EVALUATIONS = 5


@pytest.fixture(scope="module", autouse=True)
def short():
    with pytest.MonkeyPatch.context() as patch:
        for name, one in ROBOTS.items():
            patch.setitem(robot.ROBOTS, name, replace(one, evaluations=EVALUATIONS))
        for module in (robot, penalties):
            patch.setattr(module, "side_by_side", lambda jobs: (job[0](*job[1], **job[2]) for job in jobs))
        yield


@pytest.fixture(scope="module")
def run(short) -> Run:
    return run_once("robot2d", 1000)


def reproduce(name: str, folder) -> list[str]:
    command = ["reproduce", name, "--runs", "1", "--strategy", "paper", "--plots", str(folder), "--json"]
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, result.output
    for path in folder.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
    pictures = json.loads(result.stdout)["pictures"]
    assert sorted(pictures) == sorted(map(str, folder.iterdir()))
    return [path.removeprefix(f"{folder}/") for path in pictures]


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("robot2d", ["maps"]),
        pytest.param("robot2d-mixed", ["maps"], marks=pytest.mark.slow),
        ("robot5d", ["pairs", "slices"]),
    ],
)
def test_the_command_draws_the_model_the_runs_and_the_pole(name, model, tmp_path):
    parts = [f"paper-{part}" for part in (*model, "trials", "rollouts")] + ["convergence"]
    assert set(reproduce(name, tmp_path)) >= {f"{name}-{part}.png" for part in parts}


def test_the_command_draws_penalties(tmp_path):
    assert reproduce("penalties", tmp_path) == ["penalties-paper.png"]


def test_the_repeated_run_is_the_one_of_the_report(run):
    again = tune("robot2d", 1000)
    assert again.optimizer.best().params == run.best
    assert [one.cost for one in again.outcomes] == run.costs
    assert again.limits.values == run.limit_curves


def test_the_mixed_run_shows_the_hidden_limit_in_its_unit():
    found = robot_figures.robot_figures("robot2d-mixed", tune("robot2d-mixed", 1000), 1000)
    titles = [axes.get_title() for axes in found["maps"].axes]
    assert {"cost, mean", "reach, mean", "probability that reach holds", "mESCO, success left out"} <= set(titles)
    limits = {axes.get_ylabel(): axes for axes in found["limits"].axes}
    (true,) = [line for line in limits["limit of reach [cm]"].lines if line.get_label() == "true limit"]
    assert set(true.get_ydata()) == {5.0}
    assert not [line for line in limits["limit of cost"].lines if line.get_label() == "true limit"]
    trials = found["trials"].axes[1]
    assert trials.get_xlim()[0] > 0  # counted from 1, as in the report


def test_a_failed_trial_stands_beside_the_best_guess_under_the_same_noise():
    tuned = tune("robot2d", 1000)
    shown = robot_figures.shown_rollouts("robot2d", tuned, 1000)
    first, best = shown.values()
    title, tuned_title = shown
    failed = next(one.number for one in tuned.optimizer.trials if one.failed)
    assert title.startswith(f"trial {failed + 1}")
    assert first.reason in title
    assert tuned_title.startswith("best guess")
    again = robot.POLES["robot2d"].rollout(tuned.optimizer.best().params, rollout_seed(1000, 2, 0))
    assert again.cost == best.cost


def test_runs_are_joined_and_their_best_guesses_tried_again(run):
    other = replace(run, seed=1, stable=False)
    random = replace(run, method="random", costs=[None] * 5, curve=[None] * 5, crashes=5, best_value=1.7)
    costs, guesses, failed, counts = robot_figures.plot_runs(RobotReport("robot2d", "fixed", [run, other, random])).axes
    curves = {line.get_label(): line.get_ydata() for line in failed.lines}
    lost = np.cumsum([cost is None for cost in run.costs])
    assert curves["paper's method (2 runs)"] == pytest.approx(lost)
    assert curves["random search (1 run)"] == pytest.approx([1, 2, 3, 4, 5])
    reference = costs.lines[-1]
    assert set(reference.get_ydata()) == {grid_reference().best_value}
    marks = [(line.get_marker(), list(line.get_ydata())) for line in guesses.lines if len(line.get_ydata())]
    assert ("o", [run.best_value]) in marks
    assert ("o", [1.7]) in marks
    assert ("x", [0.95]) in marks
    assert [bar.get_height() for bar in counts.patches] == [run.crashes, 5]
    assert [tick.get_text() for tick in counts.get_xticklabels()] == ["paper's\nmethod", "random\nsearch"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_penalties_stand_beside_crashbo_even_if_nothing_balanced(run, theme):
    lost = replace(run, best_value=None, best_std=None, stable=False, costs=[None] * 5, curve=[None] * 5, penalty=1.0)
    report = PenaltyReport("fixed", [run, lost, *(replace(run, penalty=PENALTIES[one]) for one in list(PENALTIES)[1:])])
    figure = robot_figures.plot_penalties(report, theme=theme)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels[:4] == [
        "no penalty (1 run)",
        "penalty 1, too low (1 run)",
        "penalty 10, about right (1 run)",
        "penalty 1000, too high (1 run)",
    ]
    assert len(figure.axes[3].patches) == 4
