"""GPCR as a BoTorch model, its threshold and its hyperparameters."""
