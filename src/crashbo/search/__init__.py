"""Strategies: from a history to the next trial and to the best guess."""

from typing import TYPE_CHECKING

from crashbo.model.memory import Memory

if TYPE_CHECKING:
    from crashbo.search.strategy import Strategy


def make_strategy(strategy: "str | Strategy", memory: Memory) -> "Strategy":
    """The strategy of a name, or an object, with the memory in which it keeps what it learns.

    An object without `with_memory` is used as it is.
    """
    if strategy == "paper":
        from crashbo.search.paper import PaperStrategy

        return PaperStrategy(memory)
    if isinstance(strategy, str):
        from crashbo.search.default import DefaultStrategy

        return DefaultStrategy(memory=memory)
    with_memory = getattr(strategy, "with_memory", None)
    return strategy if with_memory is None else with_memory(memory)
