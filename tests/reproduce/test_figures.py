"""The paper's figures are drawn from reports and repeated runs."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo.reproduce import figures, simulations
from crashbo.reproduce.cases import make_case
from crashbo.reproduce.simulations import SIMULATIONS, Report, run_once


@pytest.fixture(scope="module", autouse=True)
def short():
    with pytest.MonkeyPatch.context() as patch:
        for name, simulation in SIMULATIONS.items():
            patch.setitem(simulations.SIMULATIONS, name, replace(simulation, evaluations=6))
        yield


@pytest.fixture(scope="module")
def report() -> Report:
    runs = [run_once("sim1", seed) for seed in (0, 1)] + [run_once("sim1", 0, method="random")]
    return Report("sim1", "fixed", runs)


def test_a_repeated_run_ends_where_the_first_did(report):
    optimizer = figures.finished_run("sim1", 1)
    run = report.runs[1]
    assert optimizer.best().params == run.best
    assert sum(trial.failed for trial in optimizer.trials) == run.crashes
    assert optimizer.thresholds == run.thresholds


def test_a_report_becomes_pictures(report, tmp_path):
    paths = figures.draw_report(report, tmp_path / "new")
    assert [path.name for path in paths] == ["sim1-maps.png", "sim1-regret.png", "sim1-thresholds.png"]
    assert all(path.stat().st_size > 5000 for path in paths)


def test_regret_is_the_median_of_the_runs(report):
    (axes,) = figures.plot_regret(report).axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    expected = np.median([run.regret for run in report.runs[:2]], axis=0)
    assert drawn["CrashBO (2 runs)"] == pytest.approx(expected)
    assert drawn["random search (1 run)"] == pytest.approx(report.runs[2].regret)
    assert axes.get_yscale() == "log"


def test_statistics_put_mes_left_and_mesco_right(report):
    other = Report("case4", "learned", [replace(run, thresholds={"objective": 19.0, "g": -0.1}) for run in report.runs])
    figure = figures.plot_statistics([report, other])
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["mES", "mESCO"]
    assert {"limit of cost, case 1", "limit of cost, case 4", "limit of g, case 4"} == set(titles[2:])
    left = [line.get_label() for line in figure.axes[0].lines]
    assert left == ["case 1, Simulation I: CrashBO (2 runs)", "case 1, Simulation I: random search (1 run)"]


def test_simulations_are_drawn_with_their_truth():
    figure = figures.plot_simulation("sim2", figures.finished_run("sim2", 0, learned=False))
    titles = [axes.get_title() for axes in figure.axes]
    assert {"cost, true", "g, true", "probability that g holds", "acquisition (mESCO)"} <= set(titles)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_four_cases_have_the_models_they_are_named_for(number):
    case = make_case(number)
    models = case.optimizer.surrogates()
    assert (models.objective.threshold < float("inf")) == (number != 3)
    assert set(models.constraints) == ({"g"} if number >= 3 else set())
    assert any(trial.failed for trial in case.optimizer.trials)
    assert case.problem.feasible(case.problem.minimiser)
    places = [{"x": x} for x in np.linspace(0, 1, 201).tolist()]
    assert (
        min(case.problem.value(place) for place in places if case.problem.feasible(place))
        >= case.problem.minimum - 1e-9
    )


def test_the_four_cases_are_one_picture(tmp_path):
    (path,) = figures.draw_cases([make_case(number) for number in (1, 2, 3, 4)], tmp_path)
    assert path.name == "cases.png"
