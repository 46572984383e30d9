"""The paper's figures are drawn from reports and repeated runs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from crashbo.research.reproduce import figures, simulations
from crashbo.research.reproduce.cases import make_case
from crashbo.research.reproduce.example1 import example1
from crashbo.research.reproduce.methods import PaperSettings
from crashbo.research.reproduce.predictive import predictive_density
from crashbo.research.reproduce.simulations import SIMULATIONS, Report, run_once
from crashbo.show.gpcr import mode, quantile


@pytest.fixture(scope="module", autouse=True)
def short():
    with pytest.MonkeyPatch.context() as patch:
        for name, simulation in SIMULATIONS.items():
            patch.setitem(simulations.SIMULATIONS, name, replace(simulation, evaluations=6))
        yield


@pytest.fixture(scope="module")
def report(short) -> Report:
    runs = [run_once("sim1", seed) for seed in (1000, 1001)] + [run_once("sim1", 1000, method="random")]
    return Report("sim1", "fixed", runs)


def test_a_repeated_run_ends_where_the_first_did(report):
    optimizer = figures.finished_run("sim1", 1001)
    run = report.runs[1]
    assert optimizer.best().params == run.best
    assert sum(trial.failed for trial in optimizer.trials) == run.crashes
    assert optimizer.thresholds == {name: one["value"] for name, one in run.limits.items()}


def test_a_report_becomes_pictures(report, tmp_path):
    paths = figures.draw_report(report, tmp_path / "new")
    assert {path.name for path in paths} >= {"sim1-paper-maps.png", "sim1-regret.png"}
    assert all(path.stat().st_size > 5000 for path in paths)


def test_regret_is_the_median_of_the_runs(report):
    runs = [replace(run, regret=[None, 0.5, seed]) for seed, run in enumerate(report.of("paper"), 1)]
    (axes,) = figures.plot_regret(Report("sim1", "fixed", [*runs, *report.of("random")])).axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert math.isnan(drawn["paper's method (2 runs)"][0])
    assert drawn["paper's method (2 runs)"][1:] == pytest.approx([0.5, 1.5])
    assert "random search (1 run)" in drawn
    assert axes.get_yscale() == "log"


def test_statistics_put_mes_left_and_mesco_right_and_follow_the_limits_of_case_4(report):
    curves = {"objective": [None, *[10.0] * 5], "g": [None, None, *[-0.2] * 4]}
    other = Report("case4", "fixed", [replace(run, limit_curves=curves) for run in report.runs])
    figure = figures.plot_statistics([report, other])
    titles = [axes.get_title() for axes in figure.axes]
    assert titles[:2] == ["mES", "mESCO"]
    assert titles[2:] == ["limit of cost, case 4", "limit of g, case 4"]
    left = [line.get_label() for line in figure.axes[0].lines]
    assert left == ["case 1, Simulation I: paper's method (2 runs)", "case 1, Simulation I: random search (1 run)"]
    (middle,) = [line for line in figure.axes[2].lines if line.get_label() == "paper's method"]
    assert list(middle.get_xdata()) == [2, 3, 4, 5, 6]
    assert set(middle.get_ydata()) == {10.0}


def test_simulations_are_drawn_with_their_truth():
    paper = PaperSettings(sampler="pathwise")
    figure = figures.plot_simulation("sim2", figures.finished_run("sim2", 1000, paper=paper))
    titles = [axes.get_title() for axes in figure.axes]
    assert {"cost, true", "g, true", "probability that g holds"} <= set(titles)


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_the_four_cases_have_the_models_they_are_named_for(number):
    case = make_case(number)
    models = case.optimizer.surrogate()
    assert (models.objective.threshold < math.inf) == (number != 3)
    assert set(models.constraints) == ({"g"} if number >= 3 else set())
    assert any(trial.failed for trial in case.optimizer.trials)
    assert case.problem.feasible(case.problem.minimiser)
    places = [{"x": x} for x in np.linspace(0, 1, 201).tolist()]
    feasible = [case.problem.value(place) for place in places if case.problem.feasible(place)]
    assert min(feasible) >= case.problem.minimum - 1e-9


def test_words_and_picture_of_a_case_give_the_same_limit():
    case = make_case(1)
    value = case.optimizer.limits["objective"].value
    assert f"cost up to {value:.2f} ± " in case.words()
    figure = figures.plot_cases([case] * 4)
    assert any(
        line.get_label() == "learned limit" and line.get_ydata()[0] == pytest.approx(value)
        for line in figure.axes[0].lines
    )


def test_the_four_cases_are_one_picture(tmp_path):
    (path,) = figures.draw_cases([make_case(number) for number in (1, 2, 3, 4)], tmp_path)
    assert path.name == "cases-paper.png"


def test_example_1_by_the_engine():
    numbers = example1().summary()
    assert numbers["threshold"] == pytest.approx(2.0284, abs=2e-4)
    assert abs(numbers["log_truncation_error"]) < 1e-3
    assert numbers["converged"]


def test_the_predictive_density_is_the_gaussian_far_from_crashes_and_lies_above_the_threshold_at_them():
    model = example1().model
    grid = np.linspace(-2, 6, 801)
    density = predictive_density(model, np.array([[0.2], [0.7]]), grid)
    assert np.trapezoid(density, grid) == pytest.approx([1, 1])
    mean, _ = model.moments(np.array([[0.2]]))
    assert np.trapezoid(density[0] * grid, grid) == pytest.approx(mean[0], abs=0.01)
    assert quantile(density, grid, 0.5)[0] == pytest.approx(mean[0], abs=0.02)
    below = grid <= model.threshold
    assert np.trapezoid(density[1, below], grid[below]) < 0.05


def test_the_mode_is_found_between_the_points_of_the_grid():
    grid = np.linspace(0, 1, 11)
    centres = np.array([0.234, 0.57])
    density = np.exp(-0.5 * ((grid - centres[:, None]) / 0.1) ** 2)
    assert mode(density, grid) == pytest.approx(centres, abs=1e-9)
