"""Hand-set numbers that decide where to go next; docs/method.md has the effects of halving and doubling `Numbers`.

Numerical effort, which makes results more exact and not different, stands beside the code that makes it.
"""

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

# When hyperparameters are learned anew, and how many are kept up with
LEARNED_EACH = 12  # trials up to which every new one is learned from
LEARNED_SHARE = 6  # then, whenever there are so many more as a share of those learned from
LEARNED_MOST = 100  # trials to learn hyperparameters from
MODELS_TIMES_TRIALS = 320  # models times trials
COMBINATIONS = 27  # of the relations of several margins

# What counts as a related, or a random, crash
RELATED = 0.4  # correlation from which on crashes count as related to the cost
RANDOM = 0.1  # lapse rate from which on crashes count as random

# How much is modelled
LABELS = 300  # most of an output that are modelled

# Importance sampling of the value's hyperparameters
SAMPLES = 64  # of the hyperparameters around each mode
WIDER = 1.3  # than Laplace's approximation, so that no sample weighs too much

# Bounds of hyperparameters, and of the fraction of a variance that varies over the cube
LENGTHSCALE_RANGE = (2.5e-2, 1e3)
VARIANCE_RANGE = (1e-3, 1e3)
NOISE_RANGE = (1e-8, 10.0)
LEAST_FRACTION = 1e-3  # share of the variance that shows, however long the lengthscales

# Warps
WARPED_FROM = 5  # values that show what is usual
UNWARPED_BEYOND = 1.0  # by which the exponent may exceed that of the largest value when a warp is undone

# Labels that conflict with the rest (GPCR)
RELAXED_RATE = 1e-3  # lapse rate of a relaxed label
AGAINST = 2.0  # log of how many times less likely than a priori the rest makes a label that is looked at

# The score
SPENT_TOLERANCE = 0.002  # by which a suggestion may be less likely to succeed than the safest, once a budget is spent
FREE = 1e-3  # probability of failure below which a trial counts as free

# The best guess
NOISY = 0.1  # share of the costs' spread from which on noise may explain the best trial

# The price
UNAFFORDABLE = 1e6  # price of a failure once a budget is spent
HORIZON = 20  # trials over which a budget is spread where their number is not known

# The paper's strategy
HYPERPRIOR = (0.0, 5.0)  # of the threshold, on standardised values: wide
THRESHOLD_RANGE = (-50.0, 50.0)
HEADROOM = 0.3  # of the first threshold tried, above the highest standardised value
