"""Bayesian optimization of experiments that can crash."""

import importlib
from typing import TYPE_CHECKING, Any

from crashbo.errors import CrashBOError, InputError, NumericalError

if TYPE_CHECKING:
    from crashbo.models.diagnostics import check_ep as check_ep
    from crashbo.models.gpcr import GPCR as GPCR
    from crashbo.models.gpcr import fit_gpcr as fit_gpcr
    from crashbo.models.hyperparameters import make_kernel as make_kernel

__version__ = "0.1.0"

# Names that need torch are imported on first use, so that light commands stay light.
_LAZY = {
    "GPCR": "crashbo.models.gpcr",
    "fit_gpcr": "crashbo.models.gpcr",
    "make_kernel": "crashbo.models.hyperparameters",
    "check_ep": "crashbo.models.diagnostics",
}

__all__ = ["CrashBOError", "InputError", "NumericalError", "__version__", *_LAZY]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'crashbo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
