"""The NumPy predictions against the same formulas in torch, values and gradients."""

import math

import pytest
import torch
from torch import Tensor

from crashbo.models.moments import Component, PointMoments

FACTORS = {1.5: math.sqrt(3), 2.5: math.sqrt(5)}


def correlation(X: Tensor, points: Tensor, length: Tensor, nu: float) -> Tensor:
    square = ((X.unsqueeze(-2) - points) / length).square().sum(-1)
    if math.isinf(nu):
        return torch.exp(-0.5 * square)
    r = FACTORS[nu] * (square + 1e-300).sqrt()
    return ((1 + r) if nu == 1.5 else (1 + r + r.square() / 3)) * torch.exp(-r)


@pytest.mark.parametrize("nu", [1.5, 2.5, math.inf])
def test_one_output_matches_torch(nu: float) -> None:
    torch.manual_seed(0)
    points, length = torch.rand(9, 3, dtype=torch.float64), torch.tensor([0.3, 0.7, 1.1], dtype=torch.float64)
    prior = 2.5 * correlation(points, points, length, nu) + 0.01 * torch.eye(9, dtype=torch.float64)
    factor, targets = torch.linalg.cholesky(prior), torch.randn(9, 1, dtype=torch.float64)
    weights = torch.cholesky_solve(targets, factor)
    quick = PointMoments(
        [Component(points.numpy(), length.numpy(), nu, torch.full((1, 9), 2.5, dtype=torch.float64).numpy())],
        factor,
        weights,
        [2.5],
    )
    X = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    cross = 2.5 * correlation(X, points, length, nu)
    slow = torch.stack([(cross @ weights).squeeze(-1), 2.5 - (cross * torch.linalg.solve(prior, cross.T).T).sum(-1)])
    check(quick, X, slow)


def test_two_outputs_match_torch() -> None:
    torch.manual_seed(1)
    points, own_points = torch.rand(8, 2, dtype=torch.float64), torch.rand(5, 2, dtype=torch.float64)
    shared_length = torch.tensor([0.4, 0.6], dtype=torch.float64)
    own_length = torch.tensor([0.2, 0.9], dtype=torch.float64)
    first, second = torch.rand(2, 8, dtype=torch.float64), torch.rand(1, 5, dtype=torch.float64)
    second = torch.cat([torch.zeros_like(second), second])
    root = torch.randn(8, 8, dtype=torch.float64)
    known = root @ root.T + 10 * torch.eye(8, dtype=torch.float64)
    factor, targets = torch.linalg.cholesky(known), torch.randn(8, 1, dtype=torch.float64)
    weights = torch.cholesky_solve(targets, factor)
    quick = PointMoments(
        [
            Component(points.numpy(), shared_length.numpy(), 2.5, first.numpy()),
            Component(own_points.numpy(), own_length.numpy(), 2.5, second.numpy(), first=3),
        ],
        factor,
        weights,
        [3.0, 2.0, 0.5],
    )
    X = torch.rand(4, 2, dtype=torch.float64, requires_grad=True)
    crosses = []
    for output in range(2):
        cross = correlation(X, points, shared_length, 2.5) * first[output]
        own = correlation(X, own_points, own_length, 2.5) * second[output]
        crosses.append(cross + torch.nn.functional.pad(own, (3, 0)))

    def left(one: Tensor, other: Tensor) -> Tensor:
        return (one * torch.linalg.solve(known, other.T).T).sum(-1)

    a, b = crosses
    slow = torch.stack(
        [(a @ weights).squeeze(-1), 3 - left(a, a), (b @ weights).squeeze(-1), 2 - left(b, b), 0.5 - left(a, b)]
    )
    check(quick, X, slow)


def check(quick: PointMoments, X: Tensor, slow: Tensor) -> None:
    fast = quick(X)
    torch.testing.assert_close(fast, slow, rtol=1e-10, atol=1e-12)
    mix = torch.randn_like(slow)
    (expected,) = torch.autograd.grad((mix * slow).sum(), X)
    (found,) = torch.autograd.grad((mix * fast).sum(), X)
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-11)
