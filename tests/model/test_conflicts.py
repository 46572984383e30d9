"""A crash next to a success with no room between them: relaxed where it stands, against exact integrals."""

import math

import numpy as np
import pytest

from crashbo.model.ep import Labels
from crashbo.model.exact import exact_truncation
from crashbo.model.inference import solve
from crashbo.model.numbers import RELAXED_RATE
from crashbo.model.threshold import ThresholdEstimate, ThresholdRule, estimate_threshold
from tests.helpers import given_values, matern32_matrix

LIMIT = 2.05
SIGN = np.array([1.0, 1.0, -1.0, -1.0])


def given(apart: float, lengthscale: float = 0.2):
    """Successes of 2.0 and 1.0; a crash beside the second, and another far from all."""
    X = np.array([[0.1], [0.5], [0.5 + apart], [0.9]])
    return given_values(matern32_matrix(X, X, lengthscale), np.arange(2), np.array([2.0, 1.0]), 4e-4)


def fit(apart: float, lengthscale: float = 0.2) -> ThresholdEstimate:
    return estimate_threshold(given(apart, lengthscale), SIGN, ThresholdRule(fixed=LIMIT))


@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-4, 1e-2])
def test_the_crash_without_room_is_relaxed_and_nothing_else(apart):
    found = fit(apart)
    ep = found.solution.ep
    assert found.relaxed.tolist() == [2]
    assert ep.converged.all()
    assert ep.mean[0, :2] == pytest.approx([2.0, 1.0], abs=0.02)
    assert ep.mean[0, 3] > LIMIT
    X = np.array([[0.1], [0.5], [0.9]])
    others = given_values(matern32_matrix(X, X), np.arange(2), np.array([2.0, 1.0]), 4e-4)
    expected = solve(others, Labels(SIGN[[0, 1, 3]], LIMIT, 0.0))
    assert ep.mean[0, [0, 1, 3]] == pytest.approx(expected.ep.mean[0], abs=1e-4)
    assert found.solution.log_evidence[0] == pytest.approx(expected.log_evidence[0] + math.log(RELAXED_RATE), abs=1e-3)


@pytest.mark.parametrize("apart", [1e-4, 0.01, 0.03])
def test_the_relaxed_posterior_matches_the_sum_over_lapsed_subsets(apart):
    found = fit(apart)
    base, ep = found.solution.given, found.solution.ep
    assert len(found.relaxed)
    exact = exact_truncation(
        base.mean[0], base.covariance[0], Labels(SIGN, LIMIT, float(base.smallest_width.max()), found.rates)
    )
    assert ep.log_partition[0] == pytest.approx(exact.log_partition, abs=0.02)
    assert ep.mean[0] == pytest.approx(exact.mean, abs=0.02)
    assert np.sqrt(ep.variance[0]) == pytest.approx(exact.standard_deviation, abs=0.02)


@pytest.mark.parametrize("apart", [0.2, 0.4])
def test_with_room_nothing_is_relaxed(apart):
    found = fit(apart)
    assert not len(found.relaxed)
    strict = solve(given(apart), Labels(SIGN, LIMIT, 0.0))
    assert np.array_equal(found.solution.ep.mean, strict.ep.mean)


def test_a_surprise_is_no_conflict():
    """A limit far above the prior makes every crash unlikely, but nothing contradicts it."""
    X = np.array([[0.1], [0.9]])
    base = given_values(matern32_matrix(X, X), np.zeros(0, dtype=int), np.zeros(0), 4e-4)
    found = estimate_threshold(base, np.array([-1.0, -1.0]), ThresholdRule(fixed=8.0))
    assert not len(found.relaxed)
    assert (found.solution.ep.mean > 8.0).all()


def test_a_tiny_lengthscale_makes_room():
    assert fit(1e-3).relaxed.tolist() == [2]
    found = fit(1e-3, lengthscale=1e-5)
    assert not len(found.relaxed)
    assert found.solution.ep.mean[0, 2] > LIMIT
