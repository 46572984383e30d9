"""The robot experiments, shortened: what a report holds, and that it repeats."""

import json
from dataclasses import replace

import pytest

from crashbo.errors import InputError
from crashbo.research.problems.pole import POLES
from crashbo.research.problems.pole.reference import grid_reference
from crashbo.research.reproduce import penalties, robot
from crashbo.research.reproduce.penalties import PENALTIES, PenaltyReport
from crashbo.research.reproduce.robot import ROBOTS, RobotReport, Run, marginal_controller, run_once

EVALUATIONS = 6
RUN = Run(
    seed=0,
    method="paper",
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
    limits={"objective": {"value": 50.0, "deviation": 4.0, "low": 42.0, "high": 58.0}},
    limit_curves={"objective": [None, 2.5, 2.1, 50.0]},
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
    return run_once("robot2d", 1000)


def without_times(run: Run) -> dict:
    return {key: value for key, value in vars(run).items() if not key.startswith("seconds")}


def test_a_run_says_what_happened(run):
    assert len(run.costs) == len(run.curve) == len(run.limit_curves["objective"]) == EVALUATIONS
    assert run.crashes == run.costs.count(None) == sum(run.reasons.values())
    assert 0 <= run.recovered <= run.crashes
    firsts = [number for number, cost in enumerate(run.costs, 1) if cost is not None]
    assert run.first_success == (firsts[0] if firsts else None)
    seen = [cost for cost in run.costs if cost is not None]
    assert run.curve[-1] == min(seen, default=None)
    assert set(run.best) == {"x1", "x2"}
    assert not run.stable or (run.best_value is not None and run.best_std is not None)
    assert (run.seed, run.method, run.penalty) == (1000, "paper", None)


def test_the_same_seed_gives_the_same_run(run):
    assert without_times(run_once("robot2d", 1000)) == without_times(run)


def test_the_best_guess_is_tried_again_with_fresh_noise(run):
    tuning = POLES["robot2d"]
    seeds = [robot.rollout_seed(1000, 2, number) for number in range(5)]
    costs = [tuning.rollout(run.best, seed).cost for seed in seeds]
    assert run.stable == (None not in costs)
    balanced = [cost for cost in costs if cost is not None]
    assert run.best_value == (pytest.approx(sum(balanced) / len(balanced)) if balanced else None)
    assert not {robot.rollout_seed(1000, 1, number) for number in range(100)} & set(seeds)


@pytest.mark.parametrize(
    ("name", "method"),
    [("robot2d", "default"), ("robot2d-mixed", "paper"), ("robot2d-mixed", "default"), ("robot5d", "paper")],
)
def test_the_other_experiments_run(name, method):
    found = run_once(name, 1001, method=method)
    assert len(found.costs) == EVALUATIONS
    assert len(found.best) == POLES[name].dimension
    assert set(found.limits) <= {"objective", *POLES[name].thresholds}
    assert set(found.limit_curves) == {"objective", *POLES[name].thresholds}


def test_random_search_needs_no_suggestions():
    found = run_once("robot2d", 1000, method="random")
    assert (found.method, found.seconds_per_ask) == ("random", 0.0)


def test_the_papers_hyperparameters():
    fixed = ROBOTS["robot2d-mixed"].fixed(POLES["robot2d-mixed"])
    assert set(fixed) == {"objective", "reach"}
    for name, noise in (("objective", 0.03), ("reach", 0.01)):
        model = fixed[name]
        assert (model.kernel, model.lengthscale, model.variance, model.noise_std) == ("matern32", 0.1, 25.0, noise)
        assert model.threshold_prior == (0.0, 10.0)
    assert ROBOTS["robot5d"].fixed(POLES["robot5d"])["objective"].lengthscale == 0.2


def test_a_penalty_hides_the_crash_from_the_optimizer_but_not_from_the_report(monkeypatch):
    told = []
    monkeypatch.setattr(
        robot.Optimizer,
        "tell",
        (lambda tell: lambda self, params, cost, **more: told.append(cost) or tell(self, params, cost, **more))(
            robot.Optimizer.tell
        ),
    )
    found = run_once("robot2d", 1000, penalty=10.0)
    assert (found.method, found.penalty) == ("paper", 10.0)
    assert found.crashes == told.count(10.0) > 0
    assert [cost for cost in told if cost != 10.0] == [cost for cost in found.costs if cost is not None]


def test_the_summary_has_what_readers_rely_on():
    other = replace(RUN, seed=1, best_value=1.0, best_std=0.3, costs=[None] * 4, crashes=4)
    lost = replace(RUN, seed=2, best_value=5.0, best_std=None, stable=False, first_success=None, limits={})
    random = replace(RUN, method="random", best_value=0.5)
    report = RobotReport("robot2d", "fixed", [RUN, other, lost, random])
    summary = report.summary()
    ours = summary["methods"]["paper"]
    assert ours["mean_best_value"] == pytest.approx(0.9)  # stable best guesses only
    assert ours["std_best_value"] == pytest.approx(0.02**0.5)
    assert ours["mean_best_std"] == pytest.approx(0.2)
    assert ours["mean_crashes"] == pytest.approx(2.0)
    assert (ours["stable_runs"], ours["number_of_runs"], ours["successful_runs"]) == (2, 3, 2)
    assert ours["unstable_share"] == pytest.approx(1 / 3)
    assert ours["limits"]["objective"] == {"mean": 50.0, "std": 0.0, "stated_deviation": 4.0, "runs": 2}
    assert summary["reference"] == grid_reference().summary()
    assert summary["methods"]["random"]["better_than_grid_runs"] == 1
    assert summary["evaluations"] == 4
    assert len(summary["runs"]) == 4
    assert json.loads(json.dumps(summary)) == summary
    words = report.words()
    assert "robot2d: seeds 0 to 2, 4 roll-outs each." in words
    assert "51 (seed 0, trial 4); the limit went from 2.1 to 50, no restart." in words


def test_the_hidden_limit_stands_beside_the_learned_one():
    limits = {"reach": {"value": 4.2, "deviation": 0.5, "low": 3.2, "high": 5.2}}
    mixed = RobotReport("robot2d-mixed", "fixed", [replace(RUN, limits=limits)])
    assert mixed.summary()["hidden_limits"] == {"reach": 5.0}
    assert mixed.methods["paper"]["limits"]["reach"]["covering"] == 1
    assert (
        "Limit of reach, paper's method: 4.2 ± 0 over 1 runs, each stated to ± 0.5; hidden 5, within the stated "
        "range in 1 runs." in mixed.words()
    )
    missed = replace(
        mixed, runs=[replace(RUN, limits={"reach": {"value": 3.9, "deviation": 0.5, "low": 2.9, "high": 4.9}})]
    )
    assert missed.methods["paper"]["limits"]["reach"]["covering"] == 0


def test_the_marginal_controller_is_the_costliest_that_balanced():
    assert marginal_controller([RUN, replace(RUN, seed=1, costs=[3.0, None, None, None])]) == {
        "seed": 0,
        "trial": 4,
        "cost": 51.0,
        "before": 2.1,
        "after": 50.0,
    }
    early = replace(RUN, costs=[52.0, None, 1.0, 51.0])
    assert marginal_controller([early]) == {"seed": 0, "trial": 1, "cost": 52.0, "before": None, "after": None}
    assert marginal_controller([replace(RUN, costs=[None] * 4)]) is None


def test_a_report_without_any_success_can_be_read():
    lost = replace(RUN, best_value=None, best_std=None, stable=False, costs=[None] * 4, first_success=None)
    report = RobotReport("robot2d", "learned", [lost])
    assert report.summary()["methods"]["paper"]["mean_best_value"] is None
    assert "mean cost of the stable best guesses" in report.words()


def test_penalties_stand_side_by_side():
    report = PenaltyReport("fixed", [RUN, *(replace(RUN, penalty=penalty) for penalty in PENALTIES.values())])
    summary = report.summary()["methods"]["paper"]
    assert summary["none"]["mean_best_value"] == 0.8
    assert {title: one["penalty"] for title, one in summary["penalties"].items()} == PENALTIES
    assert json.loads(json.dumps(summary)) == summary
    assert "1000, too high" in report.words()


def test_whole_reports(monkeypatch):
    for module in (robot, penalties):
        monkeypatch.setattr(module, "side_by_side", lambda jobs: (job[0](*job[1], **job[2]) for job in reversed(jobs)))
    seen = []
    report = robot.reproduce_robot("robot2d", runs=1, seed=1003, progress=lambda *now: seen.append(now))
    assert [(run.method, run.seed) for run in report.runs] == [("paper", 1003), ("default", 1003), ("random", 1003)]
    assert seen == [(1, 3), (2, 3), (3, 3)]
    together = penalties.reproduce_penalties(runs=1, seed=1003, strategy="paper")
    assert [run.penalty for run in together.runs] == [None, *PENALTIES.values()]
    assert without_times(together.runs[0]) == without_times(report.runs[0])


@pytest.mark.parametrize(
    ("name", "penalty", "message"),
    [
        ("robot2d", float("nan"), "`penalty` must be a finite number; got nan."),
        ("robot2d", "high", "`penalty` must be a finite number; got 'high'."),
        ("robot2d-mixed", 1.0, "`penalty` must be left out for robot2d-mixed; got 1.0."),
    ],
)
def test_bad_penalties_are_refused(name, penalty, message):
    with pytest.raises(InputError) as error:
        run_once(name, 1000, penalty=penalty)
    assert message in str(error.value)


def test_an_unknown_robot_is_refused():
    with pytest.raises(InputError, match="`name` must be one of robot2d, robot2d-mixed, robot5d, robot2d-mujoco"):
        robot.reproduce_robot("robot3d", runs=1)


def test_the_own_robot_example_survives_its_emergency_stop(tmp_path):
    import runpy
    from pathlib import Path

    import crashbo

    example = runpy.run_path(str(Path(__file__).parents[3] / "examples" / "own_robot.py"))
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
