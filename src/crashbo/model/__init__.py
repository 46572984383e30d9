"""Gaussian processes on values and one-sided labels: kernel, EP, evidence, priors, and the average over models."""
