"""EP against exact answers, a textbook EP, finite differences and itself."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from crashbo import InputError
from crashbo.inference import ep as ep_module
from crashbo.inference.base import BaseGaussian, condition_on_costs
from crashbo.inference.ep import EPOptions, EPResult, Labels, expectation_propagation, log_partition
from crashbo.inference.exact import exact_truncation
from tests.helpers import double, labels, matern32_matrix, random_covariance

TIGHT = EPOptions(tolerance=1e-11)
MOMENTS = ("mean", "variance", "gradient", "log_partition")


def same(first: EPResult, second: EPResult, tolerance: float, fields: tuple[str, ...] = MOMENTS) -> bool:
    return all(torch.allclose(getattr(first, f), getattr(second, f), rtol=0, atol=tolerance) for f in fields)


@pytest.fixture
def hybrid(example1) -> tuple[BaseGaussian, torch.Tensor]:
    """The base Gaussian and the labels of Example 1."""
    observed = (~example1.crashed).nonzero().squeeze(-1)
    prior = matern32_matrix(example1.X, example1.X)
    return condition_on_costs(prior, observed, example1.Y[observed, 0], double(0.02**2)), example1.crashed


@pytest.mark.parametrize(
    ("threshold", "exact"),
    [(1.98, -10.0823), (2.00, -9.1391), (2.03, -8.7798), (2.10, -9.1964), (2.50, -12.1715), (3.00, -16.5624)],
)
def test_example1_mass_matches_the_exact_integral(hybrid, threshold, exact):
    base, crashed = hybrid
    result = expectation_propagation(base.mean, base.covariance, labels(crashed, threshold))
    assert result.converged
    assert float(result.log_partition) == pytest.approx(exact, abs=1e-3)


def test_example1_moments_match_gibbs_samples(hybrid):
    base, crashed = hybrid
    result = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.03))
    assert torch.allclose(result.mean, double([0.5005, 1.9956, 1.0010, 2.2685, 2.3067]), atol=0.005)
    assert torch.allclose(result.variance.sqrt(), double([0.0200, 0.0179, 0.0200, 0.2112, 0.2437]), atol=0.003)


@pytest.mark.parametrize(("mean", "limit", "crashed"), [(0.3, 0.0, True), (0.3, 0.0, False), (5.0, -3.0, False)])
def test_one_label_is_exact(mean, limit, crashed):
    variance = 2.0
    exact = expectation_propagation(double([mean]), double([[variance]]), labels(torch.tensor([crashed]), limit))
    z = (limit - mean) / np.sqrt(variance) * (-1 if crashed else 1)
    assert float(exact.log_partition) == pytest.approx(norm.logcdf(z), abs=1e-6)


def textbook_ep(covariance: np.ndarray, sign: np.ndarray, limit: float, sweeps: int = 60):
    """Sequential EP for classification, after algorithm 3.5 of Rasmussen & Williams, with a step for a likelihood."""
    n = len(sign)
    tau, nu = np.zeros(n), np.zeros(n)
    sigma, mu = covariance.copy(), np.zeros(n)
    for _ in range(sweeps):
        for i in range(n):
            tau_cavity = 1 / sigma[i, i] - tau[i]
            nu_cavity = mu[i] / sigma[i, i] - nu[i]
            v, m = 1 / tau_cavity, nu_cavity / tau_cavity
            z = sign[i] * (limit - m) / np.sqrt(v)
            ratio = np.exp(norm.logpdf(z) - norm.logcdf(z))
            mean = m - sign[i] * np.sqrt(v) * ratio
            variance = v * (1 - ratio * (z + ratio))
            change = 1 / variance - tau_cavity - tau[i]
            tau[i] += change
            nu[i] = mean / variance - nu_cavity
            sigma = sigma - change / (1 + change * sigma[i, i]) * np.outer(sigma[:, i], sigma[i])
            mu = sigma @ nu
    v = 1 / (1 / np.diag(sigma) - tau)
    m = v * (mu / np.diag(sigma) - nu)
    log_z = norm.logcdf(sign * (limit - m) / np.sqrt(v)).sum()
    log_z += 0.5 * (np.linalg.slogdet(sigma)[1] - np.linalg.slogdet(covariance)[1] + nu @ mu)
    log_z += 0.5 * (np.log(v) + m**2 / v - np.log(np.diag(sigma)) - mu**2 / np.diag(sigma)).sum()
    return mu, np.diag(sigma), log_z


@pytest.mark.parametrize("seed", range(5))
def test_labels_alone_match_textbook_classification(seed):
    covariance = random_covariance(12, seed)
    rng = np.random.default_rng(seed)
    crashed = torch.as_tensor(rng.uniform(size=12) < 0.5)
    result = expectation_propagation(
        torch.zeros(12).double(), covariance, labels(crashed, 0.2), options=EPOptions(tolerance=1e-9, width_floor=0.0)
    )
    mean, variance, log_z = textbook_ep(covariance.numpy(), 1 - 2 * crashed.numpy().astype(float), 0.2)
    assert np.allclose(result.mean, mean, atol=1e-6)
    assert np.allclose(result.variance, variance, atol=1e-6)
    assert float(result.log_partition) == pytest.approx(log_z, abs=1e-6)


def random_problem(seed: int) -> tuple[BaseGaussian, Labels]:
    """A data set drawn from the model, n <= 8 in up to three dimensions, some stable and some crashed."""
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 9), rng.integers(1, 4)
    X = torch.as_tensor(rng.uniform(size=(n, d)))
    prior = matern32_matrix(X, X, lengthscale=rng.uniform(0.1, 1.0), outputscale=1.0)
    latent = torch.as_tensor(rng.multivariate_normal(np.zeros(n), prior.numpy()))
    noise, stable = rng.choice([0.01, 0.05, 0.2]), rng.integers(1, n)
    threshold = float(latent.sort().values[stable - 1 : stable + 1].mean())
    crashed = latent > threshold
    observed = (~crashed).nonzero().squeeze(-1)
    costs = latent[observed] + torch.as_tensor(noise * rng.normal(size=len(observed)))
    return condition_on_costs(prior, observed, costs, double(noise**2)), labels(crashed, threshold)


def test_mass_of_random_data_sets_matches_the_exact_integral():
    """The rest are clusters of correlated crashes, whose mass EP takes for up to a fifth too small."""
    errors = {}
    for seed in range(200):
        base, label = random_problem(seed)
        result = expectation_propagation(base.mean, base.covariance, label)
        exact = exact_truncation(base.mean, base.covariance, label, samples=1024, repeats=4)
        assert result.converged
        errors[seed] = float(result.log_partition) - exact.log_partition
    outliers = {seed: round(error, 3) for seed, error in errors.items() if abs(error) > 0.1}
    print(f"log Z errors above 0.1, by seed: {outliers}")
    assert len(outliers) <= 10
    assert all(-0.2 < error < 0 for error in outliers.values())


@given(seed=st.integers(0, 10_000))
def test_the_order_of_trials_is_irrelevant(seed):
    base, label = random_problem(seed)
    order = torch.as_tensor(np.random.default_rng(seed).permutation(len(base.mean)))
    first = expectation_propagation(base.mean, base.covariance, label, options=TIGHT)
    permuted = replace(label, sign=label.sign[order])
    second = expectation_propagation(base.mean[order], base.covariance[order][:, order], permuted, options=TIGHT)
    assert torch.allclose(first.mean[order], second.mean, atol=1e-7)
    assert torch.allclose(first.variance[order], second.variance, rtol=1e-6)
    assert torch.allclose(first.log_partition, second.log_partition, atol=1e-7)


@given(seed=st.integers(0, 10_000))
def test_another_sweep_changes_nothing(seed):
    base, label = random_problem(seed)
    first = expectation_propagation(base.mean, base.covariance, label, options=EPOptions(tolerance=1e-9))
    again = expectation_propagation(base.mean, base.covariance, label, start=first)
    assert again.sweeps == 1
    assert same(first, again, 1e-7)
    further = expectation_propagation(base.mean, base.covariance, label, start=first, options=TIGHT)
    assert same(first, further, 1e-6)


def test_thresholds_in_a_batch_are_solved_one_by_one(hybrid):
    base, crashed = hybrid
    thresholds = torch.linspace(1.9, 4.0, 7, dtype=torch.float64)
    batched = expectation_propagation(base.mean, base.covariance, labels(crashed, thresholds[:, None]), options=TIGHT)
    assert batched.converged.all()
    for i, threshold in enumerate(thresholds):
        alone = expectation_propagation(base.mean, base.covariance, labels(crashed, float(threshold)), options=TIGHT)
        for field in MOMENTS:
            assert torch.allclose(getattr(batched, field)[i], getattr(alone, field), rtol=0, atol=1e-6), field


def test_covariances_in_a_batch_are_solved_one_by_one():
    covariances = torch.stack([scale * random_covariance(6, seed) for seed, scale in enumerate([0.1, 1.0, 10.0])])
    means = torch.linspace(-1, 1, 18, dtype=torch.float64).reshape(3, 6)
    label = labels(torch.arange(6) % 2 == 0, 0.3)
    batched = expectation_propagation(means, covariances, label, options=TIGHT)
    assert batched.mean.shape == (3, 6)
    for i in range(3):
        alone = expectation_propagation(means[i], covariances[i], label, options=TIGHT)
        for field in MOMENTS:
            assert torch.allclose(getattr(batched, field)[i], getattr(alone, field), rtol=0, atol=1e-6), field


@given(seed=st.integers(0, 10_000))
def test_the_fast_path_equals_the_general_one(seed):
    base, label = random_problem(seed)
    fast = expectation_propagation(base.mean, base.covariance, label)
    general = expectation_propagation(base.mean[None], base.covariance, label)
    assert fast.mean.shape == base.mean.shape
    assert torch.allclose(fast.mean, general.mean[0], atol=1e-5)
    assert torch.allclose(fast.variance, general.variance[0], rtol=1e-4)
    assert torch.allclose(fast.log_partition, general.log_partition[0], atol=1e-5)
    assert abs(fast.sweeps - general.sweeps) <= 1


@pytest.mark.parametrize("n", [1, 40])
def test_labels_may_differ_in_limit_and_width(n):
    limits, widths = torch.linspace(-1, 1, n).double(), torch.linspace(0.1, 0.5, n).double()
    mean = torch.zeros(n).double()
    covariance = torch.eye(n).double()
    crashed = torch.arange(n) % 3 == 0
    sign = 1 - 2 * crashed.double()
    result = expectation_propagation(mean, covariance, Labels(sign, limits, widths))
    expected = torch.special.log_ndtr(sign * limits / (1 + widths.square()).sqrt()).sum()
    assert torch.allclose(result.log_partition, expected, atol=1e-6)


@pytest.mark.parametrize("limit", [torch.inf, 1e6, 50.0])
def test_labels_that_always_hold_change_nothing(limit):
    mean, covariance = torch.linspace(-1, 1, 5).double(), random_covariance(5, seed=0)
    result = expectation_propagation(mean, covariance, labels(torch.zeros(5).bool(), limit))
    assert torch.allclose(result.mean, mean, atol=1e-9)
    assert torch.allclose(result.variance, covariance.diagonal(), atol=1e-12)
    assert float(result.log_partition) == 0.0
    assert result.sweeps == 1


def test_a_latent_without_variance_keeps_its_value():
    result = expectation_propagation(
        double([0.0, 0.0]), double([[1.0, 0.0], [0.0, 0.0]]), labels(torch.tensor([False, False]), 0.3)
    )
    assert result.converged
    assert float(result.mean[1]) == pytest.approx(0.0, abs=1e-6)
    assert float(result.log_partition) == pytest.approx(norm.logcdf(0.3), abs=1e-6)


@given(seed=st.integers(0, 10_000), limit=st.floats(-20, 20), width=st.sampled_from([0.0, 0.1, 3.0]))
def test_mass_is_never_above_one(seed, limit, width):
    base, label = random_problem(seed)
    moved = replace(label, limit=double([limit]), width=double([width]))
    result = expectation_propagation(base.mean, base.covariance, moved)
    assert float(result.log_partition) <= 0
    assert (result.variance > 0).all()


def test_giving_up_is_reported(hybrid):
    base, crashed = hybrid
    result = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.03), options=EPOptions(max_sweeps=1))
    assert result.sweeps == 1
    assert not result.converged
    assert float(result.last_change) > 1e-6
    batched = expectation_propagation(
        base.mean, base.covariance, labels(crashed, double([[2.03], [2.5]])), options=EPOptions(max_sweeps=1)
    )
    assert batched.converged.tolist() == [False, False]


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("which", ["mean", "covariance", "limit"])
def test_gradients_match_finite_differences(hybrid, which, batch):
    base, crashed = hybrid
    rng = np.random.default_rng(0)

    def log_z(mean, covariance, limit):
        mean = mean[None] if batch else mean
        fixed = labels(crashed, limit.detach())
        result = expectation_propagation(mean.detach(), covariance.detach(), fixed, options=TIGHT)
        return log_partition(mean, covariance, labels(crashed, limit), result).sum()

    point = {"mean": base.mean, "covariance": base.covariance, "limit": torch.full_like(base.mean, 2.03)}
    direction = torch.as_tensor(rng.normal(size=point[which].shape))
    if which == "covariance":  # keeps it symmetric, and definite although stable latents vary little
        direction = base.covariance @ (direction + direction.mT) @ base.covariance
    leaf = point[which].clone().requires_grad_()
    (gradient,) = torch.autograd.grad(log_z(**point | {which: leaf}), leaf)
    step = 1e-5
    ahead, behind = (float(log_z(**point | {which: point[which] + h * direction})) for h in (step, -step))
    assert float((gradient * direction).sum()) == pytest.approx((ahead - behind) / (2 * step), rel=1e-3, abs=1e-4)


def test_inputs_and_start_are_left_alone(hybrid):
    base, crashed = hybrid
    label = labels(crashed, 2.03)
    start = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.2))
    tensors = [base.mean, base.covariance, label.sign, label.limit, start.site_precision, start.site_shift, start.mean]
    copies = [tensor.clone() for tensor in tensors]
    expectation_propagation(base.mean, base.covariance, label, start=start)
    assert all(torch.equal(a, b) for a, b in zip(tensors, copies, strict=True))


def test_a_start_nearby_saves_sweeps(hybrid):
    base, crashed = hybrid
    start = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.03))
    cold = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.031))
    warm = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.031), start=start)
    assert warm.sweeps < cold.sweeps
    assert same(warm, cold, 1e-5)


def test_beyond_the_fast_path_nothing_changes(monkeypatch, hybrid):
    base, crashed = hybrid
    fast = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.03))
    monkeypatch.setattr(ep_module, "SMALL", 0)
    general = expectation_propagation(base.mean, base.covariance, labels(crashed, 2.03))
    assert same(fast, general, 1e-6)


@pytest.mark.parametrize(
    ("mean", "covariance", "limit", "width", "message"),
    [
        (torch.zeros(2), torch.eye(2), 0.0, 0.0, r"must be float64; got torch.float32, torch.float32"),
        (double([0.0, 0.0]), double([[1.0]]), 0.0, 0.0, r"`covariance` must be \.\.\. x 2 x 2; got \(1, 1\)"),
        (double([torch.nan]), double([[1.0]]), 0.0, 0.0, r"must be finite; got NaN or infinity"),
        (double([0.0]), double([[torch.inf]]), 0.0, 0.0, r"must be finite; got NaN or infinity"),
        (double([0.0]), double([[1.0]]), torch.nan, 0.0, r"`labels.limit` must not be NaN"),
        (double([0.0]), double([[1.0]]), 0.0, -1.0, r"`labels.width` must be >= 0"),
    ],
)
def test_bad_input_is_refused(mean, covariance, limit, width, message):
    with pytest.raises(InputError, match=message):
        expectation_propagation(mean, covariance, labels(torch.zeros(len(mean)).bool(), limit, width))
