"""Where to try next: samples of the minimum, mES, mESCO, and their maximisation."""
