"""Kernels, the evidence and its gradients, and learning."""

import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import NormalPrior

from crashbo import GPCR, InputError, fit_gpcr, make_kernel
from crashbo.data import check_trials
from crashbo.models import hyperparameters
from crashbo.models.hyperparameters import Hypotheses, covariance, learn, log_evidence, solve
from crashbo.models.threshold import ThresholdRule
from tests.helpers import double, matern, matern32_matrix


def wavy(n: int, d: int, noise: float, seed: int):
    """Trials of a smooth cost that depends on its first input only and crashes above 1."""
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.uniform(size=(n, d)))
    latent = 1.5 * torch.sin(6 * X[:, :1])
    Y = latent + noise * torch.as_tensor(rng.normal(size=(n, 1)))
    return X, Y, (latent > 1).squeeze(-1)


def test_covariance_matches_the_formula(example1):
    assert torch.allclose(covariance(matern(), example1.X), matern32_matrix(example1.X, example1.X), atol=1e-12)


@pytest.mark.parametrize(
    "kernel",
    [
        make_kernel(2, "matern32"),
        make_kernel(2, "matern52"),
        make_kernel(2, "rbf"),
        matern([0.2, 0.7], 2.0, nu=0.5),
        ScaleKernel(MaternKernel(nu=1.5, active_dims=(1,))),
        ScaleKernel(RBFKernel(), active_dims=(0,)),
        ScaleKernel(RBFKernel()) + ScaleKernel(MaternKernel(nu=0.5)),
        RBFKernel(),
    ],
    ids=["matern32", "matern52", "rbf", "matern12", "active inside", "active outside", "sum", "bare"],
)
def test_covariance_is_the_kernels_own(kernel):
    X, other = torch.as_tensor(np.random.default_rng(0).uniform(size=(9, 2))).split([5, 4])
    kernel = kernel.double()
    assert torch.allclose(covariance(kernel, X), kernel(X).to_dense(), atol=1e-12)
    assert torch.allclose(covariance(kernel, X, other), kernel(X, other).to_dense(), atol=1e-12)


@pytest.mark.parametrize(("kind", "nu"), [("matern32", 1.5), ("matern52", 2.5), ("rbf", None)])
def test_kernels_have_a_lengthscale_per_input_and_priors(kind, nu):
    kernel = make_kernel(3, kind)
    assert kernel.base_kernel.lengthscale.shape == (1, 3)
    assert getattr(kernel.base_kernel, "nu", None) == nu
    assert len(list(kernel.named_priors())) == 2
    assert all(parameter.dtype == torch.float64 for parameter in kernel.parameters())


def test_unknown_kernels_are_refused():
    with pytest.raises(InputError, match=r"`kind` must be 'matern32', 'matern52' or 'rbf'; got 'cubic'"):
        make_kernel(2, "cubic")


@pytest.mark.parametrize("width", [0.0, 0.1])
def test_evidence_gradients_match_finite_differences(example1, width):
    data = check_trials(*example1)
    given = Hypotheses(ThresholdRule(), 0.0, label_width=width)

    def evidence(lengthscale, outputscale, threshold, log_noise):
        kernel = matern()
        kernel.base_kernel.raw_lengthscale.data.fill_(lengthscale)
        kernel.raw_outputscale.data.fill_(outputscale)
        leaves = [double(threshold).requires_grad_(), double(log_noise).requires_grad_()]
        value = log_evidence(kernel, data, given, leaves[0], leaves[1].exp())
        return value, [kernel.base_kernel.raw_lengthscale, kernel.raw_outputscale, *leaves]

    point = [-1.5, -0.4, 2.1, math.log(0.05**2)]
    value, leaves = evidence(*point)
    gradients = torch.autograd.grad(value, leaves)
    for i, gradient in enumerate(gradients):
        ends = []
        for step in (1e-4, -1e-4):
            moved = list(point)
            moved[i] += step
            ends.append(float(evidence(*moved)[0].detach()))
        assert float(gradient.sum()) == pytest.approx((ends[0] - ends[1]) / 2e-4, rel=1e-3, abs=1e-4)


def test_evidence_of_the_model_is_the_function(example1, example1_model):
    data, given = check_trials(*example1), Hypotheses(ThresholdRule(), 0.0)
    value = log_evidence(matern(), data, given, double(2.03), double(0.02**2)).detach()
    assert example1_model.log_evidence == pytest.approx(float(value), abs=1e-6)


