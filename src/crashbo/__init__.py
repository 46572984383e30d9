"""Bayesian optimization of experiments that can crash."""

import importlib
from typing import TYPE_CHECKING, Any

from crashbo.errors import CrashBOError, InputError, NumericalError
from crashbo.outcome import CRASHED, VIOLATED, Constraint, Crash, Trial

if TYPE_CHECKING:
    from crashbo.minimization import Result as Result
    from crashbo.minimization import minimize as minimize
    from crashbo.models.cost_and_margin import CostAndMargin as CostAndMargin
    from crashbo.models.diagnostics import check_ep as check_ep
    from crashbo.models.gpcr import GPCR as GPCR
    from crashbo.models.gpcr import fit_gpcr as fit_gpcr
    from crashbo.models.hyperparameters import make_kernel as make_kernel
    from crashbo.optimizer import Optimizer as Optimizer
    from crashbo.options import FixedModel as FixedModel
    from crashbo.options import Options as Options
    from crashbo.space import Categorical as Categorical
    from crashbo.space import Float as Float
    from crashbo.space import Int as Int
    from crashbo.space import Space as Space

__version__ = "0.1.0"

# Imported on first use, so that light commands stay light: torch alone takes seconds.
_LAZY = {
    "Space": "crashbo.space",
    "Float": "crashbo.space",
    "Int": "crashbo.space",
    "Categorical": "crashbo.space",
    "Optimizer": "crashbo.optimizer",
    "Options": "crashbo.options",
    "FixedModel": "crashbo.options",
    "Result": "crashbo.minimization",
    "minimize": "crashbo.minimization",
    "GPCR": "crashbo.models.gpcr",
    "fit_gpcr": "crashbo.models.gpcr",
    "CostAndMargin": "crashbo.models.cost_and_margin",
    "make_kernel": "crashbo.models.hyperparameters",
    "check_ep": "crashbo.models.diagnostics",
}

__all__ = [
    "CRASHED",
    "VIOLATED",
    "Constraint",
    "Crash",
    "CrashBOError",
    "InputError",
    "NumericalError",
    "Trial",
    "__version__",
    *_LAZY,
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'crashbo' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
