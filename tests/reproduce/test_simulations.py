"""The paper's simulations, shortened: what a report holds, and that it repeats."""

import json
from dataclasses import replace

import pytest

from crashbo.problems import SYNTHETIC
from crashbo.reproduce import simulations
from crashbo.reproduce.simulations import SIMULATIONS, Report, first_success, run_once

EVALUATIONS = 8


@pytest.fixture(scope="module", autouse=True)
def runs():
    """Two short runs with their curves; everything in this module is as short."""
    with pytest.MonkeyPatch.context() as patch:
        for name, simulation in SIMULATIONS.items():
            patch.setitem(simulations.SIMULATIONS, name, replace(simulation, evaluations=EVALUATIONS))
        yield [run_once("sim1", seed) for seed in (0, 1)]


def without_times(run) -> dict:
    return {key: value for key, value in vars(run).items() if not key.startswith("seconds")}


@pytest.mark.parametrize("seed", [0, 1])
def test_a_short_run_says_what_happened(runs, seed):
    run, problem = runs[seed], SYNTHETIC["sim1"]
    assert len(run.regret) == EVALUATIONS
    assert run.best_value == problem.value(run.best)
    assert run.regret[-1] == pytest.approx(run.best_value - problem.minimum)
    assert run.feasible == problem.feasible(run.best)
    assert 0 <= run.crashes <= EVALUATIONS
    assert (run.first_success is None) == (run.crashes == EVALUATIONS)
    assert run.first_success is None or 1 <= run.first_success <= EVALUATIONS
    assert set(run.thresholds) == {"objective"}
    assert run.seconds_per_ask > 0
    assert (run.seed, run.method) == (seed, "crashbo")


def test_the_same_seed_gives_the_same_numbers(runs):
    assert without_times(run_once("sim1", 1)) == without_times(runs[1])
    assert runs[0].regret != runs[1].regret


def test_the_curve_does_not_change_the_run(runs):
    run = run_once("sim1", 1, curve=False)
    assert run.regret == runs[1].regret[-1:]
    assert run.best == runs[1].best


def test_the_summary_has_what_readers_rely_on(runs):
    runs = [*runs, run_once("sim1", 2, curve=False)]
    runs += [run_once("sim1", seed, curve=False, method="random") for seed in (0, 1)]
    summary = Report("sim1", "fixed", runs).summary()
    ours = [run.best_value for run in runs[:3]]
    mean = sum(ours) / 3
    assert summary["mean_best_value"] == pytest.approx(mean)
    assert summary["std_best_value"] == pytest.approx((sum((value - mean) ** 2 for value in ours) / 2) ** 0.5)
    assert summary["median_regret"] == sorted(run.regret[-1] for run in runs[:3])[1]
    assert summary["mean_crashes"] == pytest.approx(sum(run.crashes for run in runs[:3]) / 3)
    assert set(summary["thresholds"]) == {"objective"}
    assert set(summary["thresholds"]["objective"]) == {"mean", "std"}
    assert summary["random"]["median_regret"] >= 0
    assert len(summary["runs"]) == 5
    for run in summary["runs"]:
        assert len(run["regret"]) >= 1
        assert set(run["best"]) == {"x1", "x2"}
    assert json.loads(json.dumps(summary)) == summary


def test_one_run_has_no_spread(runs):
    summary = Report("sim1", "fixed", runs[:1]).summary()
    assert summary["std_best_value"] == 0.0
    assert summary["thresholds"]["objective"]["std"] == 0.0
    assert summary["random"] is None


@pytest.mark.parametrize(
    ("name", "outputs"), [("case2", {"objective"}), ("sim2", {"g"}), ("case4", {"objective", "g"})]
)
def test_the_other_cases_run(name, outputs):
    run = run_once(name, 3, curve=False)
    assert set(run.thresholds) <= outputs
    assert len(run.regret) == 1


def test_trials_until_the_first_success_are_counted():
    found = first_success(0, limit=5)
    assert 1 <= found <= 5
    assert first_success(0, limit=5) == found
    assert 1 <= first_success(0, method="random", limit=5) <= 5
