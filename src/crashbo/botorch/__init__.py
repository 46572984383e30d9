"""CrashBO's models and acquisition functions for BoTorch (extra `botorch`): thin, on the engine of `crashbo.gp`."""

from crashbo.botorch.acquisition import (
    ConstrainedMinValueEntropySearch,
    FailureAware,
    MinValueEntropySearch,
    mesco,
    success_somewhere,
)
from crashbo.botorch.cost_and_margin import CostAndMargin
from crashbo.botorch.diagnostics import EPCheck, check_ep
from crashbo.botorch.gpcr import GPCR, fit_gpcr
from crashbo.botorch.kernels import make_kernel

__all__ = [
    "GPCR",
    "ConstrainedMinValueEntropySearch",
    "CostAndMargin",
    "EPCheck",
    "FailureAware",
    "MinValueEntropySearch",
    "check_ep",
    "fit_gpcr",
    "make_kernel",
    "mesco",
    "success_somewhere",
]
