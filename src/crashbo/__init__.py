"""Bayesian optimization of experiments that can crash."""

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from crashbo.errors import CrashBOError, InputError, MissingExtraError, NumericalError
from crashbo.outcome import CRASHED, VIOLATED, Constraint, Crash, Trial

if TYPE_CHECKING:
    from crashbo.botorch.cost_and_margin import CostAndMargin as CostAndMargin
    from crashbo.botorch.diagnostics import check_ep as check_ep
    from crashbo.botorch.gpcr import GPCR as GPCR
    from crashbo.botorch.gpcr import fit_gpcr as fit_gpcr
    from crashbo.botorch.kernels import make_kernel as make_kernel
    from crashbo.minimization import Result as Result
    from crashbo.minimization import minimize as minimize
    from crashbo.optimizer import Optimizer as Optimizer
    from crashbo.options import FixedModel as FixedModel
    from crashbo.options import Options as Options
    from crashbo.space import Categorical as Categorical
    from crashbo.space import Float as Float
    from crashbo.space import Int as Int
    from crashbo.space import Space as Space

__version__ = "0.2.0"

# Imported on first use, so that light commands stay light; what is in `botorch` needs that extra.
_LAZY = {
    "space": ("Categorical", "Float", "Int", "Space"),
    "optimizer": ("Optimizer",),
    "options": ("FixedModel", "Options"),
    "minimization": ("Result", "minimize"),
    "botorch.gpcr": ("GPCR", "fit_gpcr"),
    "botorch.cost_and_margin": ("CostAndMargin",),
    "botorch.kernels": ("make_kernel",),
    "botorch.diagnostics": ("check_ep",),
}
_MODULES = {name: f"crashbo.{module}" for module, names in _LAZY.items() for name in names}
_BOTORCH = {name for name, module in _MODULES.items() if module.startswith("crashbo.botorch")}

__all__ = [
    "CRASHED",
    "VIOLATED",
    "Constraint",
    "Crash",
    "CrashBOError",
    "InputError",
    "MissingExtraError",
    "NumericalError",
    "Trial",
    "__version__",
    *sorted(_MODULES.keys() - _BOTORCH),
]
if importlib.util.find_spec("botorch") is not None:  # without it `from crashbo import *` would fail
    __all__ += sorted(_BOTORCH)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'crashbo' has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if name not in _BOTORCH or (error.name or "").startswith("crashbo"):
            raise
        raise MissingExtraError(
            f'`crashbo.{name}` needs BoTorch, which is not installed; run: pip install "crashbo[botorch]"'
        ) from error


def __dir__() -> list[str]:
    return sorted({*__all__, *_BOTORCH})
