"""A crash next to a success with no room between them: relaxed where it stands, against exact integrals."""

import math
from dataclasses import replace

import numpy as np
import pytest

from crashbo.botorch.exact import exact_truncation
from crashbo.gp.conflicts import RATE, infer_relaxed
from crashbo.gp.ep import Labels
from crashbo.gp.inference import infer
from crashbo.gp.rows import Hyperparameters, Rows, one_output

SETTINGS = Hyperparameters(
    np.full((1, 1, 1), 0.2), np.full((1, 1, 1), math.sqrt(0.5)), np.full((1, 1), 4e-4), np.full((1, 1), 2.05),
    np.zeros(1), "matern32",
)  # fmt: skip


def trials(apart: float) -> Rows:
    """Successes of 2.0 and 1.0; a crash beside the second, and another far from all."""
    X = np.array([[0.1], [0.5], [0.5 + apart], [0.9]])
    return one_output(X, np.array([False, False, True, True]), np.array([0, 1]), np.array([2.0, 1.0]))


@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-4, 1e-2])
def test_the_crash_without_room_is_relaxed_and_nothing_else(apart):
    posterior, lapsed = infer_relaxed(trials(apart), SETTINGS)
    assert np.flatnonzero(lapsed[0]).tolist() == [2]
    assert posterior.ep.converged.all()
    assert posterior.ep.mean[0, :2] == pytest.approx([2.0, 1.0], abs=0.02)
    assert posterior.ep.mean[0, 3] > 2.05
    without = replace(
        trials(apart), label_point=np.array([0, 1, 3]), label_output=np.zeros(3, int), sign=np.r_[1.0, 1, -1]
    )
    expected = infer(without, SETTINGS)
    assert posterior.ep.mean[0, [0, 1, 3]] == pytest.approx(expected.ep.mean[0], abs=1e-4)
    assert posterior.log_evidence[0] == pytest.approx(expected.log_evidence[0] + math.log(RATE), abs=1e-3)


@pytest.mark.parametrize("apart", [1e-4, 0.01, 0.03])
def test_the_relaxed_posterior_matches_the_sum_over_lapsed_subsets(apart):
    posterior, lapsed = infer_relaxed(trials(apart), SETTINGS)
    given, rates = posterior.given, RATE * lapsed
    assert lapsed.any()
    labels = Labels(posterior.rows.sign, np.full((1, 4), 2.05), given.smallest_width, rates)
    exact = exact_truncation(given.mean[0], given.covariance[0], labels)
    assert posterior.ep.log_partition[0] == pytest.approx(exact.log_partition, abs=0.02)
    assert posterior.ep.mean[0] == pytest.approx(exact.mean, abs=0.02)
    assert np.sqrt(posterior.ep.variance[0]) == pytest.approx(exact.standard_deviation, abs=0.02)


@pytest.mark.parametrize("apart", [0.2, 0.4])
def test_with_room_nothing_is_relaxed(apart):
    posterior, lapsed = infer_relaxed(trials(apart), SETTINGS)
    assert not lapsed.any()
    strict = infer(trials(apart), SETTINGS)
    assert np.array_equal(posterior.ep.mean, strict.ep.mean)


def test_a_surprise_is_no_conflict():
    """A limit far above the prior makes every crash unlikely, but nothing contradicts it."""
    at = replace(SETTINGS, threshold=np.full((1, 1), 8.0))
    rows = one_output(np.array([[0.1], [0.9]]), np.array([True, True]), np.zeros(0, dtype=int), np.zeros(0))
    posterior, lapsed = infer_relaxed(rows, at)
    assert not lapsed.any()
    assert (posterior.ep.mean > 8.0).all()


def test_each_setting_is_judged_on_its_own():
    both = Hyperparameters(
        np.array([[[0.2]], [[1e-5]]]), *(np.repeat(part, 2, 0) for part in (SETTINGS.mixing, SETTINGS.noise)),
        np.full((2, 1), 2.05), np.zeros(2), "matern32",
    )  # fmt: skip
    posterior, lapsed = infer_relaxed(trials(1e-3), both)
    assert lapsed[:, 2].tolist() == [True, False]  # with a tiny lengthscale there is room
    assert posterior.ep.mean[1, 2] > 2.05
