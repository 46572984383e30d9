"""Fixtures of the tests with BoTorch, which are left out where it is not installed."""

import importlib.util
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from torch import Tensor

    from crashbo import GPCR

if importlib.util.find_spec("botorch") is None:
    collect_ignore_glob = ["test_*.py"]


class Trials(NamedTuple):
    """Arguments of a model."""

    X: "Tensor"
    Y: "Tensor"
    crashed: "Tensor"


@pytest.fixture(scope="session")
def example1() -> Trials:
    """Example 1 of the paper: three stable trials, two crashed ones."""
    import torch

    return Trials(
        torch.tensor([[0.1], [0.3], [0.5], [0.7], [0.9]], dtype=torch.float64),
        torch.tensor([[0.5], [2.0], [1.0], [torch.nan], [torch.nan]], dtype=torch.float64),
        torch.tensor([False, False, False, True, True]),
    )


@pytest.fixture
def example1_model(example1: Trials) -> "GPCR":
    """Example 1 with the paper's kernel and noise, and its threshold rounded as printed."""
    from crashbo import GPCR
    from tests.adapters.botorch.helpers import matern

    return GPCR(*example1, noise_std=0.02, covar_module=matern(), threshold=2.03)