def test_learning_changes_the_kernel_for_the_better():
    X, Y, crashed = wavy(20, 1, 0.05, seed=0)
    kernel = matern(lengthscale=2.0, outputscale=0.1)
    data, given = check_trials(X, Y, crashed), Hypotheses(ThresholdRule(prior=(0.0, 5.0)), 0.05**2)

    def score():
        threshold = double(solve(kernel, data, given).threshold)
        with torch.no_grad():
            return float(log_evidence(kernel, data, given, threshold, double(0.05**2)))

    before = score()
    assert learn(kernel, data, given) == 0.05**2
    assert score() > before + 1


def test_learning_with_everything_fixed_returns_at_once(example1):
    kernel = matern()
    for parameter in kernel.parameters():
        parameter.requires_grad_(False)
    given = Hypotheses(ThresholdRule(fixed=2.0), 4e-4)
    assert learn(kernel, check_trials(*example1), given) == 4e-4
    assert kernel.base_kernel.lengthscale.item() == pytest.approx(0.2)


@pytest.mark.parametrize("kind", ["matern32", "matern52", "rbf"])
def test_every_kernel_can_be_fitted(kind):
    X, Y, crashed = wavy(20, 2, 0.05, seed=1)
    model = GPCR(X, Y, crashed, noise_std=0.05, covar_module=make_kernel(2, kind))
    before = model.log_evidence
    assert fit_gpcr(model) is model
    assert model.converged
    assert model.log_evidence > before


def test_the_input_that_matters_gets_the_short_lengthscale():
    model = GPCR(*wavy(30, 3, 0.05, seed=2))
    first, *others = model.covar_module.base_kernel.lengthscale.squeeze(0).tolist()
    assert all(other > 2 * first for other in others)


@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_noise_is_learned_to_its_order_of_magnitude(noise):
    model = GPCR(*wavy(40, 1, noise, seed=3))
    assert noise / 3 < model.noise_std < 3 * noise


def test_given_noise_is_kept():
    model = GPCR(*wavy(15, 1, 0.1, seed=4), noise_std=0.123)
    assert model.noise_std == pytest.approx(0.123)
    assert fit_gpcr(model).noise_std == pytest.approx(0.123)


def test_learning_is_deterministic():
    first, second = (GPCR(*wavy(15, 2, 0.1, seed=5)) for _ in range(2))
    assert first.threshold == second.threshold
    assert first.log_evidence == second.log_evidence


@pytest.mark.parametrize("kind", ["matern32", "matern52", "rbf"])
def test_small_and_large_problems_are_learned_alike(monkeypatch, kind):
    X, Y, crashed = wavy(25, 2, 0.1, seed=6)
    small = fit_gpcr(GPCR(X, Y, crashed, covar_module=make_kernel(2, kind), noise_std=0.1, standardize=True))
    monkeypatch.setattr(hyperparameters, "SMALL", 0)
    large = fit_gpcr(GPCR(X, Y, crashed, covar_module=make_kernel(2, kind), noise_std=0.1, standardize=True))
    assert small.log_evidence == pytest.approx(large.log_evidence, abs=0.05)
    assert small.threshold == pytest.approx(large.threshold, abs=0.02)


@pytest.mark.parametrize("kernel", [make_kernel(1), matern(0.5, 1.0)], ids=["ours", "any"])
def test_frozen_parameters_stay(kernel):
    kernel.base_kernel.raw_lengthscale.requires_grad_(False)
    before = kernel.base_kernel.lengthscale.item()
    model = fit_gpcr(GPCR(*wavy(15, 1, 0.1, seed=7), covar_module=kernel))
    assert model.covar_module.base_kernel.lengthscale.item() == before


def test_priors_of_the_users_own_count():
    kernel = make_kernel(1)
    kernel.base_kernel.register_prior(
        "lengthscale_prior", NormalPrior(0.7, 1e-3), lambda module: module.lengthscale, None
    )
    model = fit_gpcr(GPCR(*wavy(15, 1, 0.1, seed=8), covar_module=kernel.double()))
    assert model.covar_module.base_kernel.lengthscale.item() == pytest.approx(0.7, abs=0.02)
