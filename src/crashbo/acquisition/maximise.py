"""Global maximisation over the unit cube, with integer and categorical coordinates."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

Score = Callable[[Tensor], Tensor]
Round = Callable[[Tensor], Tensor]


@dataclass(frozen=True)
class Effort:
    """How hard to search.

    Attributes:
        starts: best points refined by gradient.
        iterations: of L-BFGS-B, all starts together.
        precision: of the sum of their scores, relative.
    """

    starts: int = 6
    iterations: int = 30
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
        round_: maps points to valid ones; None if all are.
        effort: how hard to search.
        allowed: `m x d` to bool `m`, points that may be returned; None allows all.
    """
    effort = effort or Effort()
    rounded: Round = round_ or (lambda x: x)
    values = _evaluate(score, points, allowed)
    top = values.topk(min(effort.starts, len(values))).indices
    best_points, best_values = points[top], values[top]
    refined = rounded(_ascend(lambda x: score(rounded(x)), best_points, effort))
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


def _ascend(score: Score, start: Tensor, effort: Effort) -> Tensor:
    """Refine all starting points together."""
    shape = start.shape

    def negative(flat: np.ndarray) -> tuple[float, np.ndarray]:
        x = torch.from_numpy(flat.reshape(shape)).requires_grad_()
        total = score(x).sum()
        if not total.requires_grad or not bool(total.isfinite()):
            return 1e300, np.zeros_like(flat)
        (gradient,) = torch.autograd.grad(total, x)
        return -float(total.detach()), -gradient.nan_to_num(0.0).numpy().ravel()

    result = minimize(
        negative,
        start.detach().numpy().ravel().copy(),
        jac=True,
        method="L-BFGS-B",
        bounds=[(0.0, 1.0)] * start.numel(),
        options={"maxiter": effort.iterations, "ftol": effort.precision},
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
