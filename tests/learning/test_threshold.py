"""The crash threshold: fixed, maximum likelihood, MAP, and the cases without a search."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from crashbo import GPCR, InputError
from crashbo.inference.base import condition_on_costs
from crashbo.inference.ep import expectation_propagation
from crashbo.inference.exact import exact_truncation
from crashbo.models.threshold import ThresholdRule, check_rule, estimate_threshold, expected_threshold, make_labels
from tests.helpers import double, labels, matern, matern32_matrix


def example_base(example1):
    observed = (~example1.crashed).nonzero().squeeze(-1)
    prior = matern32_matrix(example1.X, example1.X)
    return condition_on_costs(prior, observed, example1.Y[observed, 0], double(0.02**2))


def example_sign(example1):
    return 1 - 2 * example1.crashed.double()


def test_maximum_likelihood_on_example1(example1):
    model = GPCR(*example1, noise_std=0.02, covar_module=matern(), threshold_prior=None)
    assert model.threshold == pytest.approx(2.0284, abs=0.003)
    assert model.converged


def test_maximum_likelihood_maximises_the_exact_integral(example1):
    base = example_base(example1)

    def loss(threshold: float) -> float:
        return -exact_truncation(base.mean, base.covariance, labels(example1.crashed, threshold)).log_partition

    exact = minimize_scalar(loss, bounds=(1.9, 2.5), method="bounded", options={"xatol": 1e-5})
    estimate = estimate_threshold(base, example_sign(example1), ThresholdRule())
    assert estimate.threshold == pytest.approx(exact.x, abs=0.003)


def test_a_fixed_threshold_stays(example1):
    estimate = estimate_threshold(example_base(example1), example_sign(example1), ThresholdRule(fixed=2.5))
    assert estimate.threshold == 2.5
    assert estimate.solves == 1


def test_map_is_where_evidence_and_hyperprior_balance(example1):
    base, sign, rule = example_base(example1), example_sign(example1), ThresholdRule(prior=(2.3, 0.1))
    estimate = estimate_threshold(base, sign, rule)

    def objective(threshold: float) -> float:
        result = expectation_propagation(base.mean, base.covariance, make_labels(sign, threshold, 0.0))
        return float(result.log_partition) - 0.5 * ((threshold - 2.3) / 0.1) ** 2

    best = objective(estimate.threshold)
    assert best >= objective(estimate.threshold - 0.01)
    assert best >= objective(estimate.threshold + 0.01)


def test_a_tighter_hyperprior_pulls_harder(example1):
    base, sign = example_base(example1), example_sign(example1)
    found = [estimate_threshold(base, sign, ThresholdRule(prior=(3.0, sd))).threshold for sd in (100.0, 0.3, 0.1, 1e-3)]
    assert found[0] == pytest.approx(2.0284, abs=0.003)
    assert found == sorted(found)
    assert found[-1] == pytest.approx(3.0, abs=0.01)


def test_an_earlier_estimate_is_a_good_start(example1):
    base, sign, rule = example_base(example1), example_sign(example1), ThresholdRule()
    cold = estimate_threshold(base, sign, rule)
    warm = estimate_threshold(base, sign, rule, start=cold)
    assert warm.threshold == pytest.approx(cold.threshold, abs=1e-4)
    assert warm.solves < cold.solves


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


@pytest.mark.parametrize(
    ("rule", "crashed", "expected"),
    [
        (ThresholdRule(fixed=1.5), [True, False], 1.5),
        (ThresholdRule(fixed=1.5), [], 1.5),
        (ThresholdRule(), [], 0.0),
        (ThresholdRule(prior=(2.0, 1.0)), [], 2.0),
        (ThresholdRule(prior=(2.0, 1.0)), [True, True], 0.0),
        (ThresholdRule(), [False], math.inf),
        (ThresholdRule(prior=(2.0, 1.0)), [False], None),
        (ThresholdRule(), [True, False], None),
    ],
)
def test_cases_without_a_search(rule, crashed, expected):
    assert rule.without_search(torch.tensor(crashed, dtype=torch.bool)) == expected


def test_hyperprior_slope_is_its_derivative():
    rule = ThresholdRule(prior=(1.0, 2.0))
    threshold = double(3.5).requires_grad_()
    (slope,) = torch.autograd.grad(rule.log_density(threshold), threshold)
    assert rule.slope(3.5) == pytest.approx(float(slope))
    assert ThresholdRule().slope(3.5) == 0.0
    assert float(ThresholdRule().log_density(threshold)) == 0.0


def test_arguments_become_a_rule():
    assert check_rule(2, None) == ThresholdRule(2.0, None)
    assert check_rule(None, [1, 2]) == ThresholdRule(None, (1.0, 2.0))


@pytest.mark.parametrize(
    ("threshold", "prior", "message"),
    [
        ("high", None, r"`threshold` must be a number or None; got 'high'"),
        (math.nan, None, r"`threshold` must be a number or None; got nan"),
        (None, 3.0, r"`threshold_prior` must be \(mean, standard deviation\) or None; got 3\.0"),
        (
            None,
            (0.0, 1.0, 2.0),
            r"`threshold_prior` must be \(mean, standard deviation\) or None; got \(0\.0, 1\.0, 2\.0\)",
        ),
        (None, ("a", "b"), r"`threshold_prior` must be \(mean, standard deviation\) or None; got \('a', 'b'\)"),
        (None, (0.0, 0.0), r"`threshold_prior` must be finite with a standard deviation > 0; got \(0\.0, 0\.0\)"),
        (None, (0.0, -1.0), r"`threshold_prior` must be finite with a standard deviation > 0; got \(0\.0, -1\.0\)"),
        (None, (math.nan, 1.0), r"`threshold_prior` must be finite .*; got \(nan, 1\.0\)"),
        (None, (0.0, math.inf), r"`threshold_prior` must be finite .*; got \(0\.0, inf\)"),
    ],
)
def test_bad_rules_are_refused(threshold, prior, message):
    with pytest.raises(InputError, match=message):
        check_rule(threshold, prior)


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


def test_the_expected_limit_lies_above_the_floor(example1):
    base, sign = example_base(example1), example_sign(example1)
    free = ThresholdRule(prior=(0.0, 5.0))
    mode = estimate_threshold(base, sign, free)
    floored = free.with_floor(double([mode.threshold + 0.1]))
    found = estimate_threshold(base, sign, floored)
    assert found.threshold == pytest.approx(mode.threshold + 0.1)
    expected = expected_threshold(base, sign, floored, found, width=0.0)
    assert expected > found.threshold
    assert expected > expected_threshold(base, sign, free, mode, width=0.0)
