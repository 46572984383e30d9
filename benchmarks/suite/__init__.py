"""CrashBO beside the other ways to handle crashes: problems, methods, runs, tables and plots.

`python -m benchmarks.suite --help` says how to run it.
"""
