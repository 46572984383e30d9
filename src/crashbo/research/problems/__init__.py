"""Problems with a known answer, to try the optimizer on."""

from crashbo.research.problems.synthetic import ALL_CRASH, CASE2, CASE4, SIM1, SIM2, SYNTHETIC, Outcome, Problem

__all__ = ["ALL_CRASH", "CASE2", "CASE4", "SIM1", "SIM2", "SYNTHETIC", "Outcome", "Problem"]
