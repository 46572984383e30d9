"""The check of EP against the exact posterior on a user's own data."""

import numpy as np
import pytest
import torch

from crashbo import GPCR, check_ep
from crashbo.adapters.botorch.diagnostics import sample_truncated
from tests.adapters.botorch.helpers import double, matern
from tests.helpers import random_covariance


def test_example1_is_nearly_exact(example1_model):
    check = check_ep(example1_model)
    assert check.mean_error < 0.05
    assert check.deviation_error < 0.03
    assert abs(check.log_partition_error) < 1e-3
    assert check.sampling_error < 0.05


def test_samples_match_gibbs_samples(example1_model):
    check = check_ep(example1_model)
    assert torch.allclose(check.mean, double([0.5005, 1.9956, 1.0010, 2.2685, 2.3067]), atol=0.01)
    assert torch.allclose(check.standard_deviation, double([0.0200, 0.0179, 0.0200, 0.2112, 0.2437]), atol=0.01)


def test_results_are_in_the_costs_own_units(example1):
    small = check_ep(GPCR(*example1), samples=5000)
    large = check_ep(GPCR(example1.X, 1000 * example1.Y + 5000, example1.crashed), samples=5000)
    assert torch.allclose(large.mean, 1000 * small.mean + 5000, rtol=1e-2)
    assert torch.allclose(large.standard_deviation, 1000 * small.standard_deviation, rtol=0.05)


def test_labels_with_a_width(example1):
    model = GPCR(*example1, noise_std=0.02, covar_module=matern(), threshold=2.03, label_width=0.2)
    check = check_ep(model)
    assert check.mean_error < 0.05
    assert check.deviation_error < 0.05
    assert abs(check.log_partition_error) < 1e-2


def test_relaxed_labels_are_left_out():
    X = double([[0.1], [0.5], [0.5 + 1e-4], [0.9]])
    Y = double([[2.0], [1.0], [0.0], [0.0]])
    model = GPCR(X, Y, torch.tensor([False, False, True, True]), noise_std=0.02, covar_module=matern())
    check = check_ep(model)
    assert model.relaxed == (2,)
    assert check.mean_error < 0.06
    assert check.deviation_error < 0.04
    assert abs(check.log_partition_error) < 1e-2


def test_without_crashes_ep_is_exact(example1):
    model = GPCR(example1.X[:3], example1.Y[:3], torch.zeros(3).bool(), covar_module=matern(), threshold_prior=None)
    check = check_ep(model)
    assert check.mean_error < 0.05
    assert check.deviation_error < 0.03
    assert check.log_partition_error == pytest.approx(0.0, abs=1e-9)


def test_many_trials_are_checked_without_the_integral():
    X = torch.as_tensor(np.random.default_rng(0).uniform(size=(25, 1)))
    Y = torch.sin(8 * X)
    check = check_ep(GPCR(X, Y, Y.squeeze(-1) > 0.5, noise_std=0.1, covar_module=matern()), samples=2000)
    assert check.log_partition_error is None
    assert "log Z" not in str(check)


def test_summary_names_the_errors(example1_model):
    text = str(check_ep(example1_model, samples=1000))
    assert "standard deviations" in text
    assert "log Z off by" in text


def test_same_seed_same_check_and_the_global_generator_is_left_alone(example1_model):
    state = torch.get_rng_state()
    first, second = (check_ep(example1_model, samples=1000, seed=3) for _ in range(2))
    assert torch.equal(first.mean, second.mean)
    assert torch.equal(torch.get_rng_state(), state)


def test_samples_obey_the_labels():
    crashed = np.array([True, False, True, False])
    start = np.where(crashed, 1.0, -1.0)
    draws = sample_truncated(np.zeros(4), random_covariance(4, seed=0), -start, 0.2, start, samples=2000)
    assert draws.shape[0] * draws.shape[1] >= 2000
    assert (draws[..., crashed] >= 0.2 - 1e-6).all()
    assert (draws[..., ~crashed] <= 0.2 + 1e-6).all()
