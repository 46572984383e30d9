"""The default strategy as users meet it: purity, crashes, constraints, several workers, budgets, its best guess."""

import numpy as np
import pytest

from crashbo import CRASHED, VIOLATED, Constraint, FixedModel, InputError, Options
from crashbo.model.numbers import NUMBERS
from crashbo.model.recipe import output_block
from crashbo.optimizer import Optimizer
from crashbo.problem.history import History
from crashbo.problem.outcome import Trial
from crashbo.problem.problem import Problem
from crashbo.problem.space import Categorical, Float, Int, Space
from crashbo.search.default import DefaultStrategy
from crashbo.search.price import crash_price

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def bowl(params, crash=lambda x, y: (x - 0.6) ** 2 + (y - 0.6) ** 2 < 0.03):
    x, y = params["x"], params["y"]
    return None if crash(x, y) else 100 * ((x - 0.35) ** 2 + (y - 0.45) ** 2)


def run(optimizer: Optimizer, n: int, function=bowl) -> Optimizer:
    for _ in range(n):
        params = optimizer.ask()
        value = function(params)
        optimizer.tell(params, CRASHED if value is None else value)
    return optimizer


@pytest.fixture(scope="module")
def tuned() -> Optimizer:
    return run(Optimizer(SQUARE, seed=1), 20)


def test_it_finds_the_optimum_beside_crashes(tuned):
    best = tuned.best()
    assert best.feasible
    assert bowl(best.params) < 0.05
    assert min(trial.objective for trial in tuned.trials if trial.objective is not None) < 0.05


def test_a_suggestion_is_a_pure_function_of_the_history(tuned):
    history = tuned.history
    first, second = DefaultStrategy().suggest(history), DefaultStrategy().suggest(history)
    assert np.array_equal(first.point, second.point)
    restored = Optimizer.from_json(tuned.to_json())
    assert restored.ask() == tuned.copy().ask()


def test_what_it_remembers_changes_nothing(tuned):
    strategy = DefaultStrategy()
    for count in (8, 12, 15, 20):
        kept = strategy.suggest(tuned.history.first(count))
        assert np.array_equal(kept.point, DefaultStrategy().suggest(tuned.history.first(count)).point)


def test_the_best_guess_is_never_worse_than_the_best_trial(tuned):
    for count in (8, 12, 16, 20):
        history = tuned.history.first(count)
        guess = DefaultStrategy().guess(history)
        seen = min(trial.objective for trial in history.trials if trial.objective is not None)
        assert bowl(history.space.decode(guess.point)) <= seen + 0.02 * abs(seen) + 1e-3


