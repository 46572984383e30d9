"""Fixtures and settings for all tests. Torch is imported only by the fixtures that need it: the core has none."""

from typing import TYPE_CHECKING, NamedTuple

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from torch import Tensor

    from crashbo import GPCR

settings.register_profile("crashbo", derandomize=True, deadline=None, print_blob=False)
settings.load_profile("crashbo")


class Trials(NamedTuple):
    """Arguments of a model."""

    X: "Tensor"
    Y: "Tensor"
    crashed: "Tensor"


@pytest.fixture(scope="session")
def example1() -> Trials:
    """Example 1 of the paper: three stable trials, two crashed ones."""
    import torch

    from tests.helpers import double

    return Trials(
        double([[0.1], [0.3], [0.5], [0.7], [0.9]]),
        double([[0.5], [2.0], [1.0], [torch.nan], [torch.nan]]),
        torch.tensor([False, False, False, True, True]),
    )


@pytest.fixture
def example1_model(example1: Trials) -> "GPCR":
    """Example 1 with the paper's kernel and noise, and its threshold rounded as printed."""
    from crashbo import GPCR
    from tests.helpers import matern

    return GPCR(*example1, noise_std=0.02, covar_module=matern(), threshold=2.03)
