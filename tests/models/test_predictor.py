"""Fast predictions: equal to the model's, with believed points, posterior paths and gradients."""

import math

import numpy as np
import pytest
import torch
from gpytorch.kernels import PeriodicKernel, RBFKernel, ScaleKernel

from crashbo import GPCR, make_kernel
from crashbo.models.hyperparameters import covariance
from crashbo.models.predictor import Predictor
from tests.helpers import double, matern, matern32_matrix

LINE = torch.linspace(0, 1, 41, dtype=torch.float64)[:, None]


def trials(d: int = 2, n: int = 10):
    X = torch.as_tensor(np.random.default_rng(1).uniform(size=(n, d)))
    Y = 30 + 10 * torch.sin(5 * X[:, :1]) + X.sum(-1, keepdim=True)
    return X, Y, Y.squeeze(-1) > 36


def rbf() -> ScaleKernel:
    kernel = ScaleKernel(RBFKernel()).double()
    kernel.base_kernel.lengthscale, kernel.outputscale = 0.4, 300.0
    return kernel


def periodic() -> ScaleKernel:
    kernel = ScaleKernel(PeriodicKernel()).double()
    kernel.outputscale = 300.0
    return kernel


KERNELS = {
    "learned": lambda: None,
    "matern32": lambda: matern(0.3, 400.0),
    "matern52 with its own scales": lambda: matern([0.3, 0.7], 400.0, nu=2.5),
    "rbf": rbf,
    "not plain": periodic,
}


@pytest.fixture(scope="module", params=KERNELS)
def pair(request) -> tuple[GPCR, Predictor]:
    """A model of two inputs and its predictor."""
    model = GPCR(*trials(), covar_module=KERNELS[request.param](), noise_std=0.5, threshold_prior=(30.0, 30.0))
    return model, Predictor(model.fit)


@pytest.fixture
def line(example1_model) -> Predictor:
    """Example 1 of the paper."""
    return Predictor(example1_model.fit)


def test_moments_equal_the_models(pair):
    model, predictor = pair
    X = torch.as_tensor(np.random.default_rng(5).uniform(size=(30, 2)))
    X = torch.cat([X, model.trials.X])
    with torch.no_grad():
        posterior = model.posterior(X)
        mean, deviation = predictor.moments(X)
        scale = float(posterior.variance.sqrt().max())
        assert torch.allclose(mean, posterior.mean.squeeze(-1), rtol=1e-6, atol=1e-5 * scale)
        assert torch.allclose(deviation.square(), posterior.variance.squeeze(-1), rtol=1e-4, atol=1e-6 * scale**2)
    assert predictor.threshold == model.threshold
    assert predictor.noise_variance == pytest.approx(0.25)


def test_success_equals_the_models(pair):
    model, predictor = pair
    X = torch.as_tensor(np.random.default_rng(6).uniform(size=(30, 2)))
    with torch.no_grad():
        assert torch.allclose(predictor.log_success(X).exp(), model.success_probability(X), atol=1e-5)
        assert torch.allclose(predictor.log_success(X), model.success_probability(X, log=True), rtol=1e-3, atol=1e-5)


def test_success_against_another_threshold(line):
    with torch.no_grad():
        mean, deviation = line.moments(LINE)
        expected = torch.special.log_ndtr((1.0 - mean) / deviation)
        assert torch.allclose(line.log_success(LINE, threshold=1.0), expected, rtol=1e-6)
        assert torch.equal(line.log_success(LINE, threshold=math.inf), torch.zeros(41).double())


def test_label_width_enters_success(example1):
    model = GPCR(*example1, noise_std=0.02, covar_module=matern(), threshold=2.03, label_width=0.3)
    predictor = Predictor(model.fit)
    with torch.no_grad():
        assert torch.allclose(predictor.log_success(LINE).exp(), model.success_probability(LINE), atol=1e-6)


def test_moments_follow_the_formula_without_crashes():
    X, Y, _ = trials(d=1)
    model = GPCR(X, Y, torch.zeros(10).bool(), covar_module=matern(0.3, 400.0), noise_std=0.5, threshold=math.inf)
    block = matern32_matrix(X, X, 0.3, 400.0) + 0.25 * torch.eye(10)
    cross = matern32_matrix(LINE, X, 0.3, 400.0)
    with torch.no_grad():
        mean, deviation = Predictor(model.fit).moments(LINE)
    assert torch.allclose(mean, (cross @ torch.linalg.solve(block, Y)).squeeze(-1), atol=1e-6)
    variance = 400.0 - (cross * torch.linalg.solve(block, cross.mT).mT).sum(-1)
    assert torch.allclose(deviation.square(), variance, rtol=1e-6, atol=1e-6)


