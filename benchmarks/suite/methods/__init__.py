"""The methods compared, by name; each family is imported only when one of its methods is made."""

from collections.abc import Callable
from importlib import import_module, util
from typing import Any

from benchmarks.suite.methods.base import Method
from benchmarks.suite.problem import Problem
from crashbo.errors import InputError

# name: module, factory, its settings, the package it needs
_METHODS: dict[str, tuple[str, str, dict[str, Any], str]] = {
    "crashbo": ("crashbo_", "CrashBO", {}, "crashbo"),
    "crashbo-shared-start": ("crashbo_", "CrashBO", {"own_start": False}, "crashbo"),
    "crashbo-absorb": ("crashbo_", "CrashBO", {"crashes": "absorb"}, "crashbo"),
    "crashbo-separate": ("crashbo_", "CrashBO", {"crashes": "separate"}, "crashbo"),
    "crashbo-4workers": ("crashbo_", "CrashBO", {"workers": 4}, "crashbo"),
    "crashbo-8workers": ("crashbo_", "CrashBO", {"workers": 8}, "crashbo"),
    # What each part does, one switched off at a time.
    "crashbo-one-model": ("crashbo_", "CrashBO", {"numbers": {"most_models": 1}}, "crashbo"),
    "crashbo-no-price": ("crashbo_", "CrashBO", {"risk": 1.0}, "crashbo"),
    "crashbo-no-lapse": ("crashbo_", "CrashBO", {"numbers": {"lapses": ((1e-6, 1.0),)}}, "crashbo"),
    "crashbo-no-warp": ("crashbo_", "CrashBO", {"numbers": {"warps": ((0.0, 1.0),)}}, "crashbo"),
    # The share of failures that users allow; 0.2 is the default.
    **{f"crashbo-risk-{risk}": ("crashbo_", "CrashBO", {"risk": risk}, "crashbo") for risk in (0.05, 0.1, 0.4)},
    "crashbo-0.1.0": ("v010_", "V010", {}, "crashbo 0.1.0"),
    "random": ("plain", "Random", {}, "crashbo"),
    "sobol": ("plain", "Sobol", {}, "crashbo"),
    "tpe-pruned": ("optuna_", "Optuna", {"sampler": "tpe", "crash": "pruned"}, "optuna"),
    "tpe-failed": ("optuna_", "Optuna", {"sampler": "tpe", "crash": "failed"}, "optuna"),
    "gpsampler-failed": ("optuna_", "Optuna", {"sampler": "gp", "crash": "failed"}, "optuna"),
    "gpsampler-worst": ("optuna_", "Optuna", {"sampler": "gp", "crash": "worst"}, "optuna"),
    "logei-worst": ("botorch_", "Penalised", {}, "botorch"),
    "logei-classifier": ("botorch_", "TwoModels", {}, "botorch"),
    "logei-classifier-floor": ("botorch_", "TwoModels", {"floor": 0.8}, "botorch"),
    "fcei-0.2": ("botorch_", "TwoModels", {"floor": 0.2, "weighted": False}, "botorch"),
    "fcei-0.5": ("botorch_", "TwoModels", {"floor": 0.5, "weighted": False}, "botorch"),
    "fcei-0.8": ("botorch_", "TwoModels", {"floor": 0.8, "weighted": False}, "botorch"),
    "boundary-ensemble": ("boundary", "Boundary", {}, "botorch"),
    "ax-abandoned": ("ax_", "Ax", {"crash": "abandoned"}, "ax"),
    "ax-failed": ("ax_", "Ax", {"crash": "failed"}, "ax"),
    "ax-viability": ("ax_", "Ax", {"crash": "abandoned", "viability": True}, "ax"),
    "smac-worst": ("smac_", "Smac", {}, "smac"),
    "vizier-infeasible": ("vizier_", "Vizier", {}, "vizier"),
}

CRASHBO = "crashbo"
OURS = tuple(name for name in _METHODS if name.startswith("crashbo"))


def method_names() -> tuple[str, ...]:
    """Return the names of all methods, installed or not."""
    return tuple(_METHODS)


def installed(name: str) -> bool:
    """Whether the package a method needs can be imported here, or has its environment."""
    if _METHODS[name][0] == "v010_":
        from benchmarks.suite.methods.v010_ import PYTHON

        return PYTHON.exists()
    return util.find_spec(_METHODS[name][3]) is not None


def make_method(name: str, problem: Problem, seed: int) -> Method:
    """Return a fresh method for one run.

    Raises:
        InputError: if there is no method of this name, or its package is not installed.
    """
    if name not in _METHODS:
        raise InputError(f"`method` must be one of {', '.join(_METHODS)}; got {name!r}.")
    module, factory, settings, package = _METHODS[name]
    if not installed(name):
        raise InputError(
            f"`method` must be installed; got {name!r}, which needs {package}. Run `make suite` or `make v010`."
        )
    make: Callable[..., Method] = getattr(import_module(f"{__name__}.{module}"), factory)
    return make(problem, seed, **settings)
