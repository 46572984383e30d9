"""Gaussian processes on values and one-sided labels, in NumPy and SciPy: kernel, EP, evidence, and the average over hyperparameters."""
