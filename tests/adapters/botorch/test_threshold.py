"""The threshold of GPCR: maximum likelihood, MAP, and the cases without a search."""

import math

import numpy as np
import pytest
import torch

from crashbo import GPCR
from tests.adapters.botorch.helpers import double, matern


def test_maximum_likelihood_on_example1(example1):
    model = GPCR(*example1, noise_std=0.02, covar_module=matern(), threshold_prior=None)
    assert model.threshold == pytest.approx(2.0284, abs=2e-4)
    assert model.converged


X = double([[0.2], [0.5], [0.8]])
Y = double([[1.0], [-0.5], [0.3]])


def test_only_stable_trials_under_maximum_likelihood_never_crash():
    model = GPCR(X, Y, torch.zeros(3).bool(), noise_std=0.02, covar_module=matern(), threshold_prior=None)
    assert model.threshold == math.inf
    assert model.log_truncation == 0.0
    assert model.success_probability(X).tolist() == [1.0, 1.0, 1.0]
    assert model.success_probability(X, log=True).tolist() == [0.0, 0.0, 0.0]


def test_only_stable_trials_under_map_keep_the_threshold_finite():
    model = GPCR(X, Y, torch.zeros(3).bool(), noise_std=0.02, covar_module=matern(), threshold_prior=(0.0, 5.0))
    assert 1.0 < model.threshold < 20.0
    assert model.converged


@pytest.mark.parametrize("prior", [None, (3.0, 5.0)])
def test_only_crashes_put_the_threshold_at_zero(prior):
    model = GPCR(X, Y, torch.ones(3).bool(), covar_module=matern(), threshold_prior=prior)
    assert model.threshold == 0.0
    assert (model.posterior(X).mean > 0).all()
    assert (model.success_probability(X) < 0.5).all()


def noisy_values_and_labels():
    """A limit of 1 on values whose noise is as large as their trend."""
    rng = np.random.default_rng(3)
    X = rng.random((40, 1))
    value = 0.6 + 0.6 * X[:, 0] + 0.3 * rng.standard_normal(40)
    return torch.from_numpy(X), torch.from_numpy(np.where(value > 1, np.nan, value)), torch.from_numpy(value > 1)


def test_a_learned_limit_lies_above_all_that_was_seen_to_hold():
    X, values, above = noisy_values_and_labels()
    model = GPCR(X, values.unsqueeze(-1), above)
    highest = float(values[~above].max())
    assert model.threshold >= highest - 1e-9
    more = model.condition_on_trials(double([[0.05]]), double([[highest + 0.2]]), torch.tensor([False]))
    assert more.threshold >= highest + 0.2 - 1e-9


def test_with_given_hyperparameters_noise_may_lift_a_value_above_the_limit():
    X, values, above = noisy_values_and_labels()
    model = GPCR(X, values.unsqueeze(-1), above, covar_module=matern(1.0), noise_std=0.3)
    assert model.threshold < float(values[~above].max())
