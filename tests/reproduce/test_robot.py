"""The robot experiments, shortened: what a report holds, and that it repeats."""

import json
from dataclasses import replace

import pytest

from crashbo.errors import InputError
from crashbo.problems.pole import POLES
from crashbo.problems.pole.reference import grid_reference
from crashbo.reproduce import penalties, robot
from crashbo.reproduce.penalties import PENALTIES, PenaltyReport
from crashbo.reproduce.robot import ROBOTS, RobotReport, Run, marginal_controller, run_once

EVALUATIONS = 6
RUN = Run(
    seed=0,
    method="crashbo",
    best={"x1": 0.3, "x2": 0.4},
    best_value=0.8,
    best_std=0.1,
    stable=True,
    costs=[None, 2.0, 1.0, 51.0],
    curve=[None, 2.0, 1.0, 1.0],
    crashes=1,
    reasons={"pole fell": 1},
    recovered=1,
    first_success=2,
    thresholds={"objective": 50.0},
    threshold_curve=[None, None, 2.5, 2.1],
    seconds_per_ask=0.1,
)


@pytest.fixture(scope="module", autouse=True)
def short():
    """Everything in this module is short."""
    with pytest.MonkeyPatch.context() as patch:
        for name, one in ROBOTS.items():
            patch.setitem(robot.ROBOTS, name, replace(one, evaluations=EVALUATIONS))
        yield


@pytest.fixture(scope="module")
def run(short) -> Run:
    return run_once("robot2d", 0)


def without_times(run: Run) -> dict:
    return {key: value for key, value in vars(run).items() if not key.startswith("seconds")}


def test_a_run_says_what_happened(run):
    assert len(run.costs) == len(run.curve) == len(run.threshold_curve) == EVALUATIONS
    assert run.crashes == run.costs.count(None) == sum(run.reasons.values())
    assert 0 <= run.recovered <= run.crashes
    assert run.first_success == next(number for number, cost in enumerate(run.costs, 1) if cost is not None)
    seen = [cost for cost in run.costs if cost is not None]
    assert run.curve[-1] == min(seen)
    assert run.curve[: run.first_success - 1] == [None] * (run.first_success - 1)
    assert set(run.best) == {"x1", "x2"}
    assert run.stable == (run.best_value is not None and run.best_std is not None)
    assert (run.seed, run.method, run.penalty) == (0, "crashbo", None)


def test_the_same_seed_gives_the_same_run(run):
    assert without_times(run_once("robot2d", 0)) == without_times(run)


def test_the_best_guess_is_tried_again_with_fresh_noise(run):
    tuning = POLES["robot2d"]
    seeds = [robot.rollout_seed(0, 2, number) for number in range(5)]
    costs = [tuning.rollout(run.best, seed).cost for seed in seeds]
    assert None not in costs
    assert run.best_value == pytest.approx(sum(costs) / 5)
    assert not {robot.rollout_seed(0, 1, number) for number in range(100)} & set(seeds)


@pytest.mark.parametrize(
    ("name", "learned"), [("robot2d", False), ("robot2d-mixed", True), ("robot2d-mixed", False), ("robot5d", False)]
)
def test_the_other_experiments_run(name, learned):
    found = run_once(name, 1, learned=learned)
    assert len(found.costs) == EVALUATIONS
    assert len(found.best) == POLES[name].dimension
    assert set(found.thresholds) <= {"objective", *POLES[name].thresholds}


def test_random_search_needs_no_suggestions():
    found = run_once("robot2d", 0, method="random")
    assert (found.method, found.seconds_per_ask) == ("random", 0.0)
    assert found.threshold_curve == [None] * EVALUATIONS


def test_the_papers_hyperparameters():
    options = ROBOTS["robot2d-mixed"].options(POLES["robot2d-mixed"], learned=False)
    assert (options.initial, options.random_start, options.delta) == (1, True, 0.05)
    assert set(options.fixed) == {"objective", "reach"}
    for name, noise in (("objective", 0.03), ("reach", 0.01)):
        model = options.fixed[name]
        assert (model.kernel, model.lengthscale, model.variance, model.noise_std) == ("matern32", 0.1, 25.0, noise)
        assert model.threshold_prior == (0.0, 10.0)
    five = ROBOTS["robot5d"].options(POLES["robot5d"], learned=False)
    assert five.fixed["objective"].lengthscale == 0.2


def test_a_penalty_hides_the_crash_from_the_optimizer_but_not_from_the_report(monkeypatch):
    told = []
    monkeypatch.setattr(
        robot.Optimizer,
        "tell",
        (lambda tell: lambda self, params, cost, **more: told.append(cost) or tell(self, params, cost, **more))(
            robot.Optimizer.tell
        ),
    )
    found = run_once("robot2d", 0, penalty=10.0)
    assert (found.method, found.penalty) == ("penalty", 10.0)
    assert found.crashes == told.count(10.0) > 0
    assert [cost for cost in told if cost != 10.0] == [cost for cost in found.costs if cost is not None]


