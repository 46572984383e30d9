"""Costs far above the others, brought closer where the trials ask for it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crashbo.models.costs import learn_costs

Array = NDArray[np.float64]
_FEWEST = 5  # costs that show what is usual
_REACHES = (30.0, 3.0)
_WORTH = 2.0  # nats that a compression must gain
_FAR = 0.999  # share of the reach beyond which nothing is told apart


@dataclass(frozen=True)
class Compression:
    """Ever slower growth above a knee, nothing changed below it.

    One controller on the verge of falling may cost a hundred times what the good ones do. A Gaussian
    process that has to pass through it bends everywhere. The order of costs and the place of their minimum
    stay what they are.

    Math: y' = knee + a width (1 - (1 + (y - knee) / width)^(-1 / a)) for y > knee

    Attributes:
        knee: highest cost that stays as it is; +inf changes nothing.
        width: above the knee that costs grow much as before.
        reach: a, widths above the knee that a compressed cost cannot exceed; large: it grows like a logarithm.
    """

    knee: float = math.inf
    width: float = 1.0
    reach: float = 1.0

    def __call__(self, cost: float) -> float:
        """Compress one cost."""
        above = (cost - self.knee) / self.width
        return (
            cost if above <= 0 else self.knee + self.reach * self.width * -math.expm1(-math.log1p(above) / self.reach)
        )

    def expand(self, cost: float) -> float:
        """Undo it; what no cost could reach is +inf."""
        share = (cost - self.knee) / (self.reach * self.width)
        if math.isinf(self.knee) or share <= 0:
            return cost
        return math.inf if share >= 1 else self.knee + self.width * math.expm1(-self.reach * math.log1p(-share))

    def expand_moments(self, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation in the costs' own units, to first order."""
        if math.isinf(self.knee):
            return mean, deviation
        share = ((mean - self.knee) / (self.reach * self.width)).clamp(0.0, _FAR)
        expanded = self.knee + self.width * torch.expm1(-self.reach * torch.log1p(-share))
        return torch.where(share > 0, expanded, mean), deviation * (1 - share) ** -(self.reach + 1)


def choose_compression(X: Array, costs: Sequence[float]) -> Compression:
    """The compression under which a Gaussian process predicts the better half of the costs best, each from all others.

    Above the median, in units of the better half's spread; none where that is best. The better half is the
    same under all of them, and it is what a search wants to know. A small gain is chance and does not count.

    Args:
        X: `n x d`, unit cube.
        costs: `n`.
    """
    if len(costs) < _FEWEST:
        return Compression()
    knee = float(np.median(costs))
    width = knee - min(costs)
    if not (math.isfinite(width) and width > max(1e-9 * max(abs(knee), abs(min(costs))), 1e-100)):
        return Compression()
    choices = [Compression(), *(Compression(knee, width, reach) for reach in _REACHES)]
    plain, *others = (_foresight(X, np.array(costs), one) for one in choices)
    gains = [0.0, *(other - plain - _WORTH for other in others)]
    return choices[int(np.argmax(gains))]


def _foresight(X: Array, costs: Array, compression: Compression) -> float:
    """Log density of the better half, each cost given all others."""
    values = np.array([compression(cost) for cost in costs.tolist()])
    scale = float(values.std())
    found = learn_costs(X, (values - values.mean()) / scale)
    if found.log_posterior == -math.inf:
        return -math.inf
    return float((found.leave_one_out() - math.log(scale))[costs <= np.median(costs)].sum())
