"""The weighted set of hyperparameters against brute-force integration, and what it says about crashes."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from crashbo.model.average import learn, learning_size, reweighted_for_limits, weigh, weigh_all
from crashbo.model.belief import Output
from crashbo.model.kernel import Matern32
from crashbo.model.numbers import NUMBERS
from crashbo.problem.options import FixedModel
from tests.model.data import integrate, make_block, small_block

SETS = [(0, 8, 1, "own"), (1, 8, 1, "high"), (4, 10, 2, "own"), (5, 10, 2, "high")]


def errors(output: Output, truth: tuple[np.ndarray, ...], points: np.ndarray) -> np.ndarray:
    mean, deviation, success = truth
    m, s = output.moments(points)
    gaps = np.abs(m - mean) / deviation, np.abs(np.log(s / deviation)), np.abs(output.success(points) - success)
    return np.array([gap.mean() for gap in gaps])


def test_the_average_agrees_with_brute_force_integration_and_the_mode_does_not():
    averaged, single = [], []
    points = np.random.default_rng(9).random((40, 2))
    for seed, n, d, relation in SETS:
        block = small_block(seed, n, d, relation)
        truth = integrate(block, points[:, :d])
        averaged.append(errors(Output(weigh(learn(block), block)), truth, points[:, :d]))
        mode = replace(NUMBERS, most_models=1)
        single.append(errors(Output(weigh(learn(block, mode), block)), truth, points[:, :d]))
    mean, spread, success = np.mean(averaged, 0)
    assert mean < 0.15  # of a standard deviation
    assert spread < 0.4  # of log standard deviations: off by less than a factor of 1.5
    assert success < 0.03
    assert (np.mean(averaged, 0) < np.mean(single, 0)).all()
    assert spread < 0.4 * np.mean(single, 0)[1]


def _disc(n: int, kind: str) -> "np.ndarray | object":
    rng = np.random.default_rng(1)
    X = rng.random((n, 2))
    cost = 10 * np.square(X - 0.3).sum(1)
    crashed = {
        "own": np.square(X - 0.6).sum(1) < 0.08,
        "high": cost > np.quantile(cost, 0.7),
        "random": rng.random(n) < 0.2,
    }[kind]
    return make_block(X, cost, crashed)


@pytest.mark.parametrize(("kind", "n"), [("own", 30), ("high", 30), ("random", 40)])
def test_the_relation_of_crashes_and_costs_is_recognised(kind, n):
    models = weigh_all(_disc(n, kind))
    rho, lapse = models.correlation[:, 0], models.posterior.at.lapse
    share = {
        "own": models.weights[(np.abs(rho) < 0.6) & (lapse < 0.1)].sum(),
        "high": models.weights[(rho > 0.8) & (lapse < 0.1)].sum(),
        "random": models.weights[lapse > 0.1].sum(),
    }[kind]
    assert share > 0.5


def test_few_candidates_stand_for_all():
    block = _disc(15, "own")
    everything, few = weigh_all(block), weigh(learn(block), block)
    assert len(few.weights) <= NUMBERS.most_models
    assert few.weights.sum() == pytest.approx(1.0)
    points = np.random.default_rng(0).random((30, 2))
    assert np.abs(Output(everything).success(points) - Output(few).success(points)).mean() < 0.08


def test_the_first_of_equally_heavy_candidates_stand_for_the_others():
    block = _disc(12, "own")
    candidates = learn(block)
    rho = candidates.at.mixing[:, 1, 0]
    few = candidates.affordable(60)
    assert len(few) == 5
    assert len(candidates) > len(few)
    assert not np.array_equal(few.at.mixing[:, 1, 0], np.sort(rho)[:5])
    assert abs(few.at.mixing[:, 1, 0].mean() - rho.mean()) < 0.2


def test_many_trials_are_learned_from_with_as_many_models_as_take_the_same_time():
    assert len(learn(_disc(60, "own"))) <= 5


def test_learning_is_a_pure_function():
    block = _disc(12, "own")
    first, second = learn(block), learn(block)
    assert np.array_equal(first.at.lengthscale, second.at.lengthscale)
    assert np.array_equal(first.log_prior, second.log_prior)


def test_a_fixed_model_changes_its_own_hyperparameters_and_nothing_else():
    block = _disc(15, "own")
    fixed = replace(block, fixed=FixedModel(0.2, 4.0, noise_std=0.1, kernel="matern32"))
    models = weigh(learn(fixed), fixed)
    at = models.posterior.at
    assert np.allclose(at.lengthscale[:, 0], 0.2)
    assert np.allclose(at.mixing[:, 0, 0], 2.0)
    assert np.allclose(at.noise[:, 0], 0.01)
    assert set(at.kernel) == {Matern32()}
    assert len(np.unique(models.correlation)) > 1  # the relation is still averaged over


def test_the_limit_of_a_constraint_lies_between_what_held_and_what_did_not():
    rng = np.random.default_rng(0)
    X = rng.random((25, 2))
    value = X.sum(1)
    block = make_block(X, value, value > 1.2, self_limited=True)
    limit = Output(weigh(learn(block), block)).limit()
    assert limit is not None
    assert value[value <= 1.2].max() - 0.02 < limit.value < value[value > 1.2].min() + 0.02
    assert 0 < limit.deviation < 0.1


def test_a_limit_beyond_which_values_jump_is_stated_with_room_for_the_jump():
    X = np.linspace(0.03, 0.97, 12)[:, None]
    value = np.where(X[:, 0] < 0.7, np.square(X[:, 0]), 30 * X[:, 0])
    block = make_block(X, value, value > 0.7, self_limited=True)
    models = weigh(learn(block), block)
    limit = Output(models).limit()
    assert limit is not None
    low, high = limit.interval
    assert low <= 0.7 <= high
    assert low >= value[value <= 0.7].max()  # a value that held is a fact
    _, deviations = models.limits()
    searched = models.weights @ (models.posterior.at.mixing[:, 0, 0] * models.warps[0].scale * deviations[:, 0])
    assert high - limit.value > 4 * searched  # what the search believes
    assert np.isclose(reweighted_for_limits(models).weights.sum(), 1)


def test_a_known_limit_stays_as_it_is():
    rng = np.random.default_rng(0)
    X = rng.random((12, 1))
    block = make_block(X, X[:, 0], np.zeros(12, dtype=bool), self_limited=True, threshold=0.5)
    block = replace(block, below=block.below[:0])
    output = Output(weigh(learn(block), block))
    assert output.limit().value == 0.5
    assert output.success(np.array([[0.2], [0.8]])) == pytest.approx([1.0, 0.0], abs=0.05)


def test_only_crashes_and_only_successes_give_a_sound_model():
    X = np.random.default_rng(0).random((8, 2))
    for crashed in (np.ones(8, dtype=bool), np.zeros(8, dtype=bool)):
        block = make_block(X, X.sum(1), crashed)
        success = Output(weigh(learn(block), block)).success(np.array([[0.5, 0.5], [0.0, 1.0]]))
        assert np.isfinite(success).all()
        assert (success < 0.6).all() if crashed.all() else (success > 0.6).all()


def test_every_trial_at_first_then_by_a_sixth_and_never_beyond_what_is_enough():
    assert [learning_size(n) for n in range(1, 13)] == list(range(1, 13))
    sizes = sorted({learning_size(n) for n in range(12, 2000)})
    assert sizes[0] == 12
    assert all(2 <= b - a <= max(2, a // 6) for a, b in itertools.pairwise(sizes))
    assert sizes[-1] <= 100
    assert all(learning_size(n) <= n for n in range(1, 500))
