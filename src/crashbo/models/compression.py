"""Costs far above the others, brought closer: all they say is that they are high."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_FEWEST = 4  # costs that show what is usual
_MOST = 3.0  # widths above the knee that a compressed cost can reach
_FAR = 0.999  # share of that beyond which nothing is told apart


@dataclass(frozen=True)
class Compression:
    """Ever slower growth above a knee, nothing changed below it.

    One controller on the verge of falling may cost a hundred times what the good ones do. A Gaussian
    process that has to pass through it bends everywhere. The order of costs and the place of their minimum
    stay what they are.

    Math: y' = knee + a width (1 - (1 + (y - knee) / width)^(-1 / a)) for y > knee, a = 3

    Attributes:
        knee: highest cost that stays as it is; +inf changes nothing.
        width: above the knee that costs grow as before.
    """

    knee: float = math.inf
    width: float = 1.0

    def __call__(self, cost: float) -> float:
        """Compress one cost."""
        above = (cost - self.knee) / self.width
        return cost if above <= 0 else self.knee + _MOST * self.width * (1 - (1 + above) ** (-1 / _MOST))

    def expand(self, cost: float) -> float:
        """Undo it; +inf stays."""
        if math.isinf(cost):
            return cost
        share = min((cost - self.knee) / (_MOST * self.width), _FAR)
        return cost if share <= 0 else self.knee + self.width * ((1 - share) ** -_MOST - 1)

    def expand_moments(self, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation in the costs' own units, to first order."""
        if math.isinf(self.knee):
            return mean, deviation
        left = 1 - ((mean - self.knee) / (_MOST * self.width)).clamp(0.0, _FAR)
        expanded = self.knee + self.width * (left**-_MOST - 1)
        return torch.where(left < 1, expanded, mean), deviation * left ** -(_MOST + 1)


def choose_compression(costs: Sequence[float]) -> Compression:
    """The compression that suits costs: the better half stays, its spread is what the others are measured by."""
    if len(costs) < _FEWEST:
        return Compression()
    knee = float(np.median(costs))
    width = knee - min(costs)
    usual = math.isfinite(width) and width > 1e-9 * max(abs(knee), abs(min(costs)))
    return Compression(knee, width) if usual else Compression()
