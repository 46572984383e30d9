"""Strategies: from a history to the next trial and to the best guess."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crashbo.search.strategy import Strategy


def make_strategy(strategy: "str | Strategy") -> "Strategy":
    """The strategy of a name, made anew, or the object itself."""
    if not isinstance(strategy, str):
        return strategy
    if strategy == "paper":
        from crashbo.search.paper import PaperStrategy

        return PaperStrategy()
    from crashbo.search.default import DefaultStrategy

    return DefaultStrategy()
