"""Kernels, the evidence and its gradients, and learning."""

import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import PeriodicKernel, RBFKernel, ScaleKernel
from gpytorch.priors import NormalPrior

from crashbo import GPCR, InputError, fit_gpcr, make_kernel
from crashbo.adapters.botorch.data import check_trials
from crashbo.adapters.botorch.kernels import Coordinates, covariance
from crashbo.adapters.botorch.learn import Evidence, Hypotheses, learn, solve_threshold
from crashbo.model.map import log_lengthscale_prior
from crashbo.model.numbers import NUMBERS
from crashbo.model.threshold import ThresholdRule
from tests.adapters.botorch.helpers import double, matern, matern32_matrix


def wavy(n: int, d: int, noise: float, seed: int):
    """Trials of a smooth cost that depends on its first input only and crashes above 1."""
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.uniform(size=(n, d)))
    latent = 1.5 * torch.sin(6 * X[:, :1])
    Y = latent + noise * torch.as_tensor(rng.normal(size=(n, 1)))
    return X, Y, (latent > 1).squeeze(-1)


def test_covariance_matches_the_formula(example1):
    assert torch.allclose(covariance(matern(), example1.X), matern32_matrix(example1.X, example1.X), atol=1e-12)


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


def kernels() -> dict[str, object]:
    """Kernels of every kind: ours, in logs; gpytorch's, with transforms; sums and others."""
    return {
        "ours": make_kernel(1),
        "gpytorch": matern(0.3, 0.8),
        "sum": (ScaleKernel(RBFKernel()) + matern(0.5, 1.0)).double(),
        "periodic": ScaleKernel(PeriodicKernel()).double(),
    }


@pytest.mark.parametrize("kind", kernels())
@pytest.mark.parametrize("width", [0.0, 0.1])
def test_evidence_gradients_match_finite_differences(example1, width, kind):
    kernel = kernels()[kind]
    coordinates = Coordinates(kernel)
    begin = np.r_[coordinates.read(), math.log(0.05**2), 2.1]
    given = Hypotheses(ThresholdRule(), 0.0, label_width=width)

    def evidence(theta):
        coordinates.write(theta[:-2])
        fresh = Evidence(kernel, check_trials(*example1), given, tolerance=1e-10)
        value, by_kernel, by_noise, by_threshold = fresh(math.exp(theta[-2]), float(theta[-1]))
        return value, np.r_[by_kernel, by_noise, by_threshold]

    _, gradient = evidence(begin)
    for i, slope in enumerate(gradient):
        step = 1e-5 * (np.arange(len(begin)) == i)
        difference = (evidence(begin + step)[0] - evidence(begin - step)[0]) / 2e-5
        assert slope == pytest.approx(difference, rel=2e-3, abs=1e-3)


def test_evidence_of_the_model_is_the_function(example1, example1_model):
    evidence = Evidence(matern(), check_trials(*example1), Hypotheses(ThresholdRule(), 0.0))
    assert example1_model.log_evidence == pytest.approx(evidence(0.02**2, 2.03)[0], abs=1e-6)


def test_our_lengthscale_prior_is_the_engines():
    kernel = make_kernel(3)
    kernel.base_kernel.lengthscale = double([[0.2, 0.5, 1.5]])
    value, slope = log_lengthscale_prior(np.log([0.2, 0.5, 1.5]), NUMBERS)
    prior = kernel.base_kernel.lengthscale_prior.log_prob(kernel.base_kernel.lengthscale)
    assert float(prior.detach().sum()) == pytest.approx(float(value))
    gradient = Coordinates(kernel).gradient(prior.sum())
    assert gradient == pytest.approx(np.r_[0.0, slope] if gradient[0] == 0 else np.r_[slope, 0.0])


def test_learning_changes_the_kernel_for_the_better():
    X, Y, crashed = wavy(20, 1, 0.05, seed=0)
    kernel = matern(lengthscale=2.0, outputscale=0.1)
    data, given = check_trials(X, Y, crashed), Hypotheses(ThresholdRule(prior=(0.0, 5.0)), 0.05**2)

    def score():
        return solve_threshold(kernel, data, given).log_posterior

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
