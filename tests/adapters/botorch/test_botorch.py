"""What BoTorch does with a model, GPCR lets it do."""

import copy
import math
import pickle

import pytest
import torch
from botorch.acquisition import (
    LogExpectedImprovement,
    UpperConfidenceBound,
    qKnowledgeGradient,
    qLogExpectedImprovement,
    qLogNoisyExpectedImprovement,
)
from botorch.acquisition.analytic import LogConstrainedExpectedImprovement
from botorch.acquisition.joint_entropy_search import qJointEntropySearch
from botorch.acquisition.max_value_entropy_search import qLowerBoundMaxValueEntropy, qMaxValueEntropy
from botorch.acquisition.objective import ScalarizedPosteriorTransform
from botorch.acquisition.utils import get_optimal_samples
from botorch.models import ModelListGP, SingleTaskGP
from botorch.optim import optimize_acqf
from botorch.sampling import SobolQMCNormalSampler
from botorch.sampling.pathwise import draw_matheron_paths
from botorch.utils.sampling import draw_sobol_samples

from crashbo import GPCR, fit_gpcr
from tests.adapters.botorch.helpers import double, matern

UNIT = double([[0.0], [1.0]])
WIDE = double([[-5.0], [10.0]])
MINIMIZE = ScalarizedPosteriorTransform(double([-1.0]))


@pytest.fixture(params=["fixed kernel", "learned kernel", "bounds"])
def setting(request, example1) -> tuple[GPCR, torch.Tensor]:
    """Each way to build a model, with the bounds of its domain."""
    if request.param == "fixed kernel":
        return GPCR(*example1, noise_std=0.02, covar_module=matern()), UNIT
    if request.param == "learned kernel":
        return GPCR(*example1), UNIT
    return GPCR(-5 + 15 * example1.X, example1.Y, example1.crashed, bounds=WIDE), WIDE


def points(bounds: torch.Tensor, n: int) -> torch.Tensor:
    return draw_sobol_samples(bounds, n=n, q=1, seed=0).squeeze(-2)


def sampler(n: int = 16) -> SobolQMCNormalSampler:
    return SobolQMCNormalSampler(torch.Size([n]), seed=0)


def joint_entropy_search(model, bounds):
    inputs, outputs = get_optimal_samples(
        model, bounds=bounds, num_optima=4, raw_samples=32, num_restarts=2, posterior_transform=MINIMIZE
    )
    return qJointEntropySearch(model, inputs, outputs, posterior_transform=MINIMIZE)


ACQUISITIONS = {
    "LogExpectedImprovement": lambda model, bounds: LogExpectedImprovement(model, best_f=0.5, maximize=False),
    "UpperConfidenceBound": lambda model, bounds: UpperConfidenceBound(model, beta=2.0, maximize=False),
    "qLogExpectedImprovement": lambda model, bounds: qLogExpectedImprovement(
        model, best_f=-0.5, sampler=sampler(), posterior_transform=MINIMIZE
    ),
    "qLogNoisyExpectedImprovement": lambda model, bounds: qLogNoisyExpectedImprovement(
        model, model.train_points, sampler=sampler(), posterior_transform=MINIMIZE
    ),
    "qMaxValueEntropy": lambda model, bounds: qMaxValueEntropy(
        model, points(bounds, 64), num_fantasies=2, num_mv_samples=4, posterior_transform=MINIMIZE
    ),
    "qLowerBoundMaxValueEntropy": lambda model, bounds: qLowerBoundMaxValueEntropy(
        model, points(bounds, 64), num_mv_samples=4, posterior_transform=MINIMIZE
    ),
    "qKnowledgeGradient": lambda model, bounds: qKnowledgeGradient(
        model, num_fantasies=4, posterior_transform=MINIMIZE
    ),
    "qJointEntropySearch": joint_entropy_search,
}


@pytest.mark.parametrize("name", ACQUISITIONS)
def test_acquisitions_can_be_optimised(setting, name):
    model, bounds = setting
    torch.manual_seed(0)
    acquisition = ACQUISITIONS[name](model, bounds)
    candidate, value = optimize_acqf(
        acquisition, bounds, q=1, num_restarts=2, raw_samples=16, options={"maxiter": 10, "seed": 0}
    )
    assert candidate.shape == (1, 1)
    assert ((candidate >= bounds[0]) & (candidate <= bounds[1])).all()
    assert value.isfinite().all()


