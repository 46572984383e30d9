"""Gaussian processes on values and one-sided labels, in NumPy: one kernel, one EP, one evidence, one prediction."""
