"""A strategy of a user's own is a small class (the skeleton of CONTRIBUTING.md)."""

import pytest

import crashbo
from crashbo.errors import InputError
from crashbo.search.default import DefaultStrategy
from crashbo.search.strategy import Guess, Suggested


class Midway(DefaultStrategy):
    """Tries the point halfway between the two best trials; everything else is the default strategy."""

    def suggest(self, history):
        costs = [(cost, i) for i, cost in enumerate(history.costs) if cost is not None]
        if len(costs) < 2:
            return super().suggest(history)
        (_, first), (_, second) = sorted(costs)[:2]
        return Suggested(0.5 * (history.points[first] + history.points[second]), "midway", 0.0, 1.0)

    def guess(self, history):
        best = min((cost, i) for i, cost in enumerate(history.costs) if cost is not None)[1]
        return Guess(history.points[best], True)


def test_an_object_with_the_four_methods_is_a_strategy():
    result = crashbo.minimize(lambda p: (p["x"] - 0.4) ** 2, {"x": (0.0, 1.0)}, n_trials=8, strategy=Midway(), seed=0)
    assert result.trials[-1].objective < 0.02
    assert {one.why.mode for one in [result.optimizer.ask()]} == {"midway"}
    assert result.best.params["x"] == pytest.approx(min(result.trials, key=lambda trial: trial.objective).params["x"])


@pytest.mark.parametrize("wrong", ["best", 3, object()])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InputError, match=r"`strategy` must be 'default', 'paper' or an object"):
        crashbo.Optimizer({"x": (0.0, 1.0)}, strategy=wrong)
