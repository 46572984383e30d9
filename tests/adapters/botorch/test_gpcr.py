"""The model: exact limits, units, updates with new trials, fitting and bad input."""

import math

import numpy as np
import pytest
import torch

from crashbo import GPCR, InputError, fit_gpcr, make_kernel
from crashbo.model.ep import propagate
from crashbo.model.exact import exact_truncation
from tests.adapters.botorch.helpers import double, matern, matern32_matrix
from tests.helpers import given_values, make_labels

BOUNDS = double([[-5.0], [10.0]])
GRID = torch.linspace(0, 1, 21, dtype=torch.float64)[:, None]


def moments(model: GPCR, X: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        posterior = model.posterior(X)
        return torch.cat([posterior.mean, posterior.variance], -1)


def random_trials(n: int, seed: int, d: int = 2):
    """Trials of a cost that crashes above 0.5."""
    rng = np.random.default_rng(seed)
    X = torch.as_tensor(rng.uniform(size=(n, d)))
    Y = torch.sin(5 * X[:, :1]) + 0.5 * torch.cos(7 * X[:, 1:2])
    return X, Y, Y.squeeze(-1) > 0.5


def test_example1_posterior_matches_gibbs_samples(example1, example1_model):
    at_trials = moments(example1_model, example1.X)
    assert torch.allclose(at_trials[:, 0], double([0.5005, 1.9956, 1.0010, 2.2685, 2.3067]), atol=0.005)
    assert torch.allclose(at_trials[:, 1].sqrt(), double([0.0200, 0.0179, 0.0200, 0.2112, 0.2437]), atol=0.003)


@pytest.mark.parametrize("threshold", [50.0, math.inf])
def test_without_crashes_it_is_the_exact_gp(threshold):
    X = torch.as_tensor(np.random.default_rng(0).uniform(size=(12, 1)))
    Y = torch.sin(6 * X)
    model = GPCR(X, Y, torch.zeros(12).bool(), noise_std=0.05, covar_module=matern(), threshold=threshold)
    block = matern32_matrix(X, X) + 0.05**2 * torch.eye(12, dtype=torch.float64)
    cross = matern32_matrix(GRID, X)
    mean = cross @ torch.linalg.solve(block, Y)
    variance = 0.5 - (cross * torch.linalg.solve(block, cross.mT).mT).sum(-1, keepdim=True)
    assert torch.allclose(moments(model, GRID), torch.cat([mean, variance], -1), rtol=0, atol=1e-6)
    evidence = torch.distributions.MultivariateNormal(torch.zeros(12).double(), block).log_prob(Y.squeeze(-1))
    assert model.log_evidence == pytest.approx(float(evidence), abs=1e-6)


def test_predictions_follow_the_formula(example1, example1_model):
    K, cross = matern32_matrix(example1.X, example1.X), matern32_matrix(GRID, example1.X)
    base = double(example1_model.fit.solution.given.covariance[0])
    sites = torch.diag(example1_model.ep.site_precision)
    S = torch.linalg.inv(torch.linalg.inv(base) + sites)
    gain = torch.linalg.solve(K, cross.mT).mT
    mean = gain @ example1_model.ep.mean
    variance = 0.5 - ((gain @ (K - S)) * gain).sum(-1)
    assert torch.allclose(moments(example1_model, GRID), torch.stack([mean, variance], -1), atol=1e-6)


def test_labels_alone_are_a_classifier():
    X, _, crashed = random_trials(8, seed=1)
    model = GPCR(X, None, crashed, covar_module=matern(0.5, 1.0), threshold=0.0)
    prior = matern32_matrix(X, X, 0.5, 1.0).numpy()
    labels = make_labels(crashed.numpy(), 0.0)
    exact = exact_truncation(np.zeros(8), prior, labels)
    assert model.log_evidence == model.log_truncation == pytest.approx(exact.log_partition, abs=0.1)
    assert torch.allclose(moments(model, X)[:, 0], double(exact.mean), atol=0.05)
    assert torch.allclose(moments(model, X)[:, 1].sqrt(), double(exact.standard_deviation), atol=0.05)
    ep = propagate(np.zeros((1, 8)), prior[None], labels)
    assert torch.allclose(moments(model, X), double(np.stack([ep.mean[0], ep.variance[0]], -1)), atol=1e-5)
    with torch.no_grad():
        assert ((model.success_probability(X) < 0.5) == crashed).all()


def test_success_probability_is_the_normal_mass_below_the_threshold(example1_model):
    mean, variance = moments(example1_model, GRID).unbind(-1)
    expected = torch.distributions.Normal(mean, variance.sqrt()).cdf(double(2.03))
    with torch.no_grad():
        assert torch.allclose(example1_model.success_probability(GRID), expected, atol=1e-10)
        assert torch.allclose(example1_model.success_probability(GRID, log=True), expected.log(), atol=1e-8)
        batch = example1_model.success_probability(GRID.reshape(3, 7, 1))
    assert torch.allclose(batch, expected.reshape(3, 7), atol=1e-10)


def test_label_width_blurs_the_success_probability(example1):
    model = GPCR(*example1, noise_std=0.02, covar_module=matern(), threshold=2.03, label_width=0.3)
    mean, variance = moments(model, GRID).unbind(-1)
    expected = torch.special.ndtr((2.03 - mean) / (variance + 0.09).sqrt())
    with torch.no_grad():
        assert torch.allclose(model.success_probability(GRID), expected, atol=1e-10)


def test_log_success_probability_does_not_underflow():
    X = double([[0.2], [0.8]])
    model = GPCR(X, double([[0.0], [1.0]]), [False, False], noise_std=1e-3, covar_module=matern(), threshold=-20.0)
    with torch.no_grad():
        log = model.success_probability(X, log=True)
    assert log.isfinite().all()
    assert (log < 0).all()


def test_bounds_only_rename_the_points(example1):
    unit = GPCR(*example1)
    wide = GPCR(-5 + 15 * example1.X, example1.Y, example1.crashed, bounds=BOUNDS)
    assert wide.threshold == pytest.approx(unit.threshold, rel=1e-6)
    assert torch.allclose(moments(wide, -5 + 15 * GRID), moments(unit, GRID), atol=1e-6)


def test_bounds_accept_plain_lists(example1):
    model = GPCR((-5 + 15 * example1.X).tolist(), example1.Y.tolist(), example1.crashed.tolist(), bounds=[[-5], [10]])
    assert torch.allclose(model.train_points, -5 + 15 * example1.X)


def test_units_of_the_cost_do_not_matter_to_the_learned_model(example1):
    model = GPCR(*example1)
    scaled = GPCR(example1.X, 1e4 * example1.Y - 3e5, example1.crashed)
    assert scaled.threshold == pytest.approx(1e4 * model.threshold - 3e5, rel=1e-6)
    assert scaled.noise_std == pytest.approx(1e4 * model.noise_std, rel=1e-4)
    expected = moments(model, GRID) * double([1e4, 1e8]) - double([3e5, 0.0])
    assert torch.allclose(moments(scaled, GRID), expected, rtol=1e-4)
    with torch.no_grad():
        assert torch.allclose(scaled.success_probability(GRID), model.success_probability(GRID), atol=1e-4)


def test_a_fixed_threshold_is_in_the_costs_own_units(example1):
    model = GPCR(*example1, threshold=2.5, standardize=True)
    assert model.threshold == pytest.approx(2.5)
    assert model.internal_threshold == pytest.approx((2.5 - 3.5 / 3) / model.to_costs(double([0.0, 1.0])).diff().item())


def test_properties_speak_in_the_costs_own_units(example1):
    wide = GPCR(-5 + 15 * example1.X, example1.Y, example1.crashed, bounds=BOUNDS, noise_std=0.1)
    assert wide.noise_std == pytest.approx(0.1)
    assert torch.allclose(wide.costs, example1.Y[:3, 0])
    assert torch.allclose(wide.train_points, -5 + 15 * example1.X)
    assert torch.equal(wide.domain, BOUNDS)


def test_a_passed_kernel_stays_as_it_is(example1):
    kernel = matern(0.37, 0.81)
    GPCR(*example1, covar_module=kernel)
    assert kernel.base_kernel.lengthscale.item() == pytest.approx(0.37)
    assert kernel.outputscale.item() == pytest.approx(0.81)


@pytest.mark.parametrize(
    ("new_Y", "new_crashed"), [(0.3, False), (math.nan, True)], ids=["a stable trial", "a crashed trial"]
)
@pytest.mark.parametrize("options", [{}, {"bounds": double([[0.0, 0.0], [2.0, 1.0]])}], ids=["unit", "bounds"])
def test_new_trials_give_the_model_built_from_scratch(new_Y, new_crashed, options):
    X, Y, crashed = random_trials(15, seed=2)
    options = {"noise_std": 0.05, "covar_module": matern(0.5, 1.0, nu=2.5), **options}
    old = GPCR(X, Y, crashed, **options)
    new = double([[0.35, 0.6]]), double([[new_Y]]), torch.tensor([new_crashed])
    updated = old.condition_on_trials(*new)
    scratch = GPCR(*(torch.cat(pair) for pair in zip((X, Y, crashed), new, strict=True)), **options)
    points = torch.as_tensor(np.random.default_rng(0).uniform(size=(30, 2)))
    assert updated.threshold == pytest.approx(scratch.threshold, abs=1e-4)
    assert torch.allclose(moments(updated, points), moments(scratch, points), atol=1e-3)
    assert updated.log_evidence == pytest.approx(scratch.log_evidence, abs=1e-4)


def test_new_trials_leave_the_old_model_alone(example1_model):
    before = moments(example1_model, GRID)
    example1_model.condition_on_trials(double([[0.2]]), None, torch.tensor([True]))
    assert torch.equal(moments(example1_model, GRID), before)
    assert example1_model.train_points.shape == (5, 1)


def test_fitting_after_new_trials_leaves_the_old_model_alone(example1_model):
    before = moments(example1_model, GRID)
    fit_gpcr(example1_model.condition_on_trials(double([[0.2]]), double([[1.5]]), torch.tensor([False])))
    assert torch.allclose(moments(example1_model, GRID), before)


def test_new_trials_need_fewer_sweeps_than_a_cold_start():
    X, Y, crashed = random_trials(40, seed=3)
    options = {"noise_std": 0.05, "covar_module": matern(0.5, 1.0, nu=2.5), "threshold": 0.5}
    updated = GPCR(X[:-1], Y[:-1], crashed[:-1], **options).condition_on_trials(X[-1:], Y[-1:], crashed[-1:])
    scratch = GPCR(X, Y, crashed, **options)
    assert updated.converged
    assert updated.ep.sweeps < scratch.ep.sweeps
    assert torch.allclose(moments(updated, X), moments(scratch, X), atol=1e-4)


def test_new_trials_keep_scaling_and_kernel_of_a_learned_model(example1):
    old = GPCR(*example1)
    new = old.condition_on_trials(double([[0.0]]), double([[0.1]]), torch.tensor([False]))
    assert new.noise_std == pytest.approx(old.noise_std)
    assert torch.allclose(new.costs, double([0.5, 2.0, 1.0, 0.1]))
    assert new.converged


def test_first_crash_after_stable_trials_only():
    X, Y = double([[0.1], [0.5]]), double([[0.2], [0.9]])
    options = {"noise_std": 0.02, "covar_module": matern(), "threshold_prior": None}
    old = GPCR(X, Y, torch.tensor([False, False]), **options)
    assert old.threshold == math.inf
    updated = old.condition_on_trials(double([[0.8]]), None, torch.tensor([True]))
    scratch = GPCR(
        torch.cat([X, double([[0.8]])]), torch.cat([Y, double([[0.0]])]), torch.tensor([False, False, True]), **options
    )
    assert updated.threshold == pytest.approx(scratch.threshold, abs=1e-4)


def test_first_success_after_crashes_only():
    X = double([[0.1], [0.5]])
    options = {"noise_std": 0.02, "covar_module": matern()}
    old = GPCR(X, double([[math.nan], [math.nan]]), torch.tensor([True, True]), **options)
    updated = old.condition_on_trials(double([[0.8]]), double([[0.4]]), torch.tensor([False]))
    scratch = GPCR(
        double([[0.1], [0.5], [0.8]]),
        double([[math.nan], [math.nan], [0.4]]),
        torch.tensor([True, True, False]),
        **options,
    )
    assert updated.threshold == pytest.approx(scratch.threshold, abs=1e-4)
    assert torch.allclose(moments(updated, GRID), moments(scratch, GRID), atol=1e-3)


@pytest.mark.parametrize(("with_costs", "Y"), [(True, None), (False, double([[0.3]]))])
def test_new_trials_must_match_the_old_ones_in_having_costs(example1, with_costs, Y):
    model = GPCR(example1.X, example1.Y if with_costs else None, example1.crashed, covar_module=matern())
    kind, got = ("costs", "NoneType") if with_costs else ("labels only", "Tensor")
    with pytest.raises(InputError, match=f"`Y` must match the model, which was built with {kind}; got {got}"):
        model.condition_on_trials(double([[0.2]]), Y, torch.tensor([False]))


def test_new_trials_are_checked(example1_model):
    with pytest.raises(InputError, match=r"`train_X` must lie in the unit cube.*; got 1\.5"):
        example1_model.condition_on_trials(double([[1.5]]), double([[0.1]]), torch.tensor([False]))


def test_fitting_raises_the_evidence_in_place():
    X, Y, crashed = random_trials(20, seed=4)
    model = GPCR(X, Y, crashed, noise_std=0.05, covar_module=matern([2.0, 2.0], 0.3, nu=2.5))
    before = model.log_evidence
    assert fit_gpcr(model) is model
    assert model.log_evidence > before + 1
    assert model.converged
    assert torch.allclose(moments(model, X), torch.stack([model.ep.mean, model.ep.variance], -1), atol=1e-4)


def test_fitting_again_changes_little():
    X, Y, crashed = random_trials(20, seed=5)
    model = fit_gpcr(GPCR(X, Y, crashed, noise_std=0.05, covar_module=make_kernel(2)))
    before = model.log_evidence
    assert fit_gpcr(model).log_evidence == pytest.approx(before, abs=0.05)


def test_predictive_density_integrates_to_one_in_the_costs_own_units(example1):
    model = GPCR(example1.X, 100 * example1.Y, example1.crashed)
    grid = torch.linspace(-300, 800, 800, dtype=torch.float64)
    density = model.predictive_density(double([[0.2], [0.5], [0.8]]), grid)
    assert torch.allclose(torch.trapezoid(density, grid), torch.ones(3).double(), atol=1e-6)


def test_predictive_density_puts_more_mass_above_the_threshold_next_to_crashes(example1_model):
    grid = torch.linspace(-2, 6, 801, dtype=torch.float64)
    points = double([[0.69], [0.71], [0.74], [0.88]])
    density = example1_model.predictive_density(points, grid)
    above = torch.trapezoid(density * (grid > 2.03), grid)
    with torch.no_grad():
        gaussian = 1 - example1_model.success_probability(points)
    assert (above > gaussian).all()


@pytest.mark.parametrize("x", [0.6, 0.68, 0.71, 0.8, 0.94])
def test_predictive_density_has_the_exact_crash_probability(example1, example1_model, x):
    grid = torch.linspace(-2, 6, 1601, dtype=torch.float64)
    density = example1_model.predictive_density(double([[x]]), grid)[0]
    crash = float(torch.trapezoid(density * (grid > 2.03), grid))
    X = torch.cat([example1.X, double([[x]])])
    given = given_values(matern32_matrix(X, X).numpy(), np.arange(3), example1.Y[:3, 0].numpy(), 0.02**2)
    log_mass = [
        exact_truncation(
            given.mean[0], given.covariance[0], make_labels(np.array([*example1.crashed.tolist(), new]), 2.03)
        ).log_partition
        for new in (False, True)
    ]
    assert crash == pytest.approx(1 / (1 + math.exp(log_mass[0] - log_mass[1])), abs=0.01)


def test_predictive_density_is_gaussian_near_stable_trials(example1_model):
    grid = torch.linspace(0, 1.5, 601, dtype=torch.float64)
    points = double([[0.1], [0.11], [0.5]])
    density = example1_model.predictive_density(points, grid)
    mean, variance = moments(example1_model, points).unbind(-1)
    gaussian = torch.distributions.Normal(mean[:, None], variance.sqrt()[:, None]).log_prob(grid).exp()
    assert (density - gaussian).abs().max() < 0.01 * gaussian.max()


def conflict(apart: float, far: float = 2.0):
    """Successes of `far` and 1.0, a crash beside the second, and another away from all."""
    X = double([[0.1], [0.5], [0.5 + apart], [0.9]])
    return X, double([[far], [1.0], [math.nan], [math.nan]]), torch.tensor([False, False, True, True])


@pytest.mark.parametrize("prior", [None, (0.0, 5.0)])
@pytest.mark.parametrize("apart", [0.0, 1e-9, 1e-3])
def test_a_crash_without_room_beside_a_success_is_relaxed_where_it_stands(apart, prior):
    X, Y, crashed = conflict(apart)
    model = GPCR(X, Y, crashed, noise_std=0.02, covar_module=matern(), threshold_prior=prior)
    assert model.relaxed == (2,)
    assert model.converged
    assert "relaxed: trials 2" in model.diagnosis
    mean = moments(model, X)[:, 0]
    assert mean.tolist()[:2] == pytest.approx([2.0, 1.0], abs=0.02)
    assert mean[3] > model.threshold > 2.0
    kept = torch.tensor([True, True, False, True])
    without = GPCR(X[kept], Y[kept], crashed[kept], noise_std=0.02, covar_module=matern(), threshold_prior=prior)
    assert model.threshold == pytest.approx(without.threshold, abs=1e-3)
    assert torch.allclose(moments(model, GRID), moments(without, GRID), atol=1e-3)


def test_with_room_nothing_is_relaxed(example1_model):
    assert example1_model.relaxed == ()
    assert example1_model.diagnosis.startswith("EP converged after")
    within_noise = GPCR(*conflict(1e-9, far=1.0), noise_std=0.02, covar_module=matern())
    assert within_noise.relaxed == ()
    assert within_noise.threshold == pytest.approx(1.0, abs=0.05)


def test_a_relaxed_crash_does_not_raise_the_learned_noise():
    X, Y, _ = random_trials(25, seed=6)
    crashed = Y.squeeze(-1) > 0.5
    lowest = int(Y.argmin())
    twin = (
        torch.cat([X, X[lowest : lowest + 1] + 1e-9]),
        torch.cat([Y, Y[:1]]),
        torch.cat([crashed, double([1]).bool()]),
    )
    model, without = GPCR(*twin), GPCR(X, Y, crashed)
    assert model.relaxed == (25,)
    assert model.noise_std < 3 * without.noise_std
    assert model.threshold == pytest.approx(without.threshold, abs=0.1)


def test_new_trials_may_bring_a_conflict():
    X, Y, crashed = conflict(1e-6)
    old = GPCR(X[:2], Y[:2], crashed[:2], noise_std=0.02, covar_module=matern())
    assert old.relaxed == ()
    assert old.condition_on_trials(X[2:], Y[2:], crashed[2:]).relaxed == (2,)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"noise_std": 0.0}, r"`noise_std` must be a finite number > 0, or None; got 0\.0"),
        ({"noise_std": -0.1}, r"`noise_std` must be a finite number > 0, or None; got -0\.1"),
        ({"noise_std": math.nan}, r"`noise_std` must be a finite number > 0, or None; got nan"),
        ({"noise_std": "small"}, r"`noise_std` must be a finite number > 0, or None; got 'small'"),
        ({"label_width": -1.0}, r"`label_width` must be a finite number >= 0; got -1\.0"),
        ({"label_width": math.inf}, r"`label_width` must be a finite number >= 0; got inf"),
        ({"label_width": "wide"}, r"`label_width` must be a finite number >= 0; got 'wide'"),
        ({"threshold": math.nan}, r"`threshold` must be a number or None; got nan"),
        ({"threshold": "high"}, r"`threshold` must be a number or None; got 'high'"),
        ({"threshold_prior": (0.0, -5.0)}, r"`threshold_prior` must be finite with .* > 0; got \(0\.0, -5\.0\)"),
        ({"threshold_prior": 5.0}, r"`threshold_prior` must be \(mean, standard deviation\) or None; got 5\.0"),
        ({"bounds": double([[1.0], [0.0]])}, r"`bounds` must be finite with lower < upper; got \[\[1\.0\], \[0\.0\]\]"),
        ({"bounds": double([[0.0], [0.5]])}, r"`train_X` must lie in `bounds`; got 0\.7 in row 3, column 0"),
        ({"bounds": double([[0.0, 0.0], [1.0, 1.0]])}, r"`bounds` must be 2 x 1; got shape \(2, 2\)"),
    ],
)
def test_bad_options_are_refused(example1, options, message):
    with pytest.raises(InputError, match=message):
        GPCR(*example1, **options)


def test_bad_trials_are_refused(example1):
    with pytest.raises(InputError, match=r"`train_X` must lie in the unit cube.*; got 1\.4 in row 3"):
        GPCR(2 * example1.X, example1.Y, example1.crashed)
    with pytest.raises(InputError, match=r"`train_X` must hold at least one trial"):
        GPCR(example1.X[:0], example1.Y[:0], example1.crashed[:0])
    with pytest.raises(InputError, match=r"`train_Y` must be finite.*; got nan in row 3"):
        GPCR(example1.X, example1.Y, torch.zeros(5).bool())
