"""mES by hand, its gradient, the weight of constraints; cases, mode switch, best guess, purity, a known optimum."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import crashbo
from crashbo.model.belief import Averaged
from crashbo.problem.history import History
from crashbo.problem.options import FixedModel, Options
from crashbo.problem.outcome import Trial
from crashbo.problem.problem import Problem
from crashbo.problem.space import Space
from crashbo.research.problems import SYNTHETIC
from crashbo.search.paper import PaperStrategy
from crashbo.search.paper.model import GPCR
from crashbo.search.paper.strategy import PaperScore, log_mes
from tests.search.paper.models import simulation1, simulation2

MODEL = FixedModel(0.25, 1.0)
SQUARE = Space({"x1": (0.0, 1.0), "x2": (0.0, 1.0)})


def history(*told, constraints=(), **options) -> History:
    """Trials given as (x1, x2, objective, constraint values)."""
    trials = tuple(Trial(i, {"x1": a, "x2": b}, cost, dict(held)) for i, (a, b, cost, held) in enumerate(told))
    fixed = dict.fromkeys(("objective", *(one.name for one in constraints)), MODEL)
    chosen = Options(**{"initial": 1, "random_start": True, "fixed": fixed, **options})
    return History(Problem(SQUARE, tuple(constraints), options=chosen), trials, asked=len(trials))


G = crashbo.Constraint("g")
KNOWN = crashbo.Constraint("g", 0.5)


def test_case_1_and_2_absorb_crashes():
    models = PaperStrategy().surrogate(history((0.2, 0.2, 0.5, {}), (0.8, 0.8, None, {})))
    assert models.outputs == ("objective",)
    assert len(models.objective.posterior.rows.sign) == 2
    assert (models.relation.high, models.relation.unrelated, models.relation.low) == (1.0, 0.0, 0.0)
    assert models.limits["objective"].deviation > 0


def test_case_3_has_a_standard_gp_and_a_constraint_with_its_own_threshold():
    models = PaperStrategy().surrogate(
        history((0.2, 0.2, 0.5, {"g": 0.1}), (0.8, 0.8, 2.0, {"g": None}), constraints=[G])
    )
    assert models.objective.threshold == math.inf
    assert len(models.objective.posterior.rows.sign) == 0
    assert set(models.limits) == {"g"}
    assert models.relation is None
    X = np.random.default_rng(0).random((4, 2))
    assert (models.success(X, "objective") == 1).all()
    assert models.success(X) == pytest.approx(models.success(X, "g"))


def test_case_4_has_both_and_every_output_is_seen_or_labelled_on_its_own():
    told = [
        (0.2, 0.2, 0.5, {"g": 0.1}),
        (0.8, 0.8, None, {"g": 0.3}),  # safe but unstable
        (0.2, 0.8, 0.7, {"g": None}),  # stable but unsafe
        (0.8, 0.2, None, {}),  # nothing seen of the constraint
    ]
    models = PaperStrategy().surrogate(history(*told, constraints=[G]))
    objective, constraint = models.objective.models.block, models.constraints["g"].models.block
    assert objective.values.tolist() == [0.5, 0.7]
    assert (objective.below.tolist(), objective.above.tolist()) == ([0, 2], [1, 3])
    assert constraint.values.tolist() == [0.1, 0.3]
    assert (constraint.below.tolist(), constraint.above.tolist()) == ([0, 1], [2])
    assert set(models.limits) == {"objective", "g"}


def test_a_known_limit_is_not_estimated_and_values_on_both_sides_are_a_standard_gp():
    below = PaperStrategy().surrogate(
        history((0.2, 0.2, 0.5, {"g": 0.1}), (0.8, 0.8, 2.0, {"g": None}), constraints=[KNOWN])
    )
    assert (below.limits["g"].value, below.limits["g"].deviation) == (0.5, 0.0)
    assert len(below.constraints["g"].posterior.rows.sign) == 2
    both = PaperStrategy().surrogate(
        history((0.2, 0.2, 0.5, {"g": 0.1}), (0.8, 0.8, 2.0, {"g": 0.9}), constraints=[KNOWN])
    )
    assert len(both.constraints["g"].posterior.rows.sign) == 0
    assert both.success(np.array([[0.2, 0.2], [0.8, 0.8]])) == pytest.approx([1.0, 0.0], abs=1e-6)


def test_costs_are_negated_where_they_are_maximised():
    down = history((0.2, 0.2, 3.0, {}), (0.8, 0.8, None, {}))
    up = replace(down, problem=replace(down.problem, direction="maximize"))
    assert PaperStrategy().surrogate(up).objective.models.block.values.tolist() == [-3.0]


def test_while_everything_crashes_success_is_sought():
    told = history((0.3, 0.3, None, {}), (0.6, 0.6, None, {}))
    strategy = PaperStrategy()
    found = strategy.suggest(told)
    assert found.mode == "success"
    assert found.success_probability < 0.95
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 2), -1).reshape(-1, 2)
    assert found.success_probability >= strategy.surrogate(told).success(grid).max() - 1e-6
    assert not strategy.guess(told).feasible


def test_the_switch_is_a_global_search_not_a_check_on_the_data():
    # The trials themselves are unsure to hold; a point away from them is not.
    told = history((0.2, 0.2, 0.5, {"g": 0.1}), (0.8, 0.8, 2.0, {"g": None}), constraints=[G])
    assert PaperStrategy().suggest(told).mode == "mesco"
    strict = history((0.2, 0.2, 0.5, {"g": 0.1}), (0.8, 0.8, 2.0, {"g": None}), constraints=[G], delta=1e-12)
    assert PaperStrategy().suggest(strict).mode == "success"


def test_the_acquisition_can_be_chosen():
    told = history((0.2, 0.2, 0.5, {"g": 0.1}), (0.8, 0.8, 2.0, {"g": None}), constraints=[G])
    for acquisition, mode in (("mes", "mes"), ("auto", "mesco")):
        problem = replace(told.problem, strategy="paper", acquisition=acquisition)
        assert PaperStrategy().suggest(replace(told, problem=problem)).mode == mode


@pytest.mark.parametrize("sampler", ["virtual", "pathwise"])
def test_a_suggestion_is_a_pure_function_of_the_history(sampler):
    told = history((0.2, 0.2, 0.5, {}), (0.8, 0.8, None, {}), (0.4, 0.1, 0.8, {}), sampler=sampler)
    used = PaperStrategy()
    used.suggest(told.first(2))
    used.guess(told)
    first, second = used.suggest(told), PaperStrategy().suggest(told)
    assert np.array_equal(first.point, second.point)
    assert (first.value, first.mode) == (second.value, second.mode)
    other = PaperStrategy().suggest(replace(told, asked=7))
    assert other.value != first.value  # other samples of the minimum


def test_learned_hyperparameters_are_a_pure_function_too():
    rng = np.random.default_rng(0)
    told = [(a, b, None if a > 0.7 else a + b, {}) for a, b in rng.random((15, 2)).tolist()]
    whole = history(*told, fixed={})
    used = PaperStrategy()
    for count in (3, 9, 14):
        used.surrogate(whole.first(count))
    fresh = PaperStrategy().surrogate(whole)
    assert used.surrogate(whole).limits == fresh.limits


def test_the_suggestion_is_the_highest_score_on_a_grid():
    told = history((0.2, 0.2, 0.5, {}), (0.8, 0.8, None, {}), (0.4, 0.1, 0.8, {}))
    found, score = PaperStrategy().suggest(told), PaperStrategy().score(told)
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 61)] * 2), -1).reshape(-1, 2)
    assert found.value >= 0.999 * score(grid).max()
    assert score(found.point[None])[0] == pytest.approx(found.value)


def test_pending_trials_are_not_suggested_again():
    told = history((0.2, 0.2, 0.5, {}), (0.8, 0.8, None, {}), (0.4, 0.1, 0.8, {}))
    first = PaperStrategy().suggest(told).point
    busy = replace(told, pending=(SQUARE.decode(first),))
    assert np.linalg.norm(PaperStrategy().suggest(busy).point - first) > 0.05
    assert PaperStrategy().score(busy).models.moments(first[None])[1][0] < 0.05


def test_the_best_guess_is_the_lowest_mean_where_success_is_likely():
    rng = np.random.default_rng(1)
    told = [
        (a, b, None if a + b > 1.3 else 1.5 - a - b, {"g": None if a > 0.8 else a})
        for a, b in rng.random((14, 2)).tolist()
    ]
    data = history(*told, constraints=[G])
    strategy = PaperStrategy()
    guess, models = strategy.guess(data), strategy.surrogate(data)
    assert guess.feasible
    assert models.success(guess.point[None])[0] >= 0.95
    grid = np.stack(np.meshgrid(*[np.linspace(0, 1, 81)] * 2), -1).reshape(-1, 2)
    safe = grid[models.success(grid) >= 0.95]
    assert models.moments(guess.point[None])[0][0] <= models.moments(safe)[0].min() + 1e-3


def test_the_first_point_is_random_and_mixed_spaces_work():
    space = crashbo.Space({"a": (0.0, 1.0), "n": crashbo.Int(1, 4), "c": crashbo.Categorical(["u", "v"])})
    optimizer = crashbo.Optimizer(space, strategy="paper", seed=5, options=Options(initial=1, random_start=True))
    assert optimizer.ask().why.mode == "initial"
    for _ in range(4):
        params = optimizer.ask()
        optimizer.tell(params, crashbo.CRASHED if params["n"] == 4 else params["a"] + params["n"])
    assert space.validate(optimizer.best().params)


def test_simulation_1_is_solved_in_few_trials():
    problem = SYNTHETIC["sim1"]
    fixed = {"objective": FixedModel(0.25, 1.0, 0.01, (0.0, 5.0))}
    options = Options(initial=1, random_start=True, fixed=fixed)
    optimizer = crashbo.Optimizer(problem.space, strategy="paper", seed=3, options=options)
    rng = np.random.default_rng(3)
    for _ in range(25):
        params = optimizer.ask()
        cost = problem.evaluate(params, rng)["objective"]
        optimizer.tell(params, crashbo.CRASHED if cost is None else cost)
    best = optimizer.best()
    assert best.feasible
    assert problem.feasible(best.params)
    assert problem.value(best.params) < 0.02


def test_mes_by_hand():
    # One point, mean 1, deviation 2, minima 0 and 2: z = -1/2 and 1/2. From tables: phi(1/2) = 0.3520653,
    # Phi(1/2) = 0.6914625, Phi(-1/2) = 0.3085375.
    low = 0.5 * 0.3520653 / (2 * 0.6914625) - math.log(0.6914625)
    high = -0.5 * 0.3520653 / (2 * 0.3085375) - math.log(0.3085375)
    value, _, _ = log_mes(np.array([1.0]), np.array([2.0]), np.array([0.0, 2.0]))
    assert math.exp(value[0]) == pytest.approx(0.5 * (low + high), rel=1e-6)


def test_mes_is_the_entropy_that_the_cut_takes():
    mean, deviation, minimum = 0.7, 0.4, 0.5
    mass = norm.sf(minimum, mean, deviation)

    def density(f):
        return norm.pdf(f, mean, deviation) / mass

    cut = quad(lambda f: -density(f) * math.log(density(f)), minimum, mean + 12 * deviation)[0]
    gained = float(norm(mean, deviation).entropy()) - cut
    value, _, _ = log_mes(np.array([mean]), np.array([deviation]), np.array([minimum]))
    assert math.exp(value[0]) == pytest.approx(gained, rel=1e-6)


def test_derivatives_by_moments():
    mean, deviation, minima = np.array([0.3, 2.0, -1.0]), np.array([0.5, 0.2, 1.5]), np.array([-0.4, 0.1, 0.2])
    _, by_mean, by_deviation = log_mes(mean, deviation, minima)
    step = 1e-6
    ahead, behind = log_mes(mean + step, deviation, minima)[0], log_mes(mean - step, deviation, minima)[0]
    assert by_mean == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)
    ahead, behind = log_mes(mean, deviation + step, minima)[0], log_mes(mean, deviation - step, minima)[0]
    assert by_deviation == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)


def models() -> Averaged[GPCR]:
    objective, constraint = simulation2()
    return Averaged(objective, {"g": constraint})


def crashing() -> Averaged[GPCR]:
    return Averaged(simulation1(), {})


@pytest.mark.parametrize(
    "score",
    [
        PaperScore(crashing(), "mes", np.array([-0.5, 0.1])),
        PaperScore(models(), "mesco", np.array([-50.0, -10.0, 3.0])),
        PaperScore(crashing()),
        PaperScore(models()),
    ],
)
def test_gradients_in_the_points(score):
    X, step = np.random.default_rng(2).random((5, 2)), 1e-6
    values, gradients = score.with_slope(X)
    assert values == pytest.approx(score.log(X))
    assert score(X) == pytest.approx(np.exp(values))
    for j in range(2):
        move = step * np.eye(2)[j]
        assert gradients[:, j] == pytest.approx(
            (score.log(X + move) - score.log(X - move)) / (2 * step), rel=1e-3, abs=1e-4
        )


def test_constraints_are_multiplied_and_own_crashes_are_not():
    X, both = np.random.default_rng(3).random((6, 2)), models()
    score = PaperScore(both, "mesco", np.array([-50.0, 3.0]))
    assert score(X) == pytest.approx(score.gain(X) * both.success(X, "g"))
    alone = PaperScore(crashing(), "mes", np.array([0.0]))
    assert alone(X) == pytest.approx(alone.gain(X))
    assert PaperScore(both).gain(X) is None
    assert PaperScore(both)(X) == pytest.approx(both.success(X))
