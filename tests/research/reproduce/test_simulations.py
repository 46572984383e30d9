"""The paper's simulations, shortened: what a report holds, and that it repeats."""

import json
from dataclasses import asdict, replace

import pytest

from crashbo.errors import InputError
from crashbo.research.problems import SYNTHETIC
from crashbo.research.reproduce import simulations
from crashbo.research.reproduce.methods import PaperSettings, methods_of
from crashbo.research.reproduce.simulations import SIMULATIONS, Report, Run, first_success, run_once

EVALUATIONS = 6
RUN = Run(
    seed=1000,
    method="paper",
    regret=[None, 0.5, 0.1],
    best={"x1": 0.9, "x2": 0.0},
    best_value=0.1,
    feasible=True,
    crashes=1,
    first_success=2,
    limits={"objective": {"value": 1.4, "deviation": 0.1, "low": 1.2, "high": 1.6}},
    limit_curves={"objective": [None, 1.0, 1.4]},
    seconds_per_ask=0.1,
)


@pytest.fixture(scope="module", autouse=True)
def runs():
    """Short runs with their curves; everything in this module is as short."""
    with pytest.MonkeyPatch.context() as patch:
        for name, simulation in SIMULATIONS.items():
            patch.setitem(simulations.SIMULATIONS, name, replace(simulation, evaluations=EVALUATIONS))
        yield [run_once("sim1", 1000, method=method) for method in ("paper", "default")]


def without_times(run) -> dict:
    return {key: value for key, value in vars(run).items() if not key.startswith("seconds")}


@pytest.mark.parametrize("index", [0, 1])
def test_a_short_run_says_what_happened(runs, index):
    run, problem = runs[index], SYNTHETIC["sim1"]
    assert len(run.regret) == len(run.limit_curves["objective"]) == EVALUATIONS
    assert run.best_value == problem.value(run.best)
    assert run.feasible == problem.feasible(run.best)
    assert run.regret[-1] == (pytest.approx(run.best_value - problem.minimum) if run.feasible else None)
    assert 0 <= run.crashes <= EVALUATIONS
    assert (run.first_success is None) == (run.crashes == EVALUATIONS)
    last = run.limit_curves["objective"][-1]
    assert last == (run.limits["objective"]["value"] if run.limits else None)
    assert run.seconds_per_ask > 0
    assert (run.seed, run.method) == (1000, ("paper", "default")[index])


def test_the_same_seed_gives_the_same_numbers(runs):
    assert without_times(run_once("sim1", 1000)) == without_times(runs[0])
    assert run_once("sim1", 1001, curve=False).best != runs[0].best


def test_the_curve_does_not_change_the_run(runs):
    run = run_once("sim1", 1000, curve=False)
    assert run.regret == runs[0].regret[-1:]
    assert run.best == runs[0].best


def test_regret_counts_feasible_guesses_only_and_the_others_are_counted():
    lost = replace(RUN, seed=1001, regret=[None, 0.2, None], best_value=-5.0, feasible=False, limits={})
    better = replace(RUN, seed=1002, regret=[None, None, 0.3], best_value=0.3)
    random = replace(RUN, method="random")
    report = Report("sim1", "fixed", [RUN, lost, better, random])
    found = report.summary()["methods"]
    assert list(found) == ["paper", "random"]
    assert found["paper"]["mean_regret"] == pytest.approx(0.2)
    assert found["paper"]["median_regret"] == pytest.approx(0.2)
    assert found["paper"]["error_regret"] == pytest.approx(0.1)
    assert found["paper"]["mean_best_value"] == pytest.approx(0.2)
    assert found["paper"]["infeasible_share"] == pytest.approx(1 / 3)
    told = {"mean": 1.4, "std": 0.0, "stated_deviation": 0.1, "runs": 2, "covering": 2}
    assert found["paper"]["limits"]["objective"] == told
    nothing = Report("sim1", "fixed", [lost])
    assert nothing.summary()["methods"]["paper"]["mean_regret"] is None
    assert "share of infeasible best guesses" in nothing.words()
    assert "Limit of objective, paper's method: 1.4 ± 0 over 2 runs, each stated to ± 0.1; true 1.5" in report.words()
    assert json.loads(json.dumps(report.summary())) == report.summary()
    assert [Run(**one) for one in report.summary()["runs"]] == report.runs
    assert asdict(RUN)["limit_curves"] == {"objective": [None, 1.0, 1.4]}


def test_all_methods_run_on_the_same_seeds(monkeypatch):
    monkeypatch.setattr(simulations, "side_by_side", lambda jobs: (job[0](*job[1], **job[2]) for job in reversed(jobs)))
    seen = []
    report = simulations.reproduce("sim1", runs=2, progress=lambda *now: seen.append(now))
    assert [(run.method, run.seed) for run in report.runs] == [
        (method, seed) for method in ("paper", "default", "random") for seed in (1000, 1001)
    ]
    assert seen[-1] == (6, 6)
    title = report.words().splitlines()[1]
    assert title.split("  ")[-1].strip() == "random search"
    assert "paper's method" in title
    assert "default" in title


@pytest.mark.parametrize("method", ["paper", "default"])
@pytest.mark.parametrize(
    ("name", "outputs"), [("case2", {"objective"}), ("sim2", {"g"}), ("case4", {"objective", "g"})]
)
def test_the_other_cases_run(name, outputs, method):
    run = run_once(name, 1003, method=method, curve=False)
    assert set(run.limits) <= outputs
    assert len(run.regret) == 1


def test_the_papers_settings():
    options = simulations.simulated("sim2", 0).options
    assert (options.initial, options.random_start, options.delta) == (1, True, 0.05)
    assert (options.sampler, options.starts) == ("virtual", 200)
    assert set(options.fixed) == {"objective", "g"}
    assert options.fixed["objective"].kernel == "matern32"
    other = simulations.simulated("sim2", 0, paper=PaperSettings(True, "pathwise"))
    assert (other.options.fixed, other.options.sampler) == ({}, "pathwise")
    assert simulations.simulated("sim2", 0, method="default").problem.strategy == "default"


def test_bad_names_are_refused():
    with pytest.raises(InputError, match="`strategy` must be 'paper', 'default' or 'both'; got 'ours'"):
        methods_of("ours")
    with pytest.raises(InputError, match="`method` must be one of paper, default, random; got 'tpe'"):
        simulations.simulated("sim1", 0, method="tpe")


def test_trials_until_the_first_success_are_counted():
    found = first_success(1000, limit=5)
    assert 1 <= found <= 5
    assert first_success(1000, limit=5) == found
    assert 1 <= first_success(1000, method="random", limit=5) <= 5
