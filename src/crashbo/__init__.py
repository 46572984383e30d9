"""Bayesian optimization of experiments that can crash."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from crashbo.errors import CrashBOError, InputError, MissingExtraError, NumericalError
from crashbo.problem.outcome import CRASHED, VIOLATED, Constraint, Crash, Trial

if TYPE_CHECKING:
    from crashbo.adapters.botorch.cost_and_margin import CostAndMargin as CostAndMargin
    from crashbo.adapters.botorch.diagnostics import check_ep as check_ep
    from crashbo.adapters.botorch.gpcr import GPCR as GPCR
    from crashbo.adapters.botorch.gpcr import fit_gpcr as fit_gpcr
    from crashbo.adapters.botorch.kernels import make_kernel as make_kernel
    from crashbo.minimization import Result as Result
    from crashbo.minimization import minimize as minimize
    from crashbo.optimizer import Optimizer as Optimizer
    from crashbo.problem.options import FixedModel as FixedModel
    from crashbo.problem.options import Options as Options
    from crashbo.problem.space import Categorical as Categorical
    from crashbo.problem.space import Float as Float
    from crashbo.problem.space import Int as Int
    from crashbo.problem.space import Space as Space

__version__ = "0.2.0"

# Imported on first use, so that light commands stay light; what is in `botorch` needs that extra.
_LAZY = {
    "problem.space": ("Categorical", "Float", "Int", "Space"),
    "optimizer": ("Optimizer",),
    "problem.options": ("FixedModel", "Options"),
    "minimization": ("Result", "minimize"),
    "adapters.botorch.gpcr": ("GPCR", "fit_gpcr"),
    "adapters.botorch.cost_and_margin": ("CostAndMargin",),
    "adapters.botorch.kernels": ("make_kernel",),
    "adapters.botorch.diagnostics": ("check_ep",),
}
_MODULES = {name: f"crashbo.{module}" for module, names in _LAZY.items() for name in names}
_BOTORCH = {name for name, module in _MODULES.items() if module.startswith("crashbo.adapters.botorch")}

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


# What an earlier layer uses of a later one, imported on first use: the whole list.
_LATER = {
    "optimizer_and_pruned": "adapters.optuna.opening",  # pictures of an Optuna study
    "to_dataframe": "show.report.result",  # a result shows itself
    "to_html": "show.report.result",
}


def later(name: str) -> Any:
    """What a layer may use of a later one; see `_LATER`."""
    return getattr(importlib.import_module(f"crashbo.{_LATER[name]}"), name)


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


# Public names of modules, and where the code behind them is.
_PUBLIC = {
    "botorch": "adapters.botorch",
    "integrations": "adapters",
    "plots": "show",
    "problems": "research.problems",
    "report": "show.report",
}
# Where modules were before version 0.3; these names warn, and go with version 0.4.
_FORMER = {
    **dict.fromkeys(("gp", "learning"), "model"),
    **{name: f"model.{name}" for name in ("numbers", "threads")},
    **{name: f"problem.{name}" for name in ("arrays", "history", "options", "outcome", "parameters", "region")},
    **{name: f"problem.{name}" for name in ("rules", "sobol", "space", "suggestion")},
    "demo": "research.demo",
    "jobs": "guard",
    "reproduce": "research.reproduce",
    "strategies": "search",
    "strategies.base": "search.strategy",
    "studies": "store",
}


class _OtherNames(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module under another name: it is one and the same module, whichever name it is imported by."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        own, _, name = fullname.partition(".")
        if own != __name__ or not name:
            return None
        for known in (name, name.partition(".")[0]):
            if place := _PUBLIC.get(known) or _FORMER.get(known):
                now = f"{own}.{place}{name[len(known) :]}"
                if known in _FORMER:
                    warnings.warn(f"`{fullname}` is `{now}` now.", DeprecationWarning, stacklevel=2)
                return importlib.machinery.ModuleSpec(fullname, self, origin=now)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(str(spec.origin))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = module.__spec__ and module.__spec__.loader_state  # its own, which the import has replaced


sys.meta_path.insert(0, _OtherNames())