def test_it_says_what_crashes_have_to_do_with_the_cost():
    optimizer = Optimizer(SQUARE, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        x, y = rng.random(2)
        cost = (x - 0.2) ** 2 + (y - 0.3) ** 2
        optimizer.tell({"x": x, "y": y}, CRASHED if cost > 0.35 else cost)
    relation = optimizer.relation
    assert relation.high > 0.7
    assert relation.high + relation.unrelated + relation.low + relation.random == pytest.approx(1.0)
    assert "high values of the objective" in optimizer.crash_relation
    limit = optimizer.limits["objective"]
    assert limit.value == pytest.approx(0.35, abs=0.1)
    assert limit.deviation > 0


def test_maximising_is_minimising_the_negative():
    up = run(Optimizer(SQUARE, seed=3, direction="maximize"), 9, lambda p: None if bowl(p) is None else -bowl(p))
    down = run(Optimizer(SQUARE, seed=3), 9)
    assert [dict(trial.params) for trial in up.trials] == [dict(trial.params) for trial in down.trials]


def test_while_everything_crashes_the_design_goes_on():
    optimizer = run(Optimizer(SQUARE, seed=0), 14, lambda params: None)
    assert {one.why.mode for one in [optimizer.ask()]} == {"initial"}
    points = optimizer.history.points
    gaps = np.linalg.norm(points[:, None] - points, axis=-1) + 9 * np.eye(len(points))
    assert gaps.min() > 0.03


def test_several_workers_get_different_points(tuned):
    state = tuned.to_json()
    for count, apart in ((10, 1e-3), (20, 1e-6)):
        asked = Optimizer.from_json(state | {"trials": state["trials"][:count]}).ask(4)
        points = np.array([tuned.space.encode(one) for one in asked])
        gaps = np.linalg.norm(points[:, None] - points, axis=-1) + 9 * np.eye(4)
        assert gaps.min() > apart


def test_a_level_set_constraint_with_unknown_limit():
    optimizer = Optimizer(SQUARE, seed=1, constraints=[Constraint("g")])
    for _ in range(18):
        params = optimizer.ask()
        total = params["x"] + params["y"]
        cost = (params["x"] - 1) ** 2 + (params["y"] - 1) ** 2
        optimizer.tell(params, cost, g=VIOLATED if total > 1.2 else total)
    best = optimizer.best()
    assert best.feasible
    assert best.params["x"] + best.params["y"] <= 1.22
    assert best.mean == pytest.approx(0.32, abs=0.03)
    assert optimizer.limits["g"].value == pytest.approx(1.2, abs=0.05)


def test_a_known_limit_counts_as_a_failure_where_it_is_broken():
    optimizer = Optimizer(SQUARE, constraints=[Constraint("g", threshold=0.5)])
    optimizer.tell({"x": 0.9, "y": 0.1}, 1.0, g=0.9)
    optimizer.tell({"x": 0.1, "y": 0.1}, 2.0, g=0.1)
    assert optimizer.history.failed.tolist() == [True, False]


def test_discrete_parameters_are_rounded_before_they_are_modelled():
    space = {"n": Int(1, 9), "kind": Categorical(["a", "b", "c"]), "rate": Float(1e-3, 1.0, log=True)}

    def cost(p):
        return None if p["n"] == 9 else abs(p["n"] - 4) + {"a": 1.0, "b": 0.0, "c": 2.0}[p["kind"]] + p["rate"]

    optimizer = run(Optimizer(space, seed=0), 22, cost)
    assert min(trial.objective for trial in optimizer.trials if trial.objective is not None) < 0.5


def test_a_budget_ends_the_design_with_the_first_success():
    optimizer = Optimizer(SQUARE, options=Options(crash_budget=2))
    assert optimizer.ask().why.mode == "initial"
    optimizer.tell({"x": 0.9, "y": 0.9}, CRASHED)
    assert optimizer.ask().why.mode == "initial"
    optimizer.tell({"x": 0.3, "y": 0.4}, 1.0)
    assert optimizer.ask().why.mode == "gain"


def test_a_budget_of_nothing_needs_a_known_success():
    with pytest.raises(InputError, match=r"`crash_budget` must leave room for a crash.*initial_points"):
        Optimizer(SQUARE, options=Options(crash_budget=0)).ask()
    optimizer = Optimizer(SQUARE, initial_points=[{"x": 0.3, "y": 0.4}], options=Options(crash_budget=0))
    run(optimizer, 12)
    assert sum(trial.crashed for trial in optimizer.trials) == 0
    assert optimizer.best().mean < bowl({"x": 0.3, "y": 0.4}) + 1e-6


def test_a_high_price_does_not_make_a_useless_trial_the_best():
    """After many crashes a known success is the safest point, but repeating it gains nothing."""
    rng = np.random.default_rng(0)
    crashes = 0.6 * rng.random((10, 2))
    points = [*crashes[:4], *([0.8 + 0.01 * i, 0.8] for i in range(4)), *crashes[4:]]
    costs = [None] * 4 + [18.0 + 0.1 * i for i in range(4)] + [None] * 6
    trials = [
        Trial(i, {"x": float(x), "y": float(y)}, cost)
        for i, ((x, y), cost) in enumerate(zip(points, costs, strict=True))
    ]
    history = History(Problem(Space(SQUARE)), trials=tuple(trials), asked=len(trials))
    strategy = DefaultStrategy()
    score = strategy.score(history)
    chosen = strategy.suggest(history).point
    assert score.gain(chosen[None])[0] > 1e-3
    assert np.linalg.norm(history.points[4:8] - chosen, axis=1).min() > 1e-3


def test_a_high_price_does_not_put_off_a_substantial_gain():
    """Six crashes in a row make the price high; while much is to be gained elsewhere, it is bounded."""
    failures = [False] * 4 + [True] * 6
    points = np.random.default_rng(1).random((10, 2)) * [0.3, 1.0]
    trials = [
        Trial(i, {"x": float(x), "y": float(y)}, None if bad else 5.0 + float(x + y))
        for i, ((x, y), bad) in enumerate(zip(points, failures, strict=True))
    ]
    history = History(Problem(Space(SQUARE)), trials=tuple(trials), asked=len(trials))
    assert crash_price(failures, 4, history.options, NUMBERS) > 20
    assert DefaultStrategy().score(history).price < 10


def test_crashes_before_the_first_success_are_not_the_models_fault():
    trials = [Trial(i, {"x": 0.1 * i, "y": 0.2}, None) for i in range(8)] + [Trial(8, {"x": 0.9, "y": 0.9}, 1.0)]
    history = History(Problem(Space(SQUARE)), trials=tuple(trials), asked=len(trials))
    assert DefaultStrategy().score(history).price <= 4 * NUMBERS.price_per_odds


def test_less_risk_means_fewer_crashes():
    def edge(params):  # the optimum lies on the edge of the crashes
        return None if params["x"] + params["y"] > 1.2 else -params["x"] - params["y"]

    crashes = {
        risk: sum(
            trial.crashed
            for seed in range(3)
            for trial in run(Optimizer(SQUARE, seed=seed, options=Options(risk=risk)), 25, edge).trials
        )
        for risk in (0.05, 1.0)
    }
    assert crashes[0.05] < crashes[1.0]


def test_reasons_with_a_place_are_named():
    optimizer = Optimizer(SQUARE, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(40):
        x, y = rng.random(2)
        reason = "fell" if x > 0.75 else "hot" if y > 0.8 else ""
        optimizer.tell({"x": x, "y": y}, CRASHED if reason else (x - 0.3) ** 2 + y, reason=reason)
    places = {place.reason: place for place in optimizer.surrogate().places()}
    assert set(places) == {"fell", "hot"}
    assert places["fell"].point[0] > 0.75
    assert places["hot"].point[1] > 0.8


def test_contradicting_and_extreme_trials_give_a_sound_model():
    for values in ([1.0, None, 2.0, 1e99], [1e-99, 1e-99, None, 0.0], [None, 5.0, None, 5.0]):
        trials = tuple(Trial(i, {"x": 0.5, "y": 0.5 + 0.1 * (i // 2)}, value) for i, value in enumerate(values))
        history = History(Problem(Space(SQUARE)), trials=trials, asked=4)
        surrogate = DefaultStrategy().surrogate(history)
        X = np.random.default_rng(0).random((20, 2))
        assert np.isfinite(surrogate.success(X)).all()
        assert np.isfinite(np.concatenate(surrogate.moments(X))).all()
        assert np.isfinite(DefaultStrategy().suggest(history).point).all()


@pytest.mark.parametrize("cost", [0.5, None])
def test_fixed_hyperparameters_hold_before_the_first_crash_too(cost):
    fixed, limit = FixedModel(0.3, 2.0), Constraint("g")
    trials = (Trial(0, {"x": 0.1, "y": 0.2}, 1.0, {"g": 0.1}), Trial(1, {"x": 0.7, "y": 0.2}, cost, {"g": 0.1}))
    told = History(Problem(Space(SQUARE), (limit,), options=Options(fixed={"objective": fixed})), trials)
    assert output_block(told, "objective", absorbed=False).fixed == fixed
    variance = np.square(DefaultStrategy().surrogate(told).moments(np.array([[0.4, 1.0]]))[1])
    assert variance[0] < 2.0  # of the prior that was fixed, not of one that was learned
