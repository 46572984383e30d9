"""Outcomes told as tensors."""

import math

import pytest
import torch

from crashbo import Constraint, InputError
from crashbo.problem.outcome import Outcome, check_outcome


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
    found = check_outcome(value, {"reach": value}, [Constraint("reach")])
    assert found == Outcome(2.0, {"reach": 2.0})
    assert type(found.objective) is float


def test_no_number_is_a_crash() -> None:
    found = check_outcome(torch.tensor(math.nan), {"reach": 1.0}, [Constraint("reach")])
    assert found.objective is None
    assert found.reason


@pytest.mark.parametrize("value", [torch.tensor(True), torch.tensor([1.0, 2.0])])
def test_anything_but_a_number_is_refused(value: torch.Tensor) -> None:
    with pytest.raises(InputError, match=r"`objective` must be a number or crashbo\.CRASHED"):
        check_outcome(value, {"reach": 1.0}, [Constraint("reach")])
