"""Costs far above the others are brought closer, and nothing else changes."""

import math

import numpy as np
import pytest
import torch

from crashbo import CRASHED, Optimizer
from crashbo.models.compression import Compression, choose_compression
from tests.helpers import double


def line(n: int) -> np.ndarray:
    """Points along one axis."""
    return np.linspace(0, 1, n)[:, None]


def test_the_better_half_stays_and_the_rest_keeps_its_order() -> None:
    costs = [3.0, 2.0, 1.0, 4.0, 50.0, 1e6]
    found = choose_compression(line(6), costs)
    assert (found.knee, found.width) == (3.5, 2.5)
    squeezed = [found(cost) for cost in costs]
    assert [new for new, old in zip(squeezed, costs, strict=True) if old <= 3.5] == [3.0, 2.0, 1.0]
    assert np.argsort(squeezed).tolist() == np.argsort(costs).tolist()
    assert max(squeezed) < 40


def test_costs_that_a_gaussian_process_likes_stay_as_they_are() -> None:
    X = np.random.default_rng(0).random((20, 2))
    assert choose_compression(X, X.sum(1).tolist()) == Compression()


def test_it_is_smooth_at_the_knee() -> None:
    found = Compression(1.0, 2.0, 3.0)
    assert (found(1 + 1e-6) - found(1 - 1e-6)) / 2e-6 == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("cost", [-5.0, 1.0, 1.5, 40.0, 1e9])
def test_it_can_be_undone(cost: float) -> None:
    found = Compression(1.0, 2.0, 3.0)
    assert found.expand(found(cost)) == pytest.approx(cost)


def test_limits_that_no_cost_could_reach_are_none() -> None:
    found = Compression(1.0, 2.0, 3.0)
    assert found.expand(math.inf) == math.inf
    assert found.expand(6.9) < found.expand(6.99) < math.inf  # 3 widths above the knee is 7
    assert found.expand(7.0) == found.expand(1e300) == math.inf
    assert Compression()(1e300) == Compression().expand(1e300) == 1e300


def test_moments_follow_to_first_order() -> None:
    found = Compression(1.0, 2.0, 3.0)
    mean, deviation = found.expand_moments(double([0.5, 3.0]), double([0.1, 1e-6]))
    assert mean.tolist() == pytest.approx([0.5, found.expand(3.0)])
    slope = (found.expand(3.0 + 1e-6) - found.expand(3.0)) / 1e-6
    assert deviation.tolist() == pytest.approx([0.1, slope * 1e-6])
    same = Compression().expand_moments(mean, deviation)
    assert same[0] is mean


@pytest.mark.parametrize(
    "costs",
    [[], [1.0, 2.0, 9e2, 3.0], [5.0] * 9, [0.0] * 6, [1.0, 1.0, 1.0, 2.0, 1e99], [1e-300 * i for i in range(9)]],
)
def test_where_nothing_is_usual_nothing_changes(costs: list[float]) -> None:
    assert choose_compression(line(len(costs)), costs) == Compression()


def told(direction: str = "minimize", high: float = 400.0, **settings: object) -> Optimizer:
    """A parabola with one cost far above all others, and a crash."""
    sign = 1.0 if direction == "minimize" else -1.0
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, direction=direction, **settings)  # type: ignore[arg-type]
    for x, y in np.random.default_rng(1).random((25, 2)):
        optimizer.tell({"x": x, "y": y}, sign * ((x - 0.4) ** 2 + (y - 0.6) ** 2))
    optimizer.tell({"x": 0.95, "y": 0.5}, sign * high)
    optimizer.tell({"x": 1.0, "y": 0.5}, CRASHED)
    return optimizer


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_one_marginal_trial_does_not_bend_the_model(direction: str) -> None:
    optimizer = told(direction)
    best = optimizer.best()
    assert (best.params["x"] - 0.4) ** 2 + (best.params["y"] - 0.6) ** 2 < 0.01
    assert best.mean == pytest.approx(0.0, abs=0.05)


def test_the_model_gives_back_the_costs_that_were_told() -> None:
    optimizer = told()
    X = torch.from_numpy(np.stack([optimizer.space.encode(trial.params) for trial in optimizer.trials[:-1]]))
    mean, deviation = optimizer.surrogates().moments(X)
    costs = double([trial.objective for trial in optimizer.trials[:-1]])
    assert (mean - costs).abs()[:-1].max() < 0.05
    assert float(mean[-1]) == pytest.approx(400, rel=0.5)
    assert bool((deviation > 0).all())


def test_limits_are_told_in_the_costs_own_units() -> None:
    assert told().thresholds["objective"] > 300
    assert told("maximize").thresholds["objective"] < -300


def test_the_hyperparameters_of_the_paper_see_the_costs_as_they_are() -> None:
    from crashbo import Options
    from crashbo.models.surrogates import FixedModel

    optimizer = told(options=Options(fixed={"objective": FixedModel(0.2, 25.0)}))
    assert optimizer.surrogates().compression == Compression()
    assert float(optimizer.surrogates().objective.fit.data.costs.max()) == 400
