"""Samples of the value's hyperparameters: their weights, and what is kept of them."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp

from crashbo.model.inference import log_evidence_of_values
from crashbo.model.kernel import Matern52
from crashbo.model.map import value_bounds
from crashbo.model.numbers import NUMBERS
from crashbo.model.values import _values_alone, systematic, to_theta, value_modes, value_points
from tests.model.data import small_block

ONE = replace(NUMBERS, warps=((0.0, 1.0),), kernels=(("matern52", 1.0),))


@pytest.mark.parametrize(("seed", "n", "d"), [(0, 8, 1), (4, 10, 2), (5, 12, 3)])
def test_samples_around_the_mode_integrate_the_evidence(seed: int, n: int, d: int) -> None:
    block = small_block(seed, n, d, "own")
    (mode,) = value_modes(block, ONE)
    _, logs = mode.sampled(block)
    centre, common, own = ONE.lengthscale
    widths = [own] * (d - 1) + [math.sqrt(own**2 + d * common**2), ONE.variance[1], ONE.noise[1]]
    found = logsumexp(logs) - np.log(widths).sum()

    rng = np.random.default_rng(0)
    count = 20000
    theta = np.empty((count, d + 2))
    shared = rng.normal(size=(count, 1)) * common
    theta[:, :d] = centre + 0.5 * math.log(d) + shared + own * rng.normal(size=(count, d))
    theta[:, d], theta[:, d + 1] = rng.normal(*ONE.variance, count), rng.normal(*ONE.noise, count)
    rows = _values_alone(block, mode.warp(block.values))
    evidence = np.array([log_evidence_of_values(rows, one, Matern52())[0] for one in to_theta(theta)])
    truth = logsumexp(evidence) - math.log(count) + mode.warp.log_jacobian(block.values)
    weights = np.exp(evidence - logsumexp(evidence))
    assert 1 / np.square(weights).sum() > 50  # else the truth would not be known
    assert found == pytest.approx(truth, abs=0.25)


def test_no_sample_weighs_too_much() -> None:
    for d in (1, 3, 6):
        block = small_block(2, 20, d, "own")
        for mode in value_modes(block, NUMBERS):
            _, logs = mode.sampled(block)
            assert np.exp(logs - logsumexp(logs)).max() < 0.4


def test_points_that_are_kept_are_equally_probable_given_the_values() -> None:
    block = small_block(4, 10, 2, "own")
    modes = value_modes(block, ONE)
    points = value_points(block, modes, ONE)
    rows = _values_alone(block, modes[0].warp(block.values))
    logs = np.array([log_evidence_of_values(rows, one.theta, one.kernel)[0] + one.log_prior for one in points])
    shares = np.exp(logs - logsumexp(logs)) * ONE.most_models
    assert 6 <= len(points) <= ONE.most_models
    assert shares == pytest.approx(np.round(shares), abs=1e-9)


def test_modes_at_all_their_bounds_still_have_samples() -> None:
    """As with ten parameters of which most do not matter."""
    block = small_block(2, 20, 6, "own")
    (mode,) = value_modes(block, ONE)
    low, high = np.array(value_bounds(6)).T
    pinned = replace(mode, mode=replace(mode.mode, theta=np.array([*high[:6], low[6], low[7]]) + 1e-3))
    points, logs = pinned.sampled(block)
    assert len(points) > 0
    assert np.isfinite(logs).any()
    assert all(((low <= point.theta) & (point.theta <= high)).all() for point in points)


def test_without_points_there_is_the_mode() -> None:
    block = small_block(4, 10, 2, "own")
    modes = value_modes(block, ONE)
    (point,) = value_points(block, modes, replace(ONE, most_models=1))
    assert (point.theta == to_theta(modes[0].mode.theta)).all()


def test_systematic_sampling_keeps_what_many_light_entries_agree_on() -> None:
    chosen, shares = systematic(np.array([0.5, *[0.05] * 10]), 4)
    assert chosen[0] == 0
    assert shares == pytest.approx([0.5, 0.25, 0.25])
    chosen, shares = systematic(np.array([0.0, 1.0, 0.0]), 3)
    assert chosen.tolist() == [1]
    assert shares.tolist() == [1.0]
