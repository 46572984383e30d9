"""CrashBO in Optuna: a sampler that learns from failed trials, and helpers that say what a failure was."""

import importlib
from typing import TYPE_CHECKING, Any

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.correcting import correct, lost_worker, release_running
from crashbo.adapters.optuna.records import best_trial, read
from crashbo.adapters.optuna.reporting import crashing, report, report_crash, report_transient

if TYPE_CHECKING:
    from crashbo.adapters.optuna.opening import optimizer_of as optimizer_of
    from crashbo.adapters.optuna.sampler import CrashBOSampler as CrashBOSampler

# Imported on first use: recording a result needs no model.
_LAZY = {
    "CrashBOSampler": "crashbo.adapters.optuna.sampler",
    "optimizer_of": "crashbo.adapters.optuna.opening",
}

__all__ = [
    "CrashBOSampler",
    "Record",
    "best_trial",
    "correct",
    "crashing",
    "lost_worker",
    "optimizer_of",
    "read",
    "release_running",
    "report",
    "report_crash",
    "report_transient",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    raise AttributeError(f"module 'crashbo.adapters.optuna' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