def test_the_summary_has_what_readers_rely_on():
    other = replace(RUN, seed=1, best_value=1.0, best_std=0.3, stable=False, costs=[None] * 4, crashes=4)
    lost = replace(RUN, seed=2, best_value=None, best_std=None, stable=False, first_success=None, thresholds={})
    random = replace(RUN, method="random", best_value=0.5)
    report = RobotReport("robot2d", "learned", [RUN, other, lost, random])
    summary = report.summary()
    assert summary["mean_best_value"] == pytest.approx(0.9)
    assert summary["std_best_value"] == pytest.approx(0.02**0.5)
    assert summary["mean_best_std"] == pytest.approx(0.2)
    assert summary["mean_crashes"] == pytest.approx(2.0)
    assert (summary["stable_runs"], summary["number_of_runs"], summary["successful_runs"]) == (1, 3, 2)
    assert summary["thresholds"]["objective"] == {"mean": 50.0, "std": 0.0}
    assert summary["reference"] == grid_reference().summary()
    assert summary["random"]["better_than_grid_runs"] == 1
    assert summary["better_than_grid_runs"] == 0
    assert summary["evaluations"] == 4
    assert len(summary["runs"]) == 4
    assert json.loads(json.dumps(summary)) == summary
    words = report.words()
    assert "robot2d: 3 runs, 4 roll-outs each, hyperparameters learned." in words
    assert "cost 51 (seed 0, trial 4); the threshold went from 2.1 to 50, no restart." in words


def test_the_hidden_limit_stands_beside_the_learned_one():
    mixed = RobotReport("robot2d-mixed", "fixed", [replace(RUN, thresholds={"reach": 12.75})])
    assert mixed.summary()["hidden_thresholds"] == {"reach": 13.0}
    assert "Learned threshold of reach: 12.75 ± 0 (hidden: 13)." in mixed.words()


def test_the_marginal_controller_is_the_costliest_that_balanced():
    assert marginal_controller([RUN, replace(RUN, seed=1, costs=[3.0, None, None, None])]) == {
        "seed": 0,
        "trial": 4,
        "cost": 51.0,
        "before": 2.1,
        "after": 50.0,
    }
    early = replace(RUN, costs=[None, 52.0, 1.0, 51.0])
    assert marginal_controller([early]) == {"seed": 0, "trial": 2, "cost": 52.0, "before": None, "after": 2.5}
    assert marginal_controller([replace(RUN, costs=[None] * 4)]) is None


def test_a_report_without_any_success_can_be_read():
    lost = replace(RUN, best_value=None, best_std=None, stable=False, costs=[None] * 4, first_success=None)
    report = RobotReport("robot2d", "learned", [lost])
    assert report.summary()["mean_best_value"] is None
    assert "mean cost of the best guess" in report.words()


def test_penalties_stand_side_by_side():
    with_penalty = [replace(RUN, penalty=penalty, method="penalty") for penalty in PENALTIES.values()]
    report = PenaltyReport("learned", [RUN, *with_penalty])
    summary = report.summary()
    assert summary["mean_best_value"] == 0.8
    assert {title: one["penalty"] for title, one in summary["penalties"].items()} == PENALTIES
    assert json.loads(json.dumps(summary)) == summary
    assert "none (GPCR)" in report.words()


def test_whole_reports(monkeypatch):
    for module in (robot, penalties):
        monkeypatch.setattr(module, "side_by_side", lambda jobs: (job[0](*job[1], **job[2]) for job in reversed(jobs)))
    seen = []
    report = robot.reproduce_robot("robot2d", runs=1, seed=3, learned=False, progress=lambda *now: seen.append(now))
    assert [(run.method, run.seed) for run in report.runs] == [("crashbo", 3), ("random", 3)]
    assert seen == [(1, 2), (2, 2)]
    penalised = robot.reproduce_robot("robot2d", runs=1, seed=3, learned=False, penalty=10.0)
    assert [run.method for run in penalised.runs] == ["penalty"]
    assert penalised.summary()["penalty"] == 10.0
    assert penalised.summary()["random"] is None
    assert "penalty 10" in penalised.words()
    together = penalties.reproduce_penalties(runs=1, seed=3, learned=False)
    assert [run.penalty for run in together.runs] == [None, *PENALTIES.values()]
    assert without_times(together.runs[0]) == without_times(report.runs[0])


@pytest.mark.parametrize(
    ("name", "penalty", "message"),
    [
        ("robot3d", None, "`name` must be one of robot2d, robot2d-mixed, robot5d, robot2d-mujoco; got 'robot3d'."),
        ("robot2d", float("nan"), "`penalty` must be a finite number; got nan."),
        ("robot2d", "high", "`penalty` must be a finite number; got 'high'."),
        ("robot2d-mixed", 1.0, "`penalty` must be left out for robot2d-mixed; got 1.0."),
    ],
)
def test_bad_input_is_refused(name, penalty, message):
    with pytest.raises(InputError) as error:
        robot.reproduce_robot(name, runs=1, penalty=penalty)
    assert message in str(error.value)


def test_the_own_robot_example_survives_its_emergency_stop(tmp_path):
    import runpy
    from pathlib import Path

    import crashbo

    example = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "own_robot.py"))
    fake = example["FakeRobot"](0)
    with pytest.raises(crashbo.Crash, match="fell, recovered"):
        example["trial"](fake, example["controller"](0.0, 0.0))
    assert not fake.stopped
    pressed = example["FakeRobot"](0)
    pressed.signals = lambda: {"angle": 0.0, "current": 0.0, "button": 1.0}
    with pytest.raises(crashbo.Crash, match="emergency stop, stopped"):
        example["trial"](pressed, example["SAFE"])
    assert pressed.stopped
    example["main"](n_trials=4, state=tmp_path / "state.json")
    assert len(crashbo.Optimizer.load(tmp_path / "state.json").trials) == 4
