"""Optuna studies that another program made: what they are about, as far as their trials tell."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.outputs import Outputs, outputs_of
from crashbo.adapters.optuna.records import read
from crashbo.adapters.optuna.space import Distributions, Translation, infer, infer_largest, translate
from crashbo.errors import InputError
from crashbo.problem.problem import Direction, Problem
from crashbo.store.definition import Definition


def infer_definition(study: optuna.Study) -> tuple[Definition, Distributions]:
    """Return what a study is about, and the distributions of its parameters.

    The parameters are those that all finished trials share; where there is none, those of the largest group of trials
    with the same ones.

    Raises:
        InputError: if it has several objectives, or no trial with parameters.
    """
    records = read(study)
    space = infer(records) or infer_largest(records)
    if not space:
        raise InputError(
            f"`study` must have a trial with parameters; {study.study_name!r} has none yet. Run one, or make a study "
            "with `crashbo new`."
        )
    direction: Direction = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
    problem = Problem(translate(space).space, tuple(outputs_of(records, ()).all), direction)
    return Definition(problem, plain=True), space


def as_told(records: Sequence[Record], translation: Translation) -> list[Record]:
    """Records as if `crashbo` had made them: Optuna's constraints among ours, choices of any kind as texts."""
    outputs = outputs_of(records, ())
    return [_as_told(record, outputs, translation) for record in records]


def _as_told(record: Record, outputs: Outputs, translation: Translation) -> Record:
    params = {name: translation.shown(name, value) for name, value in record.params.items()}
    return replace(record, params=params, constraints=outputs.seen(record), limits={})


def is_conditional(records: Sequence[Record], distributions: Mapping[str, BaseDistribution]) -> bool:
    """Whether some finished trials have parameters beyond these, or lack one of them."""
    varying = (
        {name for name, one in record.distributions.items() if not one.single()}
        for record in records
        if record.status in ("finished", "pruned")
    )
    return any(names != set(distributions) for names in varying)


def extra_names(records: Sequence[Record], definition: Definition) -> list[str]:
    """Parameters that are not modelled, since not all trials have them."""
    found: dict[str, Any] = {name: None for record in records for name in record.params}
    return [name for name in found if name not in definition.space]
