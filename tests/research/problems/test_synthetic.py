import itertools
import math
import pickle

import numpy as np
import pytest

from crashbo.errors import InputError
from crashbo.research.problems import ALL_CRASH, CASE2, CASE4, SIM1, SIM2, SYNTHETIC, Problem
from crashbo.research.problems.synthetic import bowl, branin, gardner

CELLS = 200
MIDDLES = ((np.arange(CELLS) + 0.5) / CELLS).tolist()
GRID = [{"x1": x1, "x2": x2} for x1, x2 in itertools.product(MIDDLES, MIDDLES)]
EVERY = pytest.mark.parametrize("problem", SYNTHETIC.values(), ids=SYNTHETIC)


def test_registry() -> None:
    assert list(SYNTHETIC) == ["sim1", "sim2", "case2", "case4", "all_crash"]


@pytest.mark.parametrize(
    ("problem", "fraction"),
    [(SIM1, 0.72), (SIM2, 1 - 2 * math.pi / 9), (CASE2, 1 - 2 * math.pi / 9), (ALL_CRASH, 0.95)],
)
def test_infeasible_fraction(problem: Problem, fraction: float) -> None:
    infeasible = np.mean([not problem.feasible(params) for params in GRID])
    assert infeasible == pytest.approx(fraction, abs=1e-3 if problem is not SIM1 else 5e-3)


@pytest.mark.parametrize(
    ("problem", "minimum", "minimiser"),
    [
        (SIM1, 0.0, (0.942, 0.0)),
        (SIM2, 0.3979, (0.5428, 0.1517)),
        (CASE2, 0.3979, (0.5428, 0.1517)),
        (CASE4, 0.3979, (0.5428, 0.1517)),
        (ALL_CRASH, 0.0, (0.75, 0.28)),
    ],
    ids=SYNTHETIC,
)
def test_minimum_against_a_dense_grid(problem: Problem, minimum: float, minimiser: tuple[float, float]) -> None:
    assert problem.minimum == pytest.approx(minimum, abs=5e-5)
    assert tuple(problem.minimiser.values()) == pytest.approx(minimiser, abs=5e-4)
    assert problem.feasible(problem.minimiser)
    assert problem.value(problem.minimiser) == pytest.approx(problem.minimum, abs=1e-6)
    feasible = [params for params in GRID if problem.feasible(params)]
    values = [problem.value(params) for params in feasible]
    best = feasible[int(np.argmin(values))]
    assert problem.minimum <= min(values) <= problem.minimum + 0.02
    assert tuple(best.values()) == pytest.approx(minimiser, abs=1 / CELLS)


def test_known_values() -> None:
    assert gardner(0.9468, 0.0) == pytest.approx(0.00117, abs=1e-5)  # the paper's best guess
    assert branin(0.5448, 0.1527) == pytest.approx(0.4, abs=5e-3)
    assert branin(1 / 3, 0.0) == pytest.approx(36 + 10 * (1 - 1 / (8 * math.pi)) + 10)  # u = v = 0
    assert bowl(0.85, 0.28) == pytest.approx(0.4)
    assert SIM2.measure(0.5, 0.5)["g"] == pytest.approx(-math.sqrt(2) / 3)


@EVERY
def test_outcomes_follow_the_noise_free_truth(problem: Problem) -> None:
    for params in problem.space.sample(200, np.random.default_rng(1)):
        outcome = problem.evaluate(params, np.random.default_rng(2))
        truth = problem.measure(**params)
        assert tuple(outcome) == tuple(truth) == ("objective", *problem.constraints)
        assert problem.feasible(params) == (None not in outcome.values())
        for name, value in outcome.items():
            assert (value is None) == (truth[name] is None)
            if value is not None:
                assert type(value) is float
                assert value <= problem.thresholds.get(name, math.inf) + 6 * problem.noise_std
        if truth["objective"] is not None:
            assert truth["objective"] == problem.value(params)
        assert problem.evaluate(params, np.random.default_rng(2)) == outcome


@EVERY
def test_noise(problem: Problem) -> None:
    rng = np.random.default_rng(0)
    runs = [problem.evaluate(problem.minimiser, rng) for _ in range(2000)]
    for name, truth in problem.measure(**problem.minimiser).items():
        values = np.array([run[name] for run in runs], dtype=float)
        assert values.mean() == pytest.approx(truth, abs=1e-3)
        assert values.std() == pytest.approx(0.01, rel=0.1)


@EVERY
def test_problems_check_their_params_and_pickle(problem: Problem) -> None:
    with pytest.raises(InputError, match=r"`x1` must lie in \[0.0, 1.0\]; got 2.0."):
        problem.value({"x1": 2, "x2": 0})
    assert pickle.loads(pickle.dumps(problem)) == problem


def test_each_output_has_a_value_or_a_label_of_its_own() -> None:
    safe_but_unstable, stable_but_unsafe = {"x1": 0.5, "x2": 0.9}, {"x1": 0.97, "x2": 0.16}
    rng = np.random.default_rng(0)
    for params, expected in [
        ({"x1": 0.5, "x2": 0.15}, {"objective": True, "g": True}),
        (safe_but_unstable, {"objective": False, "g": True}),
        (stable_but_unsafe, {"objective": True, "g": False}),
        ({"x1": 0.0, "x2": 0.0}, {"objective": False, "g": False}),
    ]:
        assert {name: value is not None for name, value in CASE4.evaluate(params, rng).items()} == expected
    assert SIM2.evaluate(stable_but_unsafe, rng)["objective"] is not None
    assert CASE2.evaluate(stable_but_unsafe, rng) == {"objective": None}
    assert CASE2.evaluate(safe_but_unstable, rng)["objective"] is not None
    assert CASE2.value(safe_but_unstable) > 20