@pytest.mark.parametrize("name", ["qLogExpectedImprovement", "qLogNoisyExpectedImprovement", "qKnowledgeGradient"])
def test_acquisitions_plan_several_points(setting, name):
    model, bounds = setting
    torch.manual_seed(0)
    candidates, _ = optimize_acqf(
        ACQUISITIONS[name](model, bounds),
        bounds,
        q=2,
        num_restarts=2,
        raw_samples=16,
        options={"maxiter": 5, "seed": 0},
    )
    assert candidates.shape == (2, 1)
    assert ((candidates >= bounds[0]) & (candidates <= bounds[1])).all()


@pytest.mark.parametrize("name", ["LogExpectedImprovement", "qLogNoisyExpectedImprovement", "UpperConfidenceBound"])
def test_bounds_do_not_change_acquisition_values(example1, name):
    unit = GPCR(*example1)
    wide = GPCR(-5 + 15 * example1.X, example1.Y, example1.crashed, bounds=WIDE)
    X = points(UNIT, 8).unsqueeze(-2)
    with torch.no_grad():
        first = ACQUISITIONS[name](unit, UNIT)(X)
        second = ACQUISITIONS[name](wide, WIDE)(-5 + 15 * X)
    assert torch.allclose(first, second, atol=1e-4)


def test_posterior_at_the_trials_is_eps(setting):
    model, _ = setting
    with torch.no_grad():
        posterior = model.posterior(model.train_points)
    scale = model.to_costs(double(1.0)) - model.to_costs(double(0.0))
    assert torch.allclose(posterior.mean.squeeze(-1), model.to_costs(model.ep.mean), atol=1e-6)
    assert torch.allclose(posterior.variance.squeeze(-1), scale**2 * model.ep.variance, atol=1e-6)


def test_joint_posterior_over_many_points(setting):
    model, bounds = setting
    X = points(bounds, 300)
    with torch.no_grad():
        joint = model.posterior(X)
        alone = model.posterior(X.unsqueeze(-2))
    covariance = joint.distribution.covariance_matrix
    assert covariance.shape == (300, 300)
    assert torch.allclose(joint.mean, alone.mean.squeeze(-2), atol=1e-7)
    assert torch.allclose(covariance.diagonal(), alone.variance.flatten(), atol=1e-7)
    assert torch.linalg.eigvalsh(covariance).min() > -1e-8 * covariance.diagonal().max()
    assert joint.rsample(torch.Size([3])).isfinite().all()


def test_observation_noise_is_the_costs_own(setting):
    model, bounds = setting
    X = torch.cat([points(bounds, 5), model.train_points])
    with torch.no_grad():
        latent, noisy = model.posterior(X), model.posterior(X, observation_noise=True)
    added = noisy.variance - latent.variance
    assert torch.allclose(added, torch.full_like(added, model.noise_std**2), rtol=1e-4, atol=1e-9)


def test_paths_follow_the_posterior(setting):
    model, bounds = setting
    torch.manual_seed(0)
    X = points(bounds, 12)
    with torch.no_grad():
        values = draw_matheron_paths(model, torch.Size([4096]))(X).squeeze(-1)
        posterior = model.posterior(X)
    deviation = posterior.variance.squeeze(-1).sqrt()
    assert ((values.mean(0) - posterior.mean.squeeze(-1)).abs() < 0.15 * deviation + 0.01).all()
    assert torch.allclose(values.std(0), deviation, rtol=0.2, atol=0.02)


def conditioned_by_hand(model: GPCR, X, new_X, new_Y, noise) -> torch.Tensor:
    """Mean of the exact GP with one more observation, from the joint posterior."""
    with torch.no_grad():
        posterior = model.posterior(torch.cat([X, new_X]))
    mean, covariance = posterior.mean, posterior.distribution.covariance_matrix
    n = len(X)
    block = covariance[n:, n:] + noise * torch.eye(len(new_X), dtype=torch.float64)
    return mean[:n] + covariance[:n, n:] @ torch.linalg.solve(block, new_Y - mean[n:])


def test_conditioning_on_observations_is_exact(setting):
    model, bounds = setting
    X, new_X, new_Y = points(bounds, 7), points(bounds, 9)[7:], double([[0.7], [0.4]])
    scale = model.to_costs(double(1.0)) - model.to_costs(double(0.0))
    noise = model.noise_std**2
    expected = conditioned_by_hand(model, X, new_X, new_Y, noise)
    conditioned = model.condition_on_observations(new_X, new_Y, noise=torch.full_like(new_Y, noise / scale**2))
    with torch.no_grad():
        assert torch.allclose(conditioned.posterior(X).mean, expected, atol=1e-5)


