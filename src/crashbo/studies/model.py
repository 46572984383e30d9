"""What the model makes of a study: the best guess and the learned limits. This imports torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from crashbo.errors import InputError
from crashbo.studies.asking import use_sampler
from crashbo.studies.study import Study, counts

if TYPE_CHECKING:
    from crashbo.optimizer import Best, Optimizer


@dataclass(frozen=True)
class Outlook:
    """What is believed after all trials so far.

    Attributes:
        best: the best guess, its params in the order of the space.
        thresholds: the learned limits of all outputs that have one.
    """

    best: "Best"
    thresholds: Mapping[str, float]


def look(study: Study) -> Outlook:
    """Fit the models to all trials and return what they say.

    Raises:
        InputError: while no trial is finished or crashed.
    """
    from dataclasses import replace

    optimizer, _ = fitted(study)
    best = optimizer.best()
    params = {name: best.params[name] for name in study.definition.space}
    return Outlook(replace(best, params=params), optimizer.thresholds)


def fitted(study: Study) -> "tuple[Optimizer, list[int]]":
    """Return an optimizer that has seen all trials, and their numbers in the study.

    Raises:
        InputError: while no trial is finished or crashed.
    """
    records = study.records()
    tally = counts(records)
    if not tally["finished"] + tally["crashed"]:
        raise InputError("`study` must have a trial that is told before there is a best guess. Run one.")
    sampler = use_sampler(study)
    with study.guarded(reading=False):
        optimizer: Optimizer = sampler.optimizer(study.inner)
    numbers = [one.number for one in records if one.status in ("finished", "crashed")]
    return optimizer, numbers if len(numbers) == len(optimizer.trials) else list(range(len(optimizer.trials)))
