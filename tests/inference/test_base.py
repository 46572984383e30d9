"""The Gaussian part of the posterior against textbook formulas."""

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from crashbo import NumericalError
from crashbo.inference.base import NOISE_FLOOR, condition_on_costs
from tests.helpers import double, random_covariance

OBSERVED = torch.tensor([0, 2, 3])
COSTS = double([0.4, -1.0, 0.7])


def test_moments_match_the_product_of_prior_and_likelihood():
    prior = random_covariance(5, seed=0)
    base = condition_on_costs(prior, OBSERVED, COSTS, double(0.04))
    likelihood = torch.zeros(5, dtype=torch.float64).index_fill(0, OBSERVED, 1 / 0.04)
    covariance = torch.linalg.inv(torch.linalg.inv(prior) + torch.diag(likelihood))
    weighted = torch.zeros(5, dtype=torch.float64).index_copy(0, OBSERVED, COSTS / 0.04)
    assert torch.allclose(base.covariance, covariance, atol=1e-12)
    assert torch.allclose(base.mean, covariance @ weighted, atol=1e-12)


def test_log_evidence_is_the_density_of_the_costs():
    prior = random_covariance(5, seed=1)
    base = condition_on_costs(prior, OBSERVED, COSTS, double(0.04))
    block = prior[OBSERVED][:, OBSERVED].numpy() + 0.04 * np.eye(3)
    expected = multivariate_normal(cov=block).logpdf(COSTS.numpy())
    assert float(base.log_evidence) == pytest.approx(expected, abs=1e-10)


def test_every_cost_may_have_its_own_noise():
    prior = random_covariance(4, seed=2)
    noise = double([0.01, 0.1, 1.0])
    base = condition_on_costs(prior, OBSERVED, COSTS, noise)
    block = prior[OBSERVED][:, OBSERVED] + torch.diag(noise)
    assert torch.allclose(base.mean, prior[:, OBSERVED] @ torch.linalg.solve(block, COSTS), atol=1e-12)


def test_batches_are_solved_one_by_one():
    priors = torch.stack([random_covariance(4, seed=seed) for seed in range(3)])
    noises = double([0.01, 0.1, 1.0])
    batched = condition_on_costs(priors, OBSERVED, COSTS, noises)
    for i in range(3):
        alone = condition_on_costs(priors[i], OBSERVED, COSTS, noises[i])
        assert torch.allclose(batched.mean[i], alone.mean, atol=1e-13)
        assert torch.allclose(batched.covariance[i], alone.covariance, atol=1e-13)
        assert torch.allclose(batched.log_evidence[i], alone.log_evidence, atol=1e-12)


def test_without_costs_the_prior_stays():
    prior = random_covariance(3, seed=3)
    base = condition_on_costs(prior, OBSERVED[:0], COSTS[:0], double(0.01))
    assert torch.equal(base.covariance, prior)
    assert not base.mean.any()
    assert float(base.log_evidence) == 0.0


def test_tiny_noise_acts_as_the_floor():
    prior = torch.ones(2, 2, dtype=torch.float64)
    everything, costs = torch.tensor([0, 1]), double([0.5, 0.5])
    floored = condition_on_costs(prior, everything, costs, double(1e-30))
    expected = condition_on_costs(prior, everything, costs, double(NOISE_FLOOR))
    assert torch.equal(floored.mean, expected.mean)


def test_gradients_reach_prior_costs_and_noise():
    prior = random_covariance(4, seed=4).requires_grad_()
    costs, noise = COSTS.clone().requires_grad_(), double(0.05).requires_grad_()

    def outputs(k, y, s):
        base = condition_on_costs(0.5 * (k + k.mT), OBSERVED, y, s)
        return base.mean, base.covariance, base.log_evidence

    assert torch.autograd.gradcheck(outputs, (prior, costs, noise))


def test_inputs_are_left_alone():
    prior, costs, noise = random_covariance(4, seed=5), COSTS.clone(), double(0.05)
    copies = prior.clone(), costs.clone(), noise.clone()
    condition_on_costs(prior, OBSERVED, costs, noise)
    assert all(torch.equal(a, b) for a, b in zip((prior, costs, noise), copies, strict=True))


def test_an_indefinite_prior_is_refused():
    prior = double([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(NumericalError, match="not positive definite"):
        condition_on_costs(prior, torch.tensor([0, 1]), double([0.0, 0.0]), double(1e-6))
