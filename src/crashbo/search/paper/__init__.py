"""The paper's method and nothing else: a GPCR per output, MAP thresholds, mES and mESCO, the mode switch."""

from crashbo.search.paper.strategy import PaperStrategy

__all__ = ["PaperStrategy"]
