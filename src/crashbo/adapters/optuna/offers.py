"""What comes next: what is queued, else a transient failure again, else what the model suggests.

`next_offer` alone decides this, from what is stored: the sampler, `crashbo ask` and the console all come here.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.trial import FrozenTrial, TrialState

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.history import place
from crashbo.adapters.optuna.outputs import outputs_of
from crashbo.adapters.optuna.paths import Path, find_paths, heard, next_path, settings_for
from crashbo.adapters.optuna.records import worth_another_try
from crashbo.adapters.optuna.space import Translation, within
from crashbo.errors import NumericalError
from crashbo.optimizer import Optimizer
from crashbo.problem.problem import Problem
from crashbo.problem.suggestion import Reason, Suggestion

_SKIPS = 20  # how many skipped suggestions are kept away from
_NEAR = 0.01  # of the unit cube, in every coordinate: the same experiment


@dataclass(frozen=True)
class Turn:
    """A trial that is about to begin, and what is stored in its study.

    Attributes:
        number: of the trial.
        given: values that the user put into the queue for it.
        records: of all other trials.
        translation: the parameters to choose together; None while none are known.
        declared: whether all trials have just these parameters; otherwise the paths through them are guessed.
        settings: how to search.
        skip: how many suggestions to leave to other workers, who had the same at the same moment.
    """

    number: int
    given: Mapping[str, Any]
    records: Sequence[Record]
    translation: Translation | None
    declared: bool
    settings: Problem
    skip: int = 0

    @property
    def distributions(self) -> Mapping[str, BaseDistribution]:
        return {} if self.translation is None else self.translation.distributions


@dataclass(frozen=True)
class Offer:
    """Params for one trial.

    Attributes:
        params: to try, in Optuna's terms.
        beliefs: why, and what the model believes, as JSON.
        retry_of: the transient trial that they try again.
        translation: of the params, if a model suggested them.
        waiting: the number of the queued trial that it is for, if it is not begun yet.
        problem: why the suggestion is quasi-random where a model should have made it.
    """

    params: Mapping[str, Any]
    beliefs: Mapping[str, Any]
    retry_of: int | None = None
    translation: Translation | None = None
    waiting: int | None = None
    problem: str = ""


class Fit(Protocol):
    """Makes the optimizer of some records; one that has learned from most of them before may pass that on."""

    def __call__(
        self,
        records: Sequence[Record],
        translation: Translation,
        settings: Problem,
        apart: Sequence[Mapping[str, Any]],
    ) -> Optimizer: ...


def next_offer(turn: Turn, fit: Fit) -> Offer:
    """Return what a trial is to try: what is queued, else a transient failure again, else what the model suggests.

    The model completes what a user or an earlier trial leaves open. Queued values count even outside their range.
    """
    again = None if turn.given else worth_another_try(turn.records)
    space = turn.distributions
    paths = [] if turn.declared else find_paths(turn.records, space)
    kept = within(turn.given if again is None else again.params, space)
    whole = [] if turn.translation is None else [turn.translation]
    fitting = [one for one in paths if one.fits(kept)] or paths or whole
    fixed = kept | {name: value for name, value in turn.given.items() if name in space}
    complete = not fitting or any(len(fixed) == len(one.distributions) for one in fitting)
    if turn.given and complete:
        return Offer(fixed, beliefs(Reason("given")))
    if again is not None:
        why = f"another try of trial {again.number}, whose failure was transient"
        others = {} if complete or paths else _suggested(turn, whole, (), fit).params
        return Offer({**others, **fixed}, {"mode": "retry", "why": why}, again.number)
    if not fitting:
        return Offer({}, {"mode": "independent", "why": "no parameters are known yet"})
    offer = _suggested(turn, fitting, paths, fit)
    return replace(offer, params={**offer.params, **fixed})


def _suggested(turn: Turn, spaces: Sequence[Translation], paths: Sequence[Translation], fit: Fit) -> Offer:
    """What the models say, in one of some spaces."""
    records, problems = turn.records, list[str]()

    def path(translation: Translation) -> Path:
        settings = settings_for(turn.settings, records, translation) if paths else turn.settings
        known = heard(records, translation) if paths else records
        return Path(translation, fit(known, translation, settings, skipped(records, translation)))

    def last(optimizer: Optimizer) -> Suggestion:
        return [_ask(optimizer, problems.append) for _ in range(turn.skip + 1)][-1]

    chosen, suggestion = next_path([path(one) for one in spaces], last)
    said = beliefs(suggestion.why, outputs_of(records, turn.settings.constraints).named)
    params = chosen.translation.outward(suggestion)
    return Offer(params, said, translation=chosen.translation, problem=problems[-1] if problems else "")


def _ask(optimizer: Optimizer, warn: Callable[[str], None]) -> Suggestion:
    """The optimizer's suggestion; a quasi-random one where the data are beyond its numbers."""
    try:
        return optimizer.ask()
    except NumericalError as error:
        warn(str(error))
        number = optimizer.saved.asked
        return Suggestion(optimizer.space.sobol(number + 1, optimizer.seed)[-1], number, Reason("initial"))


def queue(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """The trials that wait to begin, the next one first."""
    return sorted((one for one in trials if one.state == TrialState.WAITING), key=lambda one: one.number)


def given_for(trial: FrozenTrial) -> dict[str, Any]:
    """The values that were put into the queue for a trial."""
    return dict(trial.system_attrs.get("fixed_params", {}))


def skipped(records: Sequence[Record], translation: Translation) -> list[dict[str, Any]]:
    """The last suggestions that nobody wanted: as if they were under way, so that something else is suggested."""
    found = [place(record, translation) for record in records if record.skipped and not record.deleted]
    return [one for one in found if one is not None][-_SKIPS:]


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
