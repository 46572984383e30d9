"""Models of one-dimensional trials that the acquisition tests share."""

from functools import cache

import numpy as np
import torch
from botorch.models import SingleTaskGP
from botorch.utils.testing import MockModel, MockPosterior
from torch import Tensor

from crashbo import GPCR, CostAndMargin
from tests.adapters.botorch.helpers import double, matern

NOISE = 0.02
GRID = torch.linspace(0, 1, 201, dtype=torch.float64)[:, None]


def trials(n: int = 7, dimension: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Trials of a smooth cost that crashes above 0.6."""
    X = torch.as_tensor(np.random.default_rng(3).uniform(size=(n, dimension)))
    Y = torch.sin(5 * X[:, :1]) + 0.3 * X.sum(-1, keepdim=True)
    return X, Y, Y.squeeze(-1) > 0.6


def gpcr(dimension: int = 1, **named) -> GPCR:
    """A GPCR with a fixed kernel."""
    settings = {"noise_std": NOISE, "covar_module": matern(0.3, 1.0), "threshold": 0.6}
    return GPCR(*trials(dimension=dimension), **(settings | named))


@cache
def cost_and_margin() -> CostAndMargin:
    """Costs and crashes of the same trials, more of them."""
    return CostAndMargin(*trials(15))


def standard_gp() -> SingleTaskGP:
    """A BoTorch model of the trials that did not crash."""
    X, Y, crashed = trials()
    return SingleTaskGP(X[~crashed], Y[~crashed], torch.full_like(Y[~crashed], NOISE**2))


def fake(mean: list[float], variance: list[float]) -> MockModel:
    """A model whose posterior is given, for `b` points."""
    shape = (len(mean), 1, 1)
    return MockModel(MockPosterior(mean=double(mean).reshape(shape), variance=double(variance).reshape(shape)))
