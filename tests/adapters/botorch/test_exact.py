"""The exact integral against SciPy and closed forms."""

import math

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm, truncnorm

from crashbo import InputError, NumericalError
from crashbo.model.exact import exact_truncation
from tests.helpers import make_labels, random_covariance


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_mass_matches_scipy(n):
    covariance = random_covariance(n, seed=n)
    mean = np.linspace(-0.5, 0.5, n)
    crashed = np.arange(n) % 2 == 1
    exact = exact_truncation(mean, covariance, make_labels(crashed, 0.3))
    sign = np.where(crashed, -1.0, 1.0)
    signed = sign[:, None] * covariance * sign
    expected = multivariate_normal.logcdf(
        sign * (0.3 - mean), cov=signed, abseps=1e-9, releps=1e-9, maxpts=10**6, rng=0
    )
    assert exact.log_partition == pytest.approx(expected, abs=2e-4)
    assert exact.standard_error < 1e-4


@pytest.mark.parametrize("limit", [0.0, -5.0, -40.0, -1000.0])
def test_mass_of_independent_latents_is_a_sum_of_log_tails(limit):
    exact = exact_truncation(np.zeros(3), np.eye(3), make_labels(np.zeros(3, dtype=bool), limit))
    assert exact.log_partition == pytest.approx(3 * norm.logcdf(limit), rel=1e-9)


def test_moments_of_one_latent_match_the_truncated_normal():
    exact = exact_truncation(np.array([0.5]), np.array([[4.0]]), make_labels(np.array([True]), 1.0))
    reference = truncnorm((1.0 - 0.5) / 2.0, np.inf, loc=0.5, scale=2.0)
    assert exact.mean[0] == pytest.approx(reference.mean(), abs=1e-4)
    assert exact.standard_deviation[0] == pytest.approx(reference.std(), abs=1e-4)


@pytest.mark.parametrize("width", [1e-9, 0.5])
@pytest.mark.parametrize("lapse", [0.0, 0.2])
def test_moments_of_two_latents_match_an_integral(width, lapse):
    mean, covariance = np.array([0.2, -0.1]), np.array([[1.0, 0.6], [0.6, 0.8]])
    step = 0.01
    axis = np.arange(-8, 8, step) + 0.5 * step
    a, b = np.meshgrid(axis, axis, indexing="ij")
    density = multivariate_normal(mean, covariance).pdf(np.stack([a, b], -1)) * step**2
    below = (1 - lapse) * norm.cdf((0.4 - a) / width)
    weight = density * below * (lapse + (1 - lapse) * norm.cdf((b - 0.4) / width))
    mass = weight.sum()
    first, second = (weight * a).sum() / mass, (weight * a**2).sum() / mass
    exact = exact_truncation(mean, covariance, make_labels(np.array([False, True]), 0.4, width, lapse))
    assert exact.log_partition == pytest.approx(math.log(mass), abs=1e-4)
    assert exact.mean[0] == pytest.approx(first, abs=1e-3)
    assert exact.standard_deviation[0] == pytest.approx(math.sqrt(second - first**2), abs=1e-3)


def test_width_is_as_good_as_variance():
    covariance, crashed = random_covariance(4, seed=0), np.array([False, True, False, True])
    probit = exact_truncation(np.zeros(4), covariance, make_labels(crashed, 0.2, width=0.3))
    step = exact_truncation(np.zeros(4), covariance + 0.09 * np.eye(4), make_labels(crashed, 0.2))
    assert probit.log_partition == pytest.approx(step.log_partition, abs=1e-12)


def test_labels_that_all_lapsed_leave_the_prior():
    exact = exact_truncation(np.array([0.3]), np.array([[2.0]]), make_labels(np.array([True]), 1e3, lapse=0.25))
    assert exact.log_partition == pytest.approx(math.log(0.25))
    assert exact.mean[0] == pytest.approx(0.3)
    assert exact.standard_deviation[0] == pytest.approx(math.sqrt(2.0))


def test_same_seed_same_answer():
    arguments = np.zeros(3), random_covariance(3, seed=1), make_labels(np.array([True, False, True]), 0.1)
    first, second = (exact_truncation(*arguments, seed=7) for _ in range(2))
    assert first.log_partition == second.log_partition
    assert np.array_equal(first.mean, second.mean)


def test_too_many_latents_are_refused():
    n = 51
    with pytest.raises(InputError, match=r"`mean` must have 1 to 50 entries.*; got 51"):
        exact_truncation(np.zeros(n), np.eye(n), make_labels(np.zeros(n, dtype=bool), 0.0))


def test_a_singular_covariance_is_refused():
    with pytest.raises(NumericalError, match="give the labels a width"):
        exact_truncation(np.zeros(2), np.ones((2, 2)), make_labels(np.array([False, True]), 0.0))
