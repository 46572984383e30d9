"""Outcomes told as tensors."""

import math

import pytest
import torch

from crashbo import Constraint, InputError
from crashbo.outcome import check_outcome


@pytest.mark.parametrize(
    "value",
    [
        torch.tensor(2.0),
        torch.tensor(2),
        torch.tensor([2.0], dtype=torch.float64),
        torch.tensor(2.0, requires_grad=True),
    ],
)
def test_scalars_become_floats(value: torch.Tensor) -> None:
    cost, seen = check_outcome(value, {"reach": value}, [Constraint("reach")])
    assert (cost, seen) == (2.0, {"reach": 2.0})
    assert type(cost) is float


@pytest.mark.parametrize("value", [torch.tensor(math.nan), torch.tensor(True), torch.tensor([1.0, 2.0])])
def test_anything_but_a_finite_number_is_refused(value: torch.Tensor) -> None:
    with pytest.raises(InputError, match="`objective` must be a finite number"):
        check_outcome(value, {"reach": 1.0}, [Constraint("reach")])
