"""The price of a crash, which adapts to the share of failures that a user allows."""

import math
from collections.abc import Sequence

from crashbo.numbers import Numbers
from crashbo.options import Options


def crash_price(failures: Sequence[bool], options: Options, numbers: Numbers) -> float:
    """The price of the next failure, relative to the largest gain.

    Every failure makes the next one dearer, every success cheaper, so that the share of failures tends to `risk`; a crash
    budget is the same with the share that is left.

    Math: log price += step (failed - risk) after every trial, from `first_price`

    Args:
        failures: of the trials, in order.
        options: `risk`, `crash_budget`, `n_trials`.
        numbers: first price and step.
    """
    if options.risk >= 1 and options.crash_budget is None:
        return 0.0
    log_price = math.log(numbers.first_price)
    for count, failed in enumerate(failures):
        if count < numbers.price_after:
            continue
        log_price += numbers.price_step * (float(failed) - _share(options, failures[:count], count))
    return math.exp(min(log_price, 50.0))


def _share(options: Options, before: Sequence[bool], count: int) -> float:
    """The share of failures allowed next."""
    if options.crash_budget is None:
        return options.risk
    left = max(options.crash_budget - sum(before), 0)
    trials = max((options.n_trials or count + 20) - count, 1)
    return min(options.risk, left / trials)
