"""Hard data: whatever the trials, the model stays finite and within its ranges."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from torch import Tensor

from crashbo import GPCR
from crashbo.adapters.botorch.learn import Evidence
from tests.adapters.botorch.helpers import double, matern


@dataclass(repr=False)
class Case:
    """Arguments of a model, printed as the recipe they come from."""

    recipe: dict[str, Any]
    X: Tensor
    Y: Tensor
    crashed: Tensor

    def __repr__(self) -> str:
        return f"make_case(**{self.recipe})"


def make_case(
    n: int,
    d: int,
    seed: int,
    crashes: float = 0.4,
    smooth: bool = False,
    twins: int = 0,
    apart: float = 0.0,
    scale: float = 1.0,
) -> Case:
    """Random trials; the last `twins` repeat the first ones with the other label, `apart` away.

    Args:
        n, d, seed: size of the problem and of the random draw.
        crashes: share of crashed trials.
        smooth: whether the costs follow a wave and the highest ones crash, or all is random.
        twins: number of contradicting repetitions.
        apart: how far in every input.
        scale: of the costs.
    """
    recipe = {"n": n, "d": d, "seed": seed, "crashes": crashes, "smooth": smooth, "twins": twins, "apart": apart}
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.uniform(size=(n, d)))
    Y = torch.as_tensor(rng.normal(size=(n, 1)))
    crashed = torch.as_tensor(rng.uniform(size=n) < crashes)
    if smooth:
        latent = torch.sin(6 * X[:, :1])
        Y = latent + 0.05 * Y
        crashed = latent.squeeze(-1).argsort().argsort() >= (1 - crashes) * n
    twins = min(twins, n // 2)
    if twins:
        X[-twins:] = (X[:twins] + apart).clamp(0, 1)
        crashed[-twins:] = ~crashed[:twins]
    return Case(recipe | {"scale": scale}, X, torch.where(crashed[:, None], torch.nan, scale * Y), crashed)


def cases(scales: tuple[float, ...] = (1.0,), largest: int = 60) -> st.SearchStrategy[Case]:
    return st.builds(
        make_case,
        n=st.integers(1, largest),
        d=st.integers(1, 20),
        seed=st.integers(0, 10_000),
        crashes=st.sampled_from([0.0, 0.1, 0.4, 0.9, 1.0]),
        smooth=st.booleans(),
        twins=st.sampled_from([0, 1, 5]),
        apart=st.sampled_from([0.0, 1e-9]),
        scale=st.sampled_from(scales),
    )


def assert_sane(model: GPCR) -> None:
    """No NaN anywhere, every number in its range, finite gradients in the inputs."""
    d = model.train_points.shape[-1]
    fresh = torch.as_tensor(np.random.default_rng(0).uniform(size=(5, d)))
    X = torch.cat([fresh, model.train_points[:20], model.train_points[-5:]]).requires_grad_()
    posterior = model.posterior(X.unsqueeze(-2))
    probability, log_probability = model.success_probability(X), model.success_probability(X, log=True)
    assert posterior.mean.isfinite().all()
    assert posterior.variance.isfinite().all()
    assert (posterior.variance > 0).all()
    assert ((probability >= 0) & (probability <= 1)).all()
    assert log_probability.isfinite().all()
    assert model.log_truncation <= 0
    assert np.isfinite(model.log_evidence)
    assert (model.ep.variance > 0).all()
    total = posterior.mean.sum() + log_probability.sum()
    (gradient,) = torch.autograd.grad(total, X)
    assert gradient.isfinite().all()


def assert_finite_evidence_gradients(model: GPCR) -> None:
    """Finite derivatives of the log evidence in kernel, threshold and noise."""
    value, *slopes = Evidence(model.covar_module, model.trials, model.given)(
        model.given.noise_variance, model.internal_threshold
    )
    assert np.isfinite(value)
    assert all(np.isfinite(slope).all() for slope in slopes)


KERNELS = {"lengthscale": st.sampled_from([0.05, 0.3, 2.0]), "nu": st.sampled_from([0.5, 1.5, 2.5])}


def examples(count: int) -> settings:
    """So many examples; a recipe is short enough as it is, and shrinking would take minutes."""
    return settings(max_examples=count, phases=[Phase.explicit, Phase.generate])


@examples(60)
@given(case=cases(), noise_std=st.sampled_from([1e-6, 0.02, 0.3]), **KERNELS)
def test_any_trials_with_a_given_kernel(case, noise_std, lengthscale, nu):
    model = GPCR(case.X, case.Y, case.crashed, noise_std=noise_std, covar_module=matern(lengthscale, 1.0, nu))
    assert_sane(model)
    assert_finite_evidence_gradients(model)


@examples(25)
@given(case=cases(), offset=st.sampled_from([-20.0, 20.0]), noise_std=st.sampled_from([0.02, 0.3]), **KERNELS)
def test_a_threshold_twenty_standard_deviations_away(case, offset, noise_std, lengthscale, nu):
    kernel = matern(lengthscale, 1.0, nu)
    model = GPCR(case.X, case.Y, case.crashed, noise_std=noise_std, covar_module=kernel, threshold=offset)
    assert_sane(model)
    assert_finite_evidence_gradients(model)


@examples(25)
@given(case=cases(scales=(1e-9, 1e9)), **KERNELS)
def test_tiny_and_huge_costs_with_a_kernel_of_that_size(case, lengthscale, nu):
    scale = case.recipe["scale"]
    kernel = matern(lengthscale, scale**2, nu)
    model = GPCR(case.X, case.Y, case.crashed, noise_std=0.05 * scale, covar_module=kernel, threshold_prior=None)
    if np.isfinite(model.threshold):
        assert_sane(model)


@examples(20)
@given(case=cases(), width=st.sampled_from([1e-6, 0.1, 10.0]), **KERNELS)
def test_labels_only_with_and_without_a_width(case, width, lengthscale, nu):
    model = GPCR(case.X, None, case.crashed, covar_module=matern(lengthscale, 1.0, nu), label_width=width)
    assert_sane(model)
    assert_finite_evidence_gradients(model)


@examples(10)
@given(case=cases(scales=(1e-9, 1.0, 1e9), largest=40))
@example(make_case(n=30, d=3, seed=0, crashes=1.0))
@example(make_case(n=40, d=20, seed=1, twins=5))
@example(make_case(n=40, d=1, seed=2, twins=5, apart=1e-9, scale=1e9))
def test_any_trials_with_the_learned_kernel(case):
    model = GPCR(case.X, case.Y, case.crashed)
    assert_sane(model)
    assert_finite_evidence_gradients(model)


@examples(5)
@given(case=cases(largest=30))
def test_tiny_noise_with_the_learned_kernel(case):
    model = GPCR(case.X, case.Y, case.crashed, noise_std=1e-6)
    assert_sane(model)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter_to_a_kernel_of_their_size(example1, scale):
    models = [
        GPCR(
            example1.X,
            factor * example1.Y,
            example1.crashed,
            noise_std=0.02 * factor,
            covar_module=matern(0.2, 0.5 * factor**2),
            threshold_prior=None,
        )
        for factor in (1.0, scale)
    ]
    X = torch.linspace(0, 1, 11, dtype=torch.float64)[:, None]
    assert models[1].threshold == pytest.approx(scale * models[0].threshold, rel=1e-4)
    with torch.no_grad():
        variance, scaled = (model.posterior(X).variance for model in models)
        assert torch.allclose(scaled, scale**2 * variance, rtol=1e-3, atol=0)
        probability, scaled = (model.success_probability(X) for model in models)
        assert torch.allclose(scaled, probability, atol=1e-4)


def test_tiny_noise_is_believed():
    X, Y = double([[0.1], [0.5], [0.9]]), double([[0.2], [-0.3], [0.1]])
    model = GPCR(X, Y, torch.zeros(3).bool(), noise_std=1e-4, covar_module=matern(0.2, 1.0), threshold=5.0)
    with torch.no_grad():
        posterior = model.posterior(X)
    assert torch.allclose(posterior.mean, Y, atol=1e-6)
    assert torch.allclose(posterior.variance, torch.full_like(Y, 1e-8), rtol=1e-2)


def test_thirty_crashes_and_no_success():
    case = make_case(n=30, d=4, seed=3, crashes=1.0)
    for options in ({}, {"covar_module": matern(0.3, 1.0)}):
        model = GPCR(case.X, case.Y, case.crashed, **options)
        assert model.threshold == 0.0
        assert model.converged
        assert_sane(model)


@pytest.mark.parametrize(("n", "d"), [(200, 2), (500, 1), (500, 20)])
@pytest.mark.parametrize("twins", [0, 5])
def test_many_trials_with_a_given_kernel(n, d, twins):
    case = make_case(n=n, d=d, seed=n + d, smooth=True, twins=twins, apart=1e-9)
    model = GPCR(case.X, case.Y, case.crashed, noise_std=0.1, covar_module=matern(0.3, 1.0))
    assert model.converged or twins
    assert_sane(model)
    assert_finite_evidence_gradients(model)


def test_many_trials_with_the_learned_kernel():
    case = make_case(n=200, d=6, seed=4, twins=5)
    assert_sane(GPCR(case.X, case.Y, case.crashed))
