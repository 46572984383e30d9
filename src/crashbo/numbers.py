"""Every hand-set number that decides where to go next; docs/method.md has the effects of halving and doubling."""

from dataclasses import dataclass

from crashbo.gp.kernel import KernelName


@dataclass(frozen=True)
class Numbers:
    """The numbers of the default strategy.

    Attributes:
        lengthscale: centre, common spread and own spread of log lengthscales less log(d) / 2.
        variance: centre and spread of the log variance of standardised values, as far as they vary over the cube.
        noise: centre and spread of the log noise variance of standardised values.
        threshold: mean and standard deviation of a limit, in prior standard deviations of what it limits.
        correlations: of cost and crash margin, with their prior weights.
        margin_lengthscales: factors on the prior's centre for the margin's own latent, with their prior weights.
        lapses: rates of random crashes, with their prior weights.
        warps: how strongly values above the median are compressed, with their prior weights.
        kernels: of all latents, with their prior weights.
        smallest_weight: of a model that stays in the average.
        most_models: in the average, and settings of the value's hyperparameters that are combined with the others;
            1: the most probable alone.
        reason_count: crashes with one named reason that may have a margin of their own.
        price_per_odds, price_step: price of a crash at first, over the odds against it at the share allowed, and how
            far the log price moves with each failure.
        debts: fewest and most failures beyond the share allowed that move the price; below 0 they are saved up.
        substantial: gain, in standard deviations of the costs, that no price may make unattractive.
    """

    lengthscale: tuple[float, float, float] = (-1.2, 1.2, 0.5)
    variance: tuple[float, float] = (0.0, 1.0)
    noise: tuple[float, float] = (-6.0, 2.0)
    threshold: tuple[float, float] = (1.6, 1.0)
    correlations: tuple[tuple[float, float], ...] = (
        (-0.9, 0.05),
        (-0.5, 0.15),
        (0.0, 0.3),
        (0.5, 0.15),
        (0.9, 0.1),
        (0.99, 0.25),
    )
    margin_lengthscales: tuple[tuple[float, float], ...] = ((0.4, 0.3), (1.0, 0.4), (2.5, 0.3))
    lapses: tuple[tuple[float, float], ...] = ((0.003, 0.7), (0.03, 0.2), (0.15, 0.1))
    warps: tuple[tuple[float, float], ...] = ((0.0, 0.5), (1.0, 0.25), (4.0, 0.25))
    kernels: tuple[tuple[KernelName, float], ...] = (("matern52", 0.6), ("rbf", 0.4))
    smallest_weight: float = 0.02
    most_models: int = 12
    reason_count: int = 4
    price_per_odds: float = 0.75
    price_step: float = 0.7
    debts: tuple[float, float] = (-0.5, 3.0)
    substantial: float = 0.1


NUMBERS = Numbers()
