"""What a method is, and what several of them share."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class Method(Protocol):
    """A way to choose trials: made from a problem's space and a seed, told every trial.

    Attributes:
        workers: trials it plans at a time.
        own_start: whether it chooses its first trials itself, as its users have it, instead of being told the whole
            shared design.
        success_probability: that it gave the last suggestion; None if it has no such notion.
        ask_times: seconds of the last suggestion, on the clock and of the processor, where the method measures them
            itself because it works in another process; None otherwise.
    """

    workers: int
    own_start: bool
    success_probability: float | None
    ask_times: tuple[float, float] | None

    def ask(self) -> dict[str, Any]:
        """Return the params to try next."""
        ...

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        """Learn the cost of a trial, asked for or from the shared design; None is a crash."""
        ...


class Sequential:
    """What methods have in common that plan one trial at a time and predict no success."""

    workers = 1
    own_start = False
    success_probability: float | None = None
    ask_times: tuple[float, float] | None = None


def worst(costs: Sequence[float | None]) -> float | None:
    """Return the highest cost seen, which stands in for a crash where a method needs a number."""
    return max((cost for cost in costs if cost is not None), default=None)
