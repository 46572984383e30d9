"""Every hand-set number that decides where to go next; docs/method.md has the effects of halving and doubling."""

import math
from dataclasses import dataclass

from crashbo.problem.options import KernelName

Weighted = tuple[tuple[float, float], ...]  # values with their prior weights


@dataclass(frozen=True)
class Numbers:
    """The numbers of the default strategy."""

    # Centre and spreads of logs: of lengthscales less log(d) / 2 (spread in common, then of each), of the variance of
    # standardised values as far as they vary over the cube, of their noise variance.
    lengthscale: tuple[float, float, float] = (-1.2, 1.2, 0.5)
    variance: tuple[float, float] = (0.0, 1.0)
    noise: tuple[float, float] = (-6.0, 2.0)
    threshold: tuple[float, float] = (1.6, 1.0)  # mean and deviation of a limit, in prior deviations of what it limits
    # Of cost and crash margin.
    correlations: Weighted = ((-0.9, 0.05), (-0.5, 0.15), (0.0, 0.3), (0.5, 0.15), (0.9, 0.1), (0.99, 0.25))
    margin_lengthscales: Weighted = ((0.4, 0.3), (1.0, 0.4), (2.5, 0.3))  # factors on the prior's centre
    lapses: Weighted = ((0.003, 0.7), (0.03, 0.2), (0.15, 0.1))  # rates of random crashes
    warps: Weighted = ((0.0, 0.5), (1.0, 0.25), (4.0, 0.25))  # how strongly values above the median are compressed
    kernels: tuple[tuple[KernelName, float], ...] = (("matern52", 0.6), ("rbf", 0.4))  # of all latents
    smallest_weight: float = 0.02  # of a model that stays in the average
    most_models: int = 12  # in the average, and samples of the value's hyperparameters; 1: the most probable alone
    reason_count: int = 4  # crashes with one named reason that may have a margin of their own
    price_per_odds: float = 0.75  # price of a crash at first, over the odds against it at the share allowed
    price_step: float = 0.7  # by which the log price moves with each failure
    debts: tuple[float, float] = (-0.5, 3.0)  # fewest and most failures beyond the share allowed that move the price
    substantial: float = 0.1  # gain, in standard deviations of the costs, that no price may make unattractive

    def usual_lengthscale(self, d: int) -> float:
        """The centre of the prior of lengthscales in `d` dimensions."""
        return math.exp(self.lengthscale[0]) * math.sqrt(d)


NUMBERS = Numbers()
