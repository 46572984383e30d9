"""The NumPy evidence against the differentiable torch one."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal

from crashbo import make_kernel
from crashbo.data import check_trials
from crashbo.inference.evidence_small import Hyperparameters, SmallEvidence
from crashbo.models.hyperparameters import Hypotheses, log_evidence
from crashbo.models.threshold import ThresholdRule
from tests.helpers import double

SMOOTHNESS = {"matern32": 1.5, "matern52": 2.5, "rbf": math.inf}
AT = Hyperparameters(np.array([0.3, 0.8]), 1.7, 0.1**2, 0.4)


def trials(n: int = 12, with_costs: bool = True):
    X = torch.as_tensor(np.random.default_rng(0).uniform(size=(n, 2)))
    Y = torch.sin(5 * X[:, :1]) + 0.3 * X[:, 1:]
    return check_trials(X, Y if with_costs else None, Y.squeeze(-1) > 0.5)


def small(data, kind: str = "matern52", width: float = 0.0) -> SmallEvidence:
    arrays = (data.X.numpy(), data.sign.numpy(), data.observed.numpy(), data.costs.numpy())
    return SmallEvidence(*arrays, nu=SMOOTHNESS[kind], width=width)


@pytest.mark.parametrize("kind", SMOOTHNESS)
@pytest.mark.parametrize("with_costs", [True, False])
@pytest.mark.parametrize("width", [0.0, 0.2])
def test_value_and_gradient_match_torch(kind, with_costs, width):
    data = trials(with_costs=with_costs)
    kernel = make_kernel(2, kind)
    kernel.base_kernel.lengthscale, kernel.outputscale = double(AT.lengthscale), AT.outputscale
    threshold, noise = double(AT.threshold).requires_grad_(), double(AT.noise_variance).requires_grad_()
    value = log_evidence(kernel, data, Hypotheses(ThresholdRule(), 0.0, label_width=width), threshold, noise)
    leaves = [kernel.base_kernel.raw_lengthscale, kernel.raw_outputscale, threshold, noise]
    lengthscale, outputscale, limit, variance = torch.autograd.grad(value, leaves, materialize_grads=True)
    found = small(data, kind, width)(AT)
    assert found.converged
    assert found.value == pytest.approx(float(value.detach()), abs=1e-5)
    assert np.allclose(found.log_lengthscale, lengthscale.numpy()[0] * AT.lengthscale, atol=1e-3)
    assert found.log_outputscale == pytest.approx(float(outputscale) * AT.outputscale, abs=1e-3)
    assert found.threshold == pytest.approx(float(limit), abs=1e-3)
    assert found.log_noise == pytest.approx(float(variance) * AT.noise_variance, abs=1e-3)


def test_warm_starts_change_nothing():
    evidence = small(trials())
    first = evidence(AT)
    evidence(Hyperparameters(np.array([1.0, 2.0]), 0.5, 0.2**2, 0.9))
    again = evidence(AT)
    assert again.value == pytest.approx(first.value, abs=1e-4)
    assert np.allclose(again.log_lengthscale, first.log_lengthscale, atol=1e-2)


def test_an_infinite_threshold_is_no_threshold():
    data = check_trials(double([[0.1], [0.7]]), double([[0.3], [0.5]]), [False, False])
    found = small(data)(Hyperparameters(np.array([0.3]), 1.0, 0.01, math.inf))
    kernel = make_kernel(1)
    kernel.base_kernel.lengthscale = double(0.3)
    block = kernel(data.X).to_dense().detach().numpy() + 0.01 * np.eye(2)
    assert found.threshold == 0.0
    assert found.value == pytest.approx(multivariate_normal(cov=block).logpdf(data.costs.numpy()), abs=1e-9)
