"""Costs far above the others, brought closer: all they say is that they are high."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

_FEWEST = 4  # costs that show what is usual
_FAR = 50.0  # widths above the knee, compressed, beyond which nothing is told apart


@dataclass(frozen=True)
class Compression:
    """Logarithmic growth above a knee, nothing changed below it.

    One controller on the verge of falling may cost a hundred times what the good ones do. A Gaussian
    process that has to pass through it bends everywhere. The order of costs and the place of their minimum
    stay what they are.

    Math: y' = knee + width log(1 + (y - knee) / width) for y > knee

    Attributes:
        knee: highest cost that stays as it is; +inf changes nothing.
        width: above the knee that costs grow as before.
    """

    knee: float = math.inf
    width: float = 1.0

    def __call__(self, cost: float) -> float:
        """Compress one cost."""
        above = (cost - self.knee) / self.width
        return cost if above <= 0 else self.knee + self.width * math.log1p(above)

    def expand(self, cost: float) -> float:
        """Undo it; +inf stays."""
        if math.isinf(cost):
            return cost
        above = min((cost - self.knee) / self.width, _FAR)
        return cost if above <= 0 else self.knee + self.width * math.expm1(above)

    def expand_moments(self, mean: Tensor, deviation: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation in the costs' own units, to first order."""
        if math.isinf(self.knee):
            return mean, deviation
        above = ((mean - self.knee) / self.width).clamp(0.0, _FAR)
        return torch.where(above > 0, self.knee + self.width * above.expm1(), mean), deviation * above.exp()


def choose_compression(costs: Sequence[float]) -> Compression:
    """The compression that suits costs: the better half stays, its spread is what the others are measured by."""
    if len(costs) < _FEWEST:
        return Compression()
    knee = float(np.median(costs))
    width = knee - min(costs)
    usual = math.isfinite(width) and width > 1e-9 * max(abs(knee), abs(min(costs)))
    return Compression(knee, width) if usual else Compression()
