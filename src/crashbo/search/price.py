"""The price of a crash, which adapts to the share or the number of failures that a user allows."""

import math
from collections.abc import Sequence

from crashbo.model.numbers import HORIZON, UNAFFORDABLE, Numbers
from crashbo.problem.options import Options


def crash_price(failures: Sequence[bool], start: int, options: Options, numbers: Numbers) -> float:
    """The price of the next failure, in the log of the gain that would make up for it.

    It begins with the odds against a failure at the share allowed: `risk`, or what is left of a crash budget, if that
    is less. Every failure makes the next one dearer, every success cheaper, within bounds, so that the share of
    failures tends to the one allowed. Failures of the initial design, which is not the models' choice, count against a
    budget alone. Without a budget, failures are cheap at first and dear in the end where the number of trials is known.

    Math: price = price_per_odds (1 - share) / share exp(step debt);  times 2 t / T at trial t of T without a budget
        debt += failed - share after every trial, from 0, between the bounds `debts`

    Args:
        failures: of all trials, in order.
        start: the first trial that is not of the initial design.
        options: `risk`, `crash_budget`, `n_trials`.
        numbers: price and step.
    """
    share = allowed_share(failures, options)
    if not share:
        return UNAFFORDABLE
    (least, most), debt = numbers.debts, 0.0
    for count in range(start, len(failures)):
        debt = min(max(debt + failures[count] - allowed_share(failures[:count], options), least), most)
    price = numbers.price_per_odds * (1 - share) / share * math.exp(numbers.price_step * debt)
    if options.n_trials is None or options.crash_budget is not None:
        return price
    return price * min(2 * len(failures) / options.n_trials, 2.0)


def budget_left(failures: Sequence[bool], options: Options) -> float:
    """How many more trials may fail; infinity without a budget."""
    return math.inf if options.crash_budget is None else max(options.crash_budget - sum(failures), 0)


def allowed_share(failures: Sequence[bool], options: Options) -> float:
    """The share of the next trials that may fail, given those before."""
    if options.crash_budget is None:
        return options.risk
    left = max((options.n_trials or len(failures) + HORIZON) - len(failures), 1)
    return min(options.risk, budget_left(failures, options) / left)
