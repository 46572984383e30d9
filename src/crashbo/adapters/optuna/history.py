"""From the records of a study to a `crashbo.Optimizer` that knows them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.outputs import outputs_of
from crashbo.adapters.optuna.space import Translation
from crashbo.errors import InputError
from crashbo.optimizer import Optimizer
from crashbo.problem.history import History
from crashbo.problem.outcome import Trial
from crashbo.problem.problem import Direction, Problem
from crashbo.problem.suggestion import Reason, Suggestion

CONSTRAINTS, SETTINGS = "crashbo:constraints", "crashbo:settings"  # a study's user attributes


def settings_in(attributes: Mapping[str, Any]) -> Problem:
    """Return the problem, but for its space, that `crashbo new` wrote among a study's attributes, also version 0.1.

    Raises:
        InputError: if it did not.
    """
    try:
        return Problem.from_json({**attributes[SETTINGS], "constraints": attributes.get(CONSTRAINTS, [])})
    except (KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"`study` must be made by `crashbo new`; its settings cannot be read ({error!r}). "
            "Otherwise write CrashBOSampler(...) with your own settings."
        ) from error


def make_optimizer(
    records: Sequence[Record],
    translation: Translation,
    settings: Problem,
    *,
    maximize: bool,
    number: int,
    apart: Sequence[Mapping[str, Any]] = (),
) -> Optimizer:
    """Return the optimizer that has seen the records and is about to suggest trial `number`.

    Finished, crashed, pruned and pending records that lie in the space count, in the order of their numbers.

    Args:
        records: of the other trials.
        translation: of the parameters to suggest.
        settings: how to search.
        maximize: whether more is better.
        number: of the trial.
        apart: more params, in the terms of the space, to keep away from as if they were under way.
    """
    outputs = outputs_of(records, settings.constraints)
    direction: Direction = "maximize" if maximize else "minimize"
    problem = replace(settings, space=translation.space, constraints=tuple(outputs.all), direction=direction)
    placed = [(record, place(record, translation)) for record in records]
    trials = [
        Trial(record.number, params, _cost(record), outputs.seen(record), record.reason)
        for record, params in placed
        if params is not None and record.teaches
    ]
    pending = [
        Suggestion(params, record.number, Reason("given"))
        for record, params in placed
        if params is not None and record.status == "pending" and record.number != number
    ]
    first = 1 + max([*(one.number for one in trials), *(one.number for one in pending)], default=-1)
    pending += [Suggestion(params, first + nth, Reason("given")) for nth, params in enumerate(apart)]
    return Optimizer.restore(History(problem, tuple(trials), tuple(pending), asked=number))


def _cost(record: Record) -> float | None:
    """Its cost, or what it is thought to be; None for a crash."""
    return record.estimate if record.status == "pruned" else record.objective


def place(record: Record, translation: Translation) -> dict[str, Any] | None:
    """Return where a record lies in CrashBO's space, None if nowhere.

    Params not asked for yet are as suggested; those a crash came before are filled in.
    """
    known = translation.unpack(record.suggestion) | dict(record.params)
    if record.status == "crashed" and any(name in known for name in translation.distributions):
        known = translation.fill(known, record.number)
    return translation.inward(known)
