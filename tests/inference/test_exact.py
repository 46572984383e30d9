"""The exact integral against SciPy and closed forms."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal, norm, truncnorm

from crashbo import InputError, NumericalError
from crashbo.inference.exact import exact_truncation
from tests.helpers import double, labels, random_covariance


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7])
def test_mass_matches_scipy(n):
    covariance = random_covariance(n, seed=n)
    mean = torch.linspace(-0.5, 0.5, n, dtype=torch.float64)
    crashed = torch.arange(n) % 2 == 1
    exact = exact_truncation(mean, covariance, labels(crashed, 0.3))
    sign = 1 - 2 * crashed.double()
    signed = sign[:, None] * covariance * sign
    expected = multivariate_normal.logcdf(
        (sign * (0.3 - mean)).numpy(), cov=signed.numpy(), abseps=1e-9, releps=1e-9, maxpts=10**6, rng=0
    )
    assert exact.log_partition == pytest.approx(expected, abs=2e-4)
    assert exact.standard_error < 1e-4


@pytest.mark.parametrize("limit", [0.0, -5.0, -40.0, -1000.0])
def test_mass_of_independent_latents_is_a_sum_of_log_tails(limit):
    exact = exact_truncation(torch.zeros(3).double(), torch.eye(3).double(), labels(torch.zeros(3).bool(), limit))
    assert exact.log_partition == pytest.approx(3 * norm.logcdf(limit), rel=1e-9)


def test_moments_of_one_latent_match_the_truncated_normal():
    exact = exact_truncation(double([0.5]), double([[4.0]]), labels(torch.tensor([True]), 1.0))
    reference = truncnorm((1.0 - 0.5) / 2.0, np.inf, loc=0.5, scale=2.0)
    assert float(exact.mean) == pytest.approx(reference.mean(), abs=1e-4)
    assert float(exact.standard_deviation) == pytest.approx(reference.std(), abs=1e-4)


@pytest.mark.parametrize("width", [1e-9, 0.5])
def test_moments_of_two_latents_match_an_integral(width):
    mean, covariance = double([0.2, -0.1]), double([[1.0, 0.6], [0.6, 0.8]])
    step = 0.01
    axis = np.arange(-8, 8, step) + 0.5 * step
    a, b = np.meshgrid(axis, axis, indexing="ij")
    density = multivariate_normal(mean.numpy(), covariance.numpy()).pdf(np.stack([a, b], -1)) * step**2
    weight = density * norm.cdf((0.4 - a) / width) * norm.cdf((b - 0.4) / width)
    mass = weight.sum()
    first, second = (weight * a).sum() / mass, (weight * a**2).sum() / mass
    exact = exact_truncation(mean, covariance, labels(torch.tensor([False, True]), 0.4, width))
    assert exact.log_partition == pytest.approx(math.log(mass), abs=1e-4)
    assert float(exact.mean[0]) == pytest.approx(first, abs=1e-3)
    assert float(exact.standard_deviation[0]) == pytest.approx(math.sqrt(second - first**2), abs=1e-3)


def test_width_is_as_good_as_variance():
    covariance, crashed = random_covariance(4, seed=0), torch.tensor([False, True, False, True])
    probit = exact_truncation(torch.zeros(4).double(), covariance, labels(crashed, 0.2, width=0.3))
    widened = covariance + 0.09 * torch.eye(4, dtype=torch.float64)
    heaviside = exact_truncation(torch.zeros(4).double(), widened, labels(crashed, 0.2))
    assert probit.log_partition == pytest.approx(heaviside.log_partition, abs=1e-12)


def test_same_seed_same_answer():
    arguments = torch.zeros(3).double(), random_covariance(3, seed=1), labels(torch.tensor([True, False, True]), 0.1)
    first, second = (exact_truncation(*arguments, seed=7) for _ in range(2))
    assert first.log_partition == second.log_partition
    assert torch.equal(first.mean, second.mean)


def test_too_many_latents_are_refused():
    n = 51
    with pytest.raises(InputError, match=r"`mean` must have 1 to 50 entries.*; got 51"):
        exact_truncation(torch.zeros(n).double(), torch.eye(n).double(), labels(torch.zeros(n).bool(), 0.0))


def test_a_singular_covariance_is_refused():
    with pytest.raises(NumericalError, match="give the labels a width"):
        exact_truncation(torch.zeros(2).double(), torch.ones(2, 2).double(), labels(torch.tensor([False, True]), 0.0))
