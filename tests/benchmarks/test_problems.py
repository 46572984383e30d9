"""Problems of the suite: their optima hold, their noise and crashes follow from seed and trial."""

import math

import numpy as np
import pytest
from benchmarks.suite.optima import sobol_rows
from benchmarks.suite.problems import GROUPS, problems

NAMES = list(problems())
EXACT = [name for name in NAMES if name != "ant"]  # contacts in another version of MuJoCo may end elsewhere
CHEAP = [name for name in NAMES if problems()[name].experiment is None]


@pytest.mark.parametrize("name", EXACT)
def test_optimum_is_reached_where_trials_succeed(name):
    problem = problems()[name]
    value, succeeds = problem.truth(np.array([problem.minimiser]))
    assert succeeds[0]
    assert value[0] == pytest.approx(problem.optimum, rel=1e-12, abs=1e-12)
    assert problem.group in GROUPS


@pytest.mark.parametrize("name", CHEAP)
def test_optimum_is_not_beaten_by_dense_search(name):
    problem = problems()[name]
    value, succeeds = problem.truth(sobol_rows(problem, 14, seed=5))
    assert value[succeeds].min(initial=math.inf) >= problem.optimum
    near = np.array(problem.minimiser) * (
        1 + 1e-3 * np.random.default_rng(0).standard_normal((2000, len(problem.space)))
    )
    low, high = sobol_rows(problem, 14, seed=5).min(0), sobol_rows(problem, 14, seed=5).max(0)
    if "tool" not in problem.space:
        value, succeeds = problem.truth(near.clip(low, high))
        assert value[succeeds].min(initial=math.inf) >= problem.optimum - 1e-9 * max(1.0, abs(problem.optimum))


@pytest.mark.parametrize("name", ["eggcrate", "hartmann6", "michalewicz10"])
def test_checkerboard_crashes_in_half_of_the_cube(name):
    problem = problems()[name]
    crash = np.sin(2 * math.pi * (rows := sobol_rows(problem, 12, seed=1))).prod(-1) > 0
    assert (problem.truth(rows)[1] == ~crash).all()
    assert crash.mean() == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize(
    ("name", "row", "value"),
    [
        ("eggcrate", [2 / 3, 1 / 3], -98.0),
        ("hartmann6", [0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573], -33.2237),
        ("random-hartmann3", [0.114614, 0.555649, 0.852547], -3.86278),
        ("disks", [3.584428, -1.848126], 0.0),
        ("case4", [(math.pi + 5) / 15, 2.275 / 15], 0.397887),
    ],
)
def test_published_values(name, row, value):
    assert problems()[name].truth(np.array([row]))[0][0] == pytest.approx(value, abs=1e-3)


def test_random_crashes_hit_every_method_at_the_same_trials():
    problem = problems()["random-branin"]
    here, there = {"x1": 0.2, "x2": 0.3}, {"x1": 0.9, "x2": 0.8}
    hit = [problem.run(here, 3, trial).cost is None for trial in range(400)]
    assert hit == [problem.run(there, 3, trial).cost is None for trial in range(400)]
    assert np.mean(hit) == pytest.approx(0.15, abs=0.05)
    assert hit != [problem.run(here, 4, trial).cost is None for trial in range(400)]


def test_noise_is_told_but_does_not_count():
    problem = problems()["noisy-ackley"]
    outcomes = [problem.run({"x1": 0.6, "x2": 0.45}, 0, trial) for trial in range(200)]
    assert len({outcome.value for outcome in outcomes}) == 1
    errors = [outcome.cost - outcome.value for outcome in outcomes]
    assert np.std(errors) == pytest.approx(problem.noise_std, rel=0.2)
    assert problem.run({"x1": 0.4, "x2": 0.3}, 0, 1).cost is None


def test_choice_decides_about_the_crash():
    problem = problems()["machine"]
    costs = {tool: problem.run({"x1": 0.9, "x2": 0.5, "tool": tool}, 0, 1).cost for tool in ("mill", "drill", "laser")}
    assert costs["drill"] is None
    assert costs["mill"] is not None
    assert costs["laser"] is not None


def test_design_is_shared_and_small():
    for problem in problems().values():
        assert 3 <= len(problem.design(0)) == problem.initial <= 10
        assert problem.design(1) == problem.design(1) != problem.design(2)


def test_robot_crashes_and_balances():
    problem = problems()["pole2d"]
    good, bad = {"x1": 0.3125, "x2": 0.3875}, {"x1": 1.0, "x2": 0.0}
    outcome = problem.run(good, 0, 1)
    assert outcome.value == pytest.approx(0.781, abs=0.05)
    assert outcome.cost != outcome.value
    assert problem.run(bad, 0, 1).cost is None


def test_the_robot_with_a_lagging_arm_gains_a_factor_and_crashes():
    problem = problems()["arm2d"]
    assert problem.run({"x1": 0.7375, "x2": 0.2625}, 0, 1).value == pytest.approx(0.746, abs=0.02)
    assert problem.run({"x1": 0.6, "x2": 0.8}, 0, 1).value > 5 * problem.optimum
    assert problem.run({"x1": 0.2, "x2": 0.1}, 0, 1).cost is None
    assert problems()["arm5d"].optimum < 0.8 * problem.optimum


def test_the_ant_walks_and_falls():
    pytest.importorskip("gymnasium")
    problem = problems()["ant"]
    value, succeeds = problem.truth(np.array([problem.minimiser]))
    assert succeeds[0]
    assert value[0] < -0.7
    falls = [problem.run(params, 0, number).cost is None for number, params in enumerate(problem.design(0))]
    assert any(falls)
    assert not all(falls)
