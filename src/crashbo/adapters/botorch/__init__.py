"""CrashBO's models and acquisition functions for BoTorch (extra `botorch`): thin, on the engine of `crashbo.model`.

Imported on first use: `density` and `exact`, which need no torch, can be had without it.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crashbo.adapters.botorch.acquisition import (
        ConstrainedMinValueEntropySearch as ConstrainedMinValueEntropySearch,
    )
    from crashbo.adapters.botorch.acquisition import FailureAware as FailureAware
    from crashbo.adapters.botorch.acquisition import MinValueEntropySearch as MinValueEntropySearch
    from crashbo.adapters.botorch.acquisition import mesco as mesco
    from crashbo.adapters.botorch.acquisition import success_somewhere as success_somewhere
    from crashbo.adapters.botorch.cost_and_margin import CostAndMargin as CostAndMargin
    from crashbo.adapters.botorch.diagnostics import EPCheck as EPCheck
    from crashbo.adapters.botorch.diagnostics import check_ep as check_ep
    from crashbo.adapters.botorch.gpcr import GPCR as GPCR
    from crashbo.adapters.botorch.gpcr import fit_gpcr as fit_gpcr
    from crashbo.adapters.botorch.kernels import make_kernel as make_kernel

_LAZY = {
    "ConstrainedMinValueEntropySearch": "acquisition",
    "CostAndMargin": "cost_and_margin",
    "EPCheck": "diagnostics",
    "FailureAware": "acquisition",
    "GPCR": "gpcr",
    "MinValueEntropySearch": "acquisition",
    "check_ep": "diagnostics",
    "fit_gpcr": "gpcr",
    "make_kernel": "kernels",
    "mesco": "acquisition",
    "success_somewhere": "acquisition",
}
__all__ = [*_LAZY]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'crashbo.adapters.botorch' has no attribute {name!r}")
    return getattr(importlib.import_module(f"crashbo.adapters.botorch.{_LAZY[name]}"), name)
