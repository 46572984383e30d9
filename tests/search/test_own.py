"""A part of the strategy is replaced by a user's own, or the whole strategy by an object (CONTRIBUTING.md)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import crashbo
from crashbo.errors import InputError
from crashbo.model.numbers import Numbers
from crashbo.problem.arrays import Array
from crashbo.problem.history import History
from crashbo.search.default import DefaultStrategy
from crashbo.search.design import quasi_random
from crashbo.search.strategy import Guess, Suggested

LINE = {"x": (0.0, 1.0)}


@dataclass(frozen=True)
class LowerBound:
    """A lower confidence bound of the objective, where success is likely."""

    history: History
    models: Any
    numbers: Numbers
    mode: str = "lower bound"

    def __call__(self, X: Array) -> Array:
        mean, deviation = self.models.moments(X)
        return np.log(self.models.success(X)) - (mean - 2 * deviation)

    def gain(self, X: Array) -> Array | None:
        return None


class Midway(DefaultStrategy):
    """Tries the point halfway between the two best trials; everything else is the default strategy."""

    def suggest(self, history: History) -> Suggested:
        costs = [(cost, i) for i, cost in enumerate(history.costs) if cost is not None]
        if len(costs) < 2:
            return super().suggest(history)
        (_, first), (_, second) = sorted(costs)[:2]
        return Suggested(0.5 * (history.points[first] + history.points[second]), "midway", 0.0, 1.0)

    def guess(self, history: History) -> Guess:
        best = min((cost, i) for i, cost in enumerate(history.costs) if cost is not None)[1]
        return Guess(history.points[best], True)


def cost(params: Any) -> float:
    return float((params["x"] - 0.4) ** 2)


def test_a_score_of_ones_own_is_maximised() -> None:
    strategy = DefaultStrategy(scoring=LowerBound)
    result = crashbo.minimize(cost, LINE, n_trials=8, strategy=strategy, seed=0)
    suggested = result.optimizer.ask()
    assert suggested.why.mode == "lower bound"
    score, at = result.optimizer.score(), result.optimizer.space.encode(dict(suggested))
    assert score(at[None])[0] >= score(np.linspace(0, 1, 201)[:, None]).max() - 1e-6
    assert result.best.params["x"] == pytest.approx(0.4, abs=0.02)


def test_each_part_is_used_and_the_others_stay() -> None:
    def corner(history: History) -> Array | None:
        return np.zeros(1) if len(history.trials) < 2 else quasi_random(history)

    def last(history: History, models: Any, numbers: Numbers) -> Guess:
        return Guess(history.points[-1], bool(models.any_cost))

    own = crashbo.Optimizer(LINE, strategy=DefaultStrategy(design=corner, guessing=last))
    assert own.ask() == {"x": 0.0}
    for x in (0.1, 0.9, 0.3):
        own.tell({"x": x}, cost({"x": x}))
    usual = crashbo.Optimizer(LINE)
    for x in (0.1, 0.9, 0.3):
        usual.tell({"x": x}, cost({"x": x}))
    suggested = dict(own.ask())
    for one in (own, usual):
        one.tell(suggested, 0.01)
    assert own.best().params["x"] == pytest.approx(own.trials[-1].params["x"])
    X = np.linspace(0, 1, 7)[:, None]
    assert np.array_equal(own.surrogate().success(X), usual.surrogate().success(X))


def test_the_belief_may_be_anything_that_can_be_asked() -> None:
    class Flat:
        any_cost, limits, relation = True, {}, None

        def moments(self, X: Array, output: str = "objective") -> tuple[Array, Array]:
            return X.sum(-1), np.ones(len(X))

        def success(self, X: Array, output: str | None = None) -> Array:
            return np.ones(len(X))

        def with_pending(self, X: Array) -> "Flat":
            return self

    strategy = DefaultStrategy(belief=lambda history, numbers, memory: Flat(), scoring=LowerBound)
    optimizer = crashbo.Optimizer(LINE, strategy=strategy)
    for x in (0.2, 0.6, 0.8):
        optimizer.tell({"x": x}, x)
    assert optimizer.ask()["x"] == pytest.approx(0.0, abs=1e-6)


def test_an_object_with_the_four_methods_is_a_strategy() -> None:
    result = crashbo.minimize(cost, LINE, n_trials=8, strategy=Midway(), seed=0)
    assert result.trials[-1].objective is not None
    assert result.trials[-1].objective < 0.02
    assert result.optimizer.ask().why.mode == "midway"
    best = min(result.trials, key=lambda trial: trial.objective or 0.0)
    assert result.best.params["x"] == pytest.approx(best.params["x"])


@pytest.mark.parametrize("wrong", ["best", 3, object()])
def test_anything_else_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"`strategy` must be 'default', 'paper' or an object"):
        crashbo.Optimizer(LINE, strategy=wrong)
