"""Global maximisation over the unit cube, with integer and categorical coordinates."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor

Array = NDArray[np.float64]
Score = Callable[[Tensor], Tensor]
Round = Callable[[Tensor], Tensor]
Slope = Callable[[Array], tuple[Array, Array]]


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Attributes:
        starts: best points refined by gradient.
        iterations: of L-BFGS-B, all starts together.
        evaluations: of all starts together, after which no further iteration begins.
        precision: of the sum of their scores, relative.
    """

    starts: int = 6
    iterations: int = 30
    evaluations: int = 1000
    precision: float = 2.2e-9


@dataclass(frozen=True)
class Maximum:
    """The best point found.

    Attributes:
        point: `d`, rounded to a valid one.
        value: its score.
    """

    point: Tensor
    value: float


def sobol(count: int, dimension: int, seed: int) -> Tensor:
    """Scrambled Sobol points, `count x dimension`."""
    engine = torch.quasirandom.SobolEngine(dimension, scramble=True, seed=seed)
    return engine.draw(count, dtype=torch.float64)


def maximise(
    score: Score,
    points: Tensor,
    *,
    slope: Slope | None = None,
    round_: Round | None = None,
    effort: Effort | None = None,
    allowed: Callable[[Tensor], Tensor] | None = None,
) -> Maximum:
    """Maximise a score over the unit cube.

    Points all over the cube first, then L-BFGS-B from the best of them; discrete
    coordinates are rounded inside the score, so gradients move the continuous ones, and a
    final hill climb changes discrete ones one at a time.

    Args:
        score: `m x d` to `m`, differentiable.
        points: `k x d`, valid ones to look at first.
        slope: `m x d` to the scores `m` and their gradients `m x d`, where that is quicker than autograd.
        round_: maps points to valid ones; None if all are.
        effort: how hard to search.
        allowed: `m x d` to bool `m`, points that may be returned; None allows all.
    """
    effort = effort or Effort()
    rounded: Round = round_ or (lambda x: x)
    values = _evaluate(score, points, allowed)
    top = values.topk(min(effort.starts, len(values))).indices
    best_points, best_values = points[top], values[top]
    steps = slope or _by_autograd(score)
    if round_ is not None:
        steps = _rounding(steps, round_, best_points)
    refined = rounded(_ascend(steps, best_points, effort))
    candidates = torch.cat([refined, best_points])
    scores = torch.cat([_evaluate(score, refined, allowed), best_values])
    winner = int(scores.argmax())
    point, value = candidates[winner], float(scores[winner])
    if round_ is not None:
        point, value = _climb(score, rounded, point, value, allowed)
    return Maximum(point.detach(), value)


def _evaluate(score: Score, points: Tensor, allowed: Callable[[Tensor], Tensor] | None) -> Tensor:
    with torch.no_grad():
        values = score(points)
    values = torch.where(values.isfinite(), values, values.new_tensor(-1e300))
    return values if allowed is None else torch.where(allowed(points), values, values.new_tensor(-1e301))


def _by_autograd(score: Score) -> Slope:
    def steps(x: Array) -> tuple[Array, Array]:
        points = torch.from_numpy(x).requires_grad_()
        values = score(points)
        if not values.requires_grad:
            return np.full(len(x), -np.inf), np.zeros_like(x)
        (gradient,) = torch.autograd.grad(values.sum(), points)
        return values.detach().numpy(), gradient.numpy()

    return steps


def _rounding(steps: Slope, round_: Round, points: Tensor) -> Slope:
    """The scores of rounded points, which change with the continuous coordinates only."""
    moved = points[:1].clone().requires_grad_()
    total = round_(moved).sum()
    free = torch.autograd.grad(total, moved)[0].numpy() if total.requires_grad else 0.0

    def rounded(x: Array) -> tuple[Array, Array]:
        values, gradients = steps(round_(torch.from_numpy(x)).numpy())
        return values, gradients * free

    return rounded


def _ascend(steps: Slope, start: Tensor, effort: Effort) -> Tensor:
    """Refine all starting points together."""
    shape = start.shape

    def negative(flat: Array) -> tuple[float, Array]:
        values, gradients = steps(flat.reshape(shape))
        total = float(values.sum())
        if not math.isfinite(total):
            return 1e300, np.zeros_like(flat)
        return -total, -np.nan_to_num(gradients, nan=0.0).ravel()

    result = minimize(
        negative,
        start.detach().numpy().ravel().copy(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * start.numel(),
        options={"maxiter": effort.iterations, "maxfun": effort.evaluations, "ftol": effort.precision},
    )
    return torch.from_numpy(result.x.reshape(shape)).clamp(0.0, 1.0)


def _climb(
    score: Score, rounded: Round, point: Tensor, value: float, allowed: Callable[[Tensor], Tensor] | None
) -> tuple[Tensor, float]:
    """Improve by changing one coordinate at a time, as long as that helps."""
    ladder = torch.linspace(0.0, 1.0, 33, dtype=point.dtype)
    for _ in range(10):
        moved = point.repeat(len(point) * len(ladder), 1)
        for axis in range(len(point)):
            moved[axis * len(ladder) : (axis + 1) * len(ladder), axis] = ladder
        moved = rounded(moved)
        values = _evaluate(score, moved, allowed)
        winner = int(values.argmax())
        if float(values[winner]) <= value + 1e-9 * abs(value):
            break
        point, value = moved[winner], float(values[winner])
    return point, value
