"""The bounded information of a trial about the constrained minimum."""

import math

import pytest
import torch
from scipy.stats import multivariate_normal

from crashbo.acquisition.improvement import (
    ConstrainedMinValueEntropySearch,
    log_both_below,
    log_bounded_information,
)
from crashbo.errors import InputError
from crashbo.models.coupled_predictor import CoupledPredictor
from tests.helpers import double
from tests.models.test_coupled import unfitted


@pytest.mark.parametrize("correlation", [-0.9, -0.5, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("u", [-3.0, -1.0, 0.5])
@pytest.mark.parametrize("v", [-1.0, 0.0, 2.0])
def test_both_below_agrees_with_the_bivariate_integral(u, v, correlation):
    exact = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf([u, v])
    found = float(log_both_below(double(u), double(v), double(correlation)).exp())
    assert found == pytest.approx(exact, abs=0.02, rel=0.35 if abs(correlation) > 0.8 else 0.15)


def test_both_below_is_exact_without_correlation():
    found = log_both_below(double(-0.7), double(0.3), double(0.0))
    expected = torch.special.log_ndtr(double(-0.7)) + torch.special.log_ndtr(double(0.3))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("p", [1e-12, 1e-3, 0.3, 0.999])
def test_bounded_information_of_a_probability(p):
    assert float(log_bounded_information(double(p).log()).exp()) == pytest.approx(-math.log1p(-p), rel=1e-6)


def test_bounded_information_stays_finite_with_its_gradient():
    logs = double([-1e6, -50.0, -8.0, -1e-3, -1e-14, 0.0]).requires_grad_()
    value = log_bounded_information(logs)
    (slope,) = torch.autograd.grad(value.sum(), logs)
    assert value.isfinite().all()
    assert slope.isfinite().all()
    assert (value[1:] >= value[:-1]).all()


def test_the_value_is_that_of_its_formula():
    model = CoupledPredictor(unfitted(0.0))
    minima = double([0.5, 1.5])
    X = torch.rand(4, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    found = ConstrainedMinValueEntropySearch(model, minima, lambda x: x[..., 0].log(), noise_variance=0.3)(X)
    mean, deviation = model.moments(X.squeeze(-2))
    p = model.log_success(X.squeeze(-2)).exp() * X[:, 0, 0]
    share = deviation**2 / (deviation**2 + 0.3)
    each = [-torch.log1p(-share * p * torch.special.ndtr((m - mean) / deviation)) for m in minima]
    torch.testing.assert_close(found, (sum(each) / 2).log())


def test_a_point_that_almost_surely_fails_tells_almost_nothing():
    model = CoupledPredictor(unfitted(0.0))
    X = torch.rand(1, 1, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    high = model.moments(X.squeeze(-2))[0] + 1e3  # any cost there would be the new minimum
    unlikely = ConstrainedMinValueEntropySearch(model, high, lambda x: x.new_full(x.shape[:-1], math.log(1e-3)))
    assert float(unlikely(X).exp()) <= 1.001e-3


def test_minima_are_checked():
    with pytest.raises(InputError, match="minima"):
        ConstrainedMinValueEntropySearch(CoupledPredictor(unfitted()), double([math.nan]))
