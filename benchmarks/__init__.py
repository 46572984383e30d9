"""Benchmarks: scripts of their own, and the suite."""
