"""Samples of the minimum: exact draws, stopping rules, and their distribution against a grid."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import ks_2samp

import crashbo.search.paper.minima as module
from crashbo.search.paper.minima import VirtualFunction, draw_paths, pathwise_minima, virtual_minima
from tests.search.paper.models import example1, grid_minima, joint, simulation1, simulation2


def same(X):
    return X


def drawn(sampler, objective, constraints, repeats, count=10):
    return np.concatenate(
        [sampler(objective, constraints, count, np.random.default_rng([3, i]), same) for i in range(repeats)]
    )


@pytest.mark.parametrize("blocks", [[3], [1, 2], [1, 1, 1]])
def test_virtual_evaluations_have_the_joint_distribution_however_they_are_asked_for(blocks):
    model, X = example1(), np.array([[0.2], [0.62], [0.75]])
    rng, found = np.random.default_rng(0), []
    for _ in range(3000):
        function, values, begin = VirtualFunction(model, rng, 3), [], 0
        for size in blocks:
            values.append(function(X[begin : begin + size]))
            begin += size
        found.append(np.concatenate(values))
    mean, covariance = joint(model, X)
    covariance = covariance + model.noise * np.eye(3)
    error = np.sqrt(covariance.diagonal() / 3000)
    assert (np.abs(np.mean(found, 0) - mean) < 4 * error).all()
    scale = np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))
    assert np.abs((np.cov(np.transpose(found)) - covariance) / scale).max() < 0.1


def test_an_evaluation_asked_for_twice_differs_by_its_noise_only():
    model, rng = simulation1(), np.random.default_rng(0)
    function = VirtualFunction(model, rng, 200)
    x = np.array([[0.31, 0.77]])
    values = np.array([function(x)[0] for _ in range(200)])
    assert values.std() == pytest.approx(0.01, rel=0.2)


@pytest.mark.parametrize(("starts", "evaluations"), [(1, 1), (1, 5), (1, 40), (20, 30), (200, 400)])
def test_no_search_exceeds_its_evaluations(monkeypatch, starts, evaluations):
    asked = []
    reveal = module._Search._reveal

    def counted(self, X):
        found = reveal(self, X)  # ends the search where no evaluation is left
        asked.append(len(X))
        return found

    monkeypatch.setattr(module._Search, "_reveal", counted)
    objective, constraint = simulation2()
    for seed in range(5):
        asked.clear()
        rng, effort = np.random.default_rng(seed), {"starts": starts, "evaluations": evaluations}
        virtual_minima(objective, [constraint], 1, rng, same, **effort)
        assert sum(asked[1:]) <= evaluations
    asked.clear()
    virtual_minima(objective, [], 1, np.random.default_rng(0), same, starts=1, precision=10.0)
    assert sum(asked[1:]) < 20  # the first step is short enough


def test_a_sample_does_not_lie_above_the_trials():
    model = simulation1()
    lowest = model.models.block.values.min()
    assert (
        drawn(partial(virtual_minima, starts=1), model, [], 5) < lowest + 0.06
    ).all()  # four deviations of a value and its noise


@pytest.mark.parametrize("constrained", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_virtual_minima_have_nearly_the_distribution_on_a_grid(constrained):
    objective, constraint = simulation2() if constrained else (simulation1(), None)
    limits = [constraint] if constrained else []
    exact = grid_minima(objective, limits, 2000)
    many = drawn(virtual_minima, objective, limits, 20)
    assert ks_2samp(many, exact).statistic < 0.17  # 0.10 is what 200 samples allow at 5 %
    assert abs(many.mean() - exact.mean()) < 0.25 * exact.std()
    one = drawn(partial(virtual_minima, starts=1), objective, limits, 20)
    assert one.mean() > exact.mean() + exact.std()  # as printed: one uniform start


@pytest.mark.parametrize("constrained", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pathwise_minima_have_the_distribution_on_a_grid(constrained):
    objective, constraint = simulation2() if constrained else (simulation1(), None)
    limits = [constraint] if constrained else []
    exact = grid_minima(objective, limits, 2000)
    # Samples drawn together share their features, so that only few are drawn together here.
    assert ks_2samp(drawn(pathwise_minima, objective, limits, 150, count=4), exact).statistic < 0.07


@pytest.mark.parametrize("model", [example1(), simulation1()])
def test_paths_have_the_posterior_moments(model):
    X = np.random.default_rng(0).random((4, model.models.block.X.shape[-1]))
    values = np.concatenate([draw_paths(model, 10, 512, np.random.default_rng(i))(X) for i in range(300)])
    mean, covariance = joint(model, X)
    deviation = np.sqrt(covariance.diagonal())
    assert np.abs((values.mean(0) - mean) / deviation).max() < 0.1
    assert values.std(0) == pytest.approx(deviation, rel=0.1)


@pytest.mark.parametrize("sampler", [virtual_minima, pathwise_minima])
def test_minima_repeat_with_the_seed_and_respect_rounding(sampler):
    objective, constraint = simulation2()

    def corner(X):
        return np.round(X)

    first, again = (sampler(objective, [constraint], 3, np.random.default_rng(4), corner) for _ in range(2))
    assert np.array_equal(first, again)