def test_fantasies_condition_on_their_own_samples(setting):
    model, bounds = setting
    X, new_X = points(bounds, 7), points(bounds, 8)[7:]
    fantasies = model.fantasize(new_X, sampler(8))
    with torch.no_grad():
        samples = sampler(8)(model.posterior(new_X, observation_noise=True))
        means = fantasies.posterior(X).mean
    assert means.shape == (8, 7, 1)
    for sample, mean in zip(samples, means, strict=True):
        expected = conditioned_by_hand(model, X, new_X, sample, model.noise_std**2)
        assert torch.allclose(mean, expected, atol=1e-4)


def test_fantasies_keep_the_mean_and_shrink_the_variance(setting):
    model, bounds = setting
    X = points(bounds, 7)
    fantasies = model.fantasize(points(bounds, 8)[7:], sampler(256))
    with torch.no_grad():
        before, after = model.posterior(X), fantasies.posterior(X)
    assert torch.allclose(after.mean.mean(0), before.mean, atol=0.02 * float(before.variance.max().sqrt()))
    assert (after.variance <= before.variance + 1e-9).all()


def test_two_models_in_a_list(example1):
    objective = GPCR(*example1)
    constraint = GPCR(example1.X, torch.cos(9 * example1.X), torch.tensor([True, False, False, True, False]))
    both = ModelListGP(objective, constraint)
    X = points(UNIT, 6)
    with torch.no_grad():
        posterior = both.posterior(X)
        assert torch.allclose(posterior.mean[:, :1], objective.posterior(X).mean, atol=1e-8)
        assert torch.allclose(posterior.variance[:, 1:], constraint.posterior(X).variance, atol=1e-8)
    acquisition = LogConstrainedExpectedImprovement(
        both, best_f=0.5, objective_index=0, constraints={1: (None, constraint.threshold)}, maximize=False
    )
    candidate, value = optimize_acqf(acquisition, UNIT, q=1, num_restarts=2, raw_samples=16, options={"maxiter": 10})
    assert ((candidate >= 0) & (candidate <= 1)).all()
    assert value.isfinite()


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["deepcopy", "pickle"]
)
def test_copies_predict_the_same_and_stand_alone(setting, duplicate):
    model, bounds = setting
    X = points(bounds, 7)
    copied = duplicate(model)
    with torch.no_grad():
        before = model.posterior(X).mean
        assert torch.equal(copied.posterior(X).mean, before)
        assert torch.equal(copied.success_probability(X), model.success_probability(X))
    assert copied.threshold == model.threshold
    fit_gpcr(copied)
    with torch.no_grad():
        assert torch.equal(model.posterior(X).mean, before)


def test_a_state_dict_makes_a_model_of_the_same_trials_the_same(example1):
    fitted = GPCR(*example1, covar_module=matern(0.4, 2.0), threshold=2.03)
    other = GPCR(*example1, covar_module=matern(0.1, 0.3), threshold=2.03)
    other.load_state_dict(fitted.state_dict())
    X = points(UNIT, 7)
    with torch.no_grad():
        assert torch.allclose(other.posterior(X).mean, fitted.posterior(X).mean, atol=1e-4)


def test_it_is_a_botorch_gp(setting):
    model, _ = setting
    assert isinstance(model, SingleTaskGP)
    assert model.num_outputs == 1
    assert model.batch_shape == torch.Size([])
    assert not model.training


def test_gradients_reach_the_inputs(setting):
    model, bounds = setting
    X = points(bounds, 4).requires_grad_()
    posterior = model.posterior(X.unsqueeze(-2))
    total = posterior.mean.sum() + posterior.variance.sum() + model.success_probability(X, log=True).sum()
    (gradient,) = torch.autograd.grad(total, X)
    assert gradient.isfinite().all()
    assert gradient.abs().min() > 0


def test_batches_of_points(setting):
    model, bounds = setting
    X = points(bounds, 24)
    with torch.no_grad():
        assert torch.allclose(
            model.posterior(X.reshape(2, 3, 4, 1)).mean.flatten(), model.posterior(X).mean.flatten(), atol=1e-8
        )


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_cuda_matches_cpu(example1):
    options = {"noise_std": 0.02, "threshold_prior": None}
    cpu = GPCR(*example1, covar_module=matern(), **options)
    cuda = GPCR(*(part.cuda() for part in example1), covar_module=matern(), **options)
    X = points(UNIT, 7)
    with torch.no_grad():
        mean = cuda.posterior(X.cuda()).mean
        assert mean.is_cuda
        assert torch.allclose(mean.cpu(), cpu.posterior(X).mean, atol=1e-5)
        assert torch.allclose(cuda.success_probability(X.cuda()).cpu(), cpu.success_probability(X), atol=1e-5)
    assert cuda.threshold == pytest.approx(cpu.threshold, abs=1e-4)
    assert math.isfinite(GPCR(*(part.cuda() for part in example1)).log_evidence)
