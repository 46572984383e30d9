"""What is offered to one trial, and whether another worker offers the same."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution

from crashbo.adapters.optuna.history import place
from crashbo.adapters.optuna.records import Record
from crashbo.adapters.optuna.space import Translation, translate
from crashbo.errors import NumericalError
from crashbo.optimizer import Optimizer
from crashbo.problem.suggestion import Reason, Suggestion

_SKIPS = 20  # how many skipped suggestions are kept away from
_NEAR = 0.01  # of the unit cube, in every coordinate: the same experiment
_logger = optuna.logging.get_logger(__name__)


@dataclass(frozen=True)
class Offer:
    """Params for one trial: why, and which transient trial they try again."""

    params: Mapping[str, Any]
    beliefs: Mapping[str, Any]
    retry_of: int | None = None
    translation: Translation | None = None


def ask(optimizer: Optimizer) -> Suggestion:
    """The optimizer's suggestion; a quasi-random one where the data are beyond its numbers."""
    try:
        return optimizer.ask()
    except NumericalError as error:
        _logger.warning(f"The model failed ({error}); this trial is quasi-random.")
        number = optimizer.saved.asked
        return Suggestion(optimizer.space.sobol(number + 1, optimizer.seed)[-1], number, Reason("initial"))


def skipped(records: Sequence[Record], translation: Translation) -> list[dict[str, Any]]:
    """The last suggestions that nobody wanted: as if they were under way, so that something else is suggested."""
    found = [place(record, translation) for record in records if record.skipped and not record.deleted]
    return [one for one in found if one is not None][-_SKIPS:]


def within(params: Mapping[str, Any], space: Mapping[str, BaseDistribution]) -> dict[str, Any]:
    """Those params that a search space still allows."""
    known = {name: value for name, value in params.items() if name in space}
    return {name: value for name, value in known.items() if translate({name: space[name]}).inward(known) is not None}


def rivals(offer: Offer, known: Sequence[Record], now: Sequence[Record]) -> list[Record]:
    """The trials that came up with the same since the records were read."""
    before = {record.number: record for record in known}
    new = [record for record in now if record != before.get(record.number)]
    if offer.retry_of is not None:
        return [record for record in new if record.retry_of == offer.retry_of]
    translation = offer.translation
    mine = None if translation is None else translation.inward(offer.params)
    if mine is None or translation is None:
        return []
    point = translation.space.encode(mine)
    placed = [(record, place(record, translation)) for record in new if record.status != "ignored"]
    return [
        record
        for record, params in placed
        if params is not None and np.all(np.abs(translation.space.encode(params) - point) < _NEAR)
    ]


def beliefs(why: Reason, named: Callable[[Mapping[str, float]], dict[str, float]] = dict) -> dict[str, Any]:
    """What the model believes, as JSON."""
    beliefs: dict[str, Any] = {"mode": why.mode, "why": str(why)}
    if why.success_probability is not None:
        beliefs["success_probability"] = why.success_probability
    if why.thresholds:
        beliefs["thresholds"] = named(why.thresholds)
        beliefs["deviations"] = named(why.deviations)
    if why.relation:
        beliefs["relation"] = dict(why.relation)
    return beliefs