def test_batches_keep_their_shape(line):
    X = torch.rand(3, 4, 1, dtype=torch.float64)
    mean, deviation = line.moments(X)
    assert mean.shape == deviation.shape == line.log_success(X).shape == (3, 4)
    assert torch.allclose(mean[2], line.moments(X[2])[0])
    posterior = line.posterior(X[:, :1])
    assert posterior.mean.shape == posterior.variance.shape == (3, 1, 1)
    assert posterior.rsample(torch.Size([7])).shape == (7, 3, 1, 1)
    assert posterior.dtype == torch.float64
    assert posterior.device == X.device
    assert line.num_outputs == 1


def test_believing_keeps_the_mean_and_lowers_the_variance(pair):
    _, predictor = pair
    pending = double([[0.31, 0.77], [0.9, 0.12]])
    believer = predictor.believing(pending)
    X = torch.as_tensor(np.random.default_rng(7).uniform(size=(50, 2)))
    with torch.no_grad():
        before, after = predictor.moments(X), believer.moments(X)
        at_pending = predictor.moments(pending)[1], believer.moments(pending)[1]
    size = float(before[1].max())
    assert torch.allclose(before[0], after[0], atol=1e-5 * size)
    assert (after[1] <= before[1] + 1e-6 * size).all()
    assert (at_pending[1] <= at_pending[0]).all()
    assert (at_pending[1] <= 1.01 * max(predictor.noise_variance**0.5, 1e-3 * size)).all()
    assert believer.threshold == predictor.threshold
    assert len(predictor.X) + 2 == len(believer.X)


def test_believing_in_nothing_changes_nothing(line):
    assert torch.equal(line.believing(torch.zeros(0, 1).double()).factor, line.factor)


def test_beliefs_add_up(line):
    first, second = double([[0.2]]), double([[0.8]])
    both = line.believing(torch.cat([first, second]))
    stepwise = line.believing(first).believing(second)
    with torch.no_grad():
        assert torch.allclose(both.moments(LINE)[1], stepwise.moments(LINE)[1], atol=1e-8)


@pytest.mark.parametrize(
    "kernel", [matern(), matern(0.3, 2.0, nu=2.5), make_kernel(1, "rbf")], ids=["matern32", "matern52", "rbf"]
)
def test_paths_have_the_posterior_moments(example1, kernel):
    predictor = Predictor(GPCR(*example1, noise_std=0.02, covar_module=kernel, threshold=2.03).fit)
    generator = torch.Generator().manual_seed(0)
    # Paths of one call share their features, so that several calls are needed to average those out.
    values = torch.cat([predictor.sample_paths(100, generator, features=256)(LINE) for _ in range(40)])
    with torch.no_grad():
        mean, deviation = predictor.moments(LINE)
    assert values.shape == (4000, 41)
    assert torch.allclose(values.mean(0), mean, atol=4 * float(deviation.max()) / math.sqrt(1000))
    assert torch.allclose(values.std(0), deviation, rtol=0.08, atol=0.01)


def test_paths_have_the_posterior_correlation(line):
    generator = torch.Generator().manual_seed(1)
    X = double([[0.0], [0.05], [0.62], [0.8], [0.84]])
    values = torch.cat([line.sample_paths(100, generator, features=256)(X) for _ in range(40)])
    with torch.no_grad():
        noisy = covariance(line.kernel, line.X) + line.variances.diag()
        cross = covariance(line.kernel, line.X, X)
        expected = covariance(line.kernel, X) - cross.mT @ torch.linalg.solve(noisy, cross)
    assert torch.allclose(values.mT.cov(), expected, atol=0.04)


def test_paths_are_functions(line):
    paths = line.sample_paths(3, torch.Generator().manual_seed(2))
    assert torch.equal(paths(LINE), paths(LINE))
    own = LINE.expand(3, 41, 1)
    assert torch.allclose(paths(own), paths(LINE))
    again = line.sample_paths(3, torch.Generator().manual_seed(2))
    assert torch.equal(again(LINE), paths(LINE))


def test_paths_are_in_the_costs_own_units():
    model = GPCR(*trials())
    predictor = Predictor(model.fit)
    values = predictor.sample_paths(50, torch.Generator().manual_seed(0))(model.trials.X[model.trials.observed])
    costs = trials()[1][~trials()[2]].squeeze(-1)
    assert torch.allclose(values.mean(0), costs, atol=1.5)


def test_gradients_flow_and_match_differences(pair):
    _, predictor = pair
    X = double([[0.21, 0.47], [0.66, 0.83]])
    for function in (lambda x: predictor.moments(x)[0], lambda x: predictor.moments(x)[1], predictor.log_success):
        point = X.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(function(point).sum(), point)
        step = 1e-6
        with torch.no_grad():
            for axis in range(2):
                shift = step * torch.eye(2, dtype=torch.float64)[axis]
                difference = (function(X + shift) - function(X - shift)) / (2 * step)
                assert torch.allclose(gradient[:, axis], difference, rtol=1e-3, atol=1e-4 * float(gradient.abs().max()))
