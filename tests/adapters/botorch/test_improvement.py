"""The bounded information of a trial about the constrained minimum."""

import math

import pytest
import torch

from crashbo.adapters.botorch.acquisition import ConstrainedMinValueEntropySearch
from crashbo.errors import InputError
from tests.adapters.botorch.helpers import double
from tests.adapters.botorch.models import cost_and_margin, gpcr

X = torch.rand(4, 1, 1, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


def test_the_value_is_that_of_its_formula():
    model, minima = gpcr(), double([-0.5, -0.8])
    found = ConstrainedMinValueEntropySearch(model, minima, lambda x: x[..., 0].log(), noise_variance=0.3)(X)
    with torch.no_grad():
        posterior = model.posterior(X)
    mean, deviation = posterior.mean[:, 0, 0], posterior.variance[:, 0, 0].sqrt()
    share = deviation**2 / (deviation**2 + 0.3)
    each = [-torch.log1p(-share * X[:, 0, 0] * torch.special.ndtr((m - mean) / deviation)) for m in minima]
    torch.testing.assert_close(found.detach(), (sum(each) / 2).log())


def test_of_cost_and_margin_it_counts_both_together():
    model, minima = cost_and_margin(), double([-0.5])
    found = ConstrainedMinValueEntropySearch(model, minima)(X).detach()
    torch.manual_seed(0)
    with torch.no_grad():
        draws = model.posterior(X).rsample(torch.Size([40_000])).squeeze(-2)
    both = (draws[..., 0] < minima) & (draws[..., 1] <= model.threshold)
    p = (1 - model.lapse) * both.double().mean(0)
    torch.testing.assert_close(found.exp(), -torch.log1p(-p), rtol=0.15, atol=0.01)


def test_a_point_that_almost_surely_fails_tells_almost_nothing():
    model = gpcr()
    high = double([1e3])  # any cost there would be the new minimum
    unlikely = ConstrainedMinValueEntropySearch(model, high, lambda x: x.new_full(x.shape[:-1], math.log(1e-3)))
    assert float(unlikely(X[:1]).detach().exp()) <= 1.001e-3


def test_minima_are_checked():
    with pytest.raises(InputError, match="minima"):
        ConstrainedMinValueEntropySearch(gpcr(), double([math.nan]))
