"""What the model makes of a study: the best guess and the learned limits."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from crashbo.errors import InputError
from crashbo.store.asking import use_sampler
from crashbo.store.study import Study, counts

if TYPE_CHECKING:
    from crashbo.model.surrogate import Limit, Relation
    from crashbo.optimizer import Optimizer
    from crashbo.problem.suggestion import Best


@dataclass(frozen=True)
class Outlook:
    """What is believed after all trials so far.

    Attributes:
        best: the best guess, its params in the order of the space.
        limits: of all outputs that have one, each with its standard deviation.
        relation: what crashes have to do with the objective; None while unknown.
        crash_relation: the same in words.
        places: which named reasons of crashes have a place of their own, and where, in words.
    """

    best: "Best"
    limits: "Mapping[str, Limit]"
    relation: "Relation | None"
    crash_relation: str
    places: Sequence[str] = ()

    def to_json(self) -> dict[str, Any]:
        """Limits and relation as plain JSON; `thresholds` are the limits' values alone."""
        return {
            "thresholds": {name: one.value for name, one in self.limits.items()},
            "limits": {name: asdict(one) for name, one in self.limits.items()},
            "relation": None if self.relation is None else asdict(self.relation),
            "crash_relation": self.crash_relation,
            "places": list(self.places),
        }


def look(study: Study) -> Outlook:
    """Fit the models to all trials and return what they say.

    Raises:
        InputError: while no trial is finished or crashed.
    """
    from crashbo.model.words import describe_places

    optimizer, _ = fitted(study)
    best = optimizer.best()
    params = {name: best.params[name] for name in study.definition.space}
    varies = optimizer.space.dimension > 0
    places = describe_places(optimizer.surrogate(), optimizer.space, optimizer.direction) if varies else ()
    return Outlook(replace(best, params=params), optimizer.limits, optimizer.relation, optimizer.crash_relation, places)


def fitted(study: Study) -> "tuple[Optimizer, list[int]]":
    """Return an optimizer that has seen all trials, and their numbers in the study.

    Raises:
        InputError: while no trial is finished or crashed.
    """
    tally = counts(study.definition, study.records())
    if not tally["finished"] + tally["crashed"] + tally["pruned"]:
        raise InputError("`study` must have a trial that is told before there is a best guess. Run one.")
    sampler = use_sampler(study)
    with study.guarded(reading=False):
        optimizer: Optimizer = sampler.optimizer(study.inner)
    return optimizer, [trial.number for trial in optimizer.trials]
