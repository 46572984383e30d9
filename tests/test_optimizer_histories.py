"""Odd histories and several threads: nothing fails, nothing is given out twice."""

import math
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crashbo
from crashbo import CRASHED, VIOLATED, Constraint, Optimizer, Options
from crashbo.model.surrogate import Limit
from crashbo.problem.history import History
from crashbo.search.strategy import Guess
from tests.test_optimizer import LINE, QUICK, SQUARE, cost, run


def follow(optimizer: Optimizer, outcomes: list) -> None:
    """Ask and tell; nothing may fail, leave the space, or be tried again after it crashed."""
    crashed = []
    for outcome in outcomes:
        params = optimizer.ask()
        assert optimizer.space.validate(params) == params
        assert dict(params) not in crashed
        if outcome is CRASHED:
            crashed.append(dict(params))
        optimizer.tell(params, outcome)
    assert optimizer.space.validate(optimizer.best().params)
    assert all(math.isfinite(value) for value in optimizer.thresholds.values())


COSTS = st.one_of(
    st.just(CRASHED),
    st.just(0.0),
    st.floats(-10, 10),
    st.sampled_from([1e100, -1e100, 1e-100, 1e-300, 1e12, -1e12, 1.0, 1.0 + 1e-12]),
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(COSTS, min_size=1, max_size=6), st.integers(0, 1000))
def test_any_sequence_of_outcomes_is_survived(outcomes, seed):
    follow(Optimizer(SQUARE, seed=seed, options=Options(initial=2, raw=32, samples=2)), outcomes)


@pytest.mark.parametrize(
    "outcomes",
    [
        [CRASHED] * 8,
        [CRASHED] * 4 + [1.0] + [CRASHED] * 3,
        [5.0] * 7,
        [0.0] * 6,
        [0.0, CRASHED] * 4,
        [1e100, -1e100, CRASHED, 1e-100, 0.0, 1e100],
        [1e-300, 2e-300, CRASHED, 1e-300, 3e-300],
        [1.0, 1.0 + 1e-12, CRASHED, 1.0 - 1e-12, 1.0],
        [1e-3, 1e12, 1e-3, CRASHED, 1e12],
    ],
    ids=["crashes", "one success", "constant", "zeros", "zeros and crashes", "huge", "tiny", "nearly equal", "wide"],
)
def test_odd_histories_are_survived(outcomes):
    follow(Optimizer(SQUARE, options=Options(initial=2, raw=64, samples=3)), outcomes)


@pytest.mark.parametrize("constraint", [Constraint("g"), Constraint("g", 0.5)])
@pytest.mark.parametrize("told", [[VIOLATED] * 5, [0.1] * 5, [0.1, VIOLATED, 0.1, VIOLATED, VIOLATED], [3.0, 0.1] * 2])
def test_odd_constraints_are_survived(constraint, told):
    optimizer = Optimizer(LINE, constraints=[constraint], options=Options(initial=2, raw=64, samples=3))
    for number, value in enumerate(told):
        params = optimizer.ask()
        optimizer.tell(params, CRASHED if number == 2 else 1.0, g=value)
    assert optimizer.space.validate(optimizer.ask())
    assert optimizer.space.validate(optimizer.best().params)


def test_contradicting_repeats_are_survived():
    optimizer = Optimizer(LINE, options=Options(initial=2, raw=64, samples=3))
    for outcome in [1.0, CRASHED, 2.0, CRASHED, -3.0, CRASHED, 1e6]:
        optimizer.tell({"x": 0.4}, outcome)
    optimizer.tell({"x": 0.4 + 1e-12}, CRASHED)
    suggestion = optimizer.ask()
    assert abs(suggestion["x"] - 0.4) > 1e-6
    assert math.isfinite(optimizer.best().mean)


def test_points_that_crashed_are_not_tried_again_in_a_finite_space():
    optimizer = Optimizer({"order": crashbo.Int(1, 12)}, options=Options(initial=1, raw=64, samples=3))
    tried = []
    for _ in range(8):
        params = optimizer.ask()
        tried.append(params["order"])
        optimizer.tell(params, CRASHED)
    assert len(set(tried)) == len(tried)


@pytest.mark.parametrize("choices", [1, 2])
def test_initial_trials_of_a_finite_space_do_not_repeat_a_crash(choices):
    space = {"order": crashbo.Int(1, 5), "filter": crashbo.Categorical(["none", "butter"][:choices])}
    for seed in range(10):
        optimizer = Optimizer(space, seed=seed, options=Options(initial=4))
        tried = []
        for _ in range(4):
            params = optimizer.ask()
            assert dict(params) not in tried
            tried.append(dict(params))
            optimizer.tell(params, CRASHED)


def test_threads_get_no_number_and_no_point_twice():
    optimizer = Optimizer(SQUARE, seed=0, options=QUICK)
    run(optimizer, 4)
    found = []

    def work():
        for _ in range(3):
            suggestion = optimizer.ask()
            found.append(suggestion)
            optimizer.tell(suggestion, cost(suggestion))

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(one.number for one in found) == list(range(4, 13))
    assert len({tuple(one.values()) for one in found}) == 9
    assert [trial.number for trial in optimizer.trials] == list(range(13))
    assert optimizer.pending == ()


class Interrupted:
    """Whenever it is asked for its models, another thread tells a crash."""

    def __init__(self) -> None:
        self.seen: list[History] = []
        self.interrupt = lambda: None

    def surrogate(self, history: History) -> Any:
        thread = threading.Thread(target=self.interrupt)
        thread.start()
        thread.join(10)
        self.seen.append(history)
        flat = np.zeros(1)
        models = {"moments": lambda X: (flat, flat), "success": lambda X: flat, "any_cost": True}
        return SimpleNamespace(**models, limits={"objective": Limit(1.0)})

    def guess(self, history: History) -> Guess:
        self.seen.append(history)
        return Guess(np.full(2, 0.5), True)

    suggest = score = guess


def test_a_trial_told_meanwhile_is_no_part_of_an_answer():
    strategy = Interrupted()
    optimizer = Optimizer(SQUARE, strategy=strategy, options=QUICK)
    optimizer.tell({"x": 0.1, "y": 0.5}, 1.0)
    strategy.interrupt = lambda: optimizer.tell({"x": 0.9, "y": 0.9}, CRASHED)
    assert optimizer.limits == {}  # nothing had crashed when it was called
    assert set(optimizer.limits) == {"objective"}
    strategy.seen.clear()
    optimizer.best()
    models, guess = strategy.seen
    assert len(models.trials) == len(guess.trials) == len(optimizer.trials) - 1
