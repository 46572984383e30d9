"""The optimizer behind any Optuna study, for limits and pictures."""

from typing import Any

import optuna

from crashbo.adapters.optuna.history import SETTINGS
from crashbo.adapters.optuna.internals import study_attributes
from crashbo.adapters.optuna.records import read
from crashbo.adapters.optuna.sampler import CrashBOSampler
from crashbo.optimizer import Optimizer


def optimizer_of(study: optuna.Study) -> Optimizer:
    """Return a `crashbo.Optimizer` with all trials of a study, for limits and pictures; works with any sampler.

    Raises:
        InputError: if the study has several objectives, or no trial with parameters yet.
    """
    sampler: Any = study.sampler
    if not isinstance(sampler, CrashBOSampler):
        made = SETTINGS in study_attributes(study)
        sampler = CrashBOSampler.from_study(study) if made else CrashBOSampler(seed=0)
    found: Optimizer = sampler.optimizer(study)
    return found


def optimizer_and_pruned(study: optuna.Study) -> tuple[Optimizer, tuple[int, ...]]:
    """The optimizer, and the numbers of trials that were stopped early."""
    return optimizer_of(study), tuple(one.number for one in read(study) if one.status == "pruned")
