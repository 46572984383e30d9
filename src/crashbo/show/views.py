"""What a picture is drawn from: an optimizer, with the names and units a person knows."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

import crashbo
from crashbo.errors import InputError
from crashbo.minimization import Result
from crashbo.model.surrogate import Limit, Surrogate
from crashbo.optimizer import Optimizer
from crashbo.problem.arrays import Array
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.outcome import Trial
from crashbo.problem.parameters import Categorical
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Best
from crashbo.show.decision import Decision, decide


@dataclass(frozen=True)
class View:
    """An optimizer in its present state, with units and trial numbers for pictures.

    Best guess and next point are computed once, when first drawn. After the optimizer was told something, make a new
    view.

    Attributes:
        optimizer: never changed by drawing.
        units: by parameter, by constraint, or "objective".
        numbers: numbers of the trials in a study, in the order told; empty: counted from 0.
        objective: name of the objective in pictures.
        pruned: numbers of trials that were stopped early; their costs are estimates.
    """

    optimizer: Optimizer
    units: Mapping[str, str] = field(default_factory=dict)
    numbers: Sequence[int] = ()
    objective: str = "cost"
    pruned: Collection[int] = ()

    def __post_init__(self) -> None:
        known = {*self.space.names, OBJECTIVE, *(one.name for one in self.optimizer.constraints)}
        unknown = [name for name in self.units if name not in known]
        if unknown:
            raise InputError(
                f"`units` must name parameters, constraints or 'objective'; got {unknown}. Known: {sorted(known)}."
            )
        if len(self.numbers) not in (0, len(self.trials)):
            raise InputError(
                f"`numbers` must have one entry per trial; got {len(self.numbers)} for {len(self.trials)} trials."
            )

    @property
    def space(self) -> Space:
        """The optimizer's parameters."""
        return self.optimizer.space

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All finished trials, in the order told."""
        return self.optimizer.trials

    @property
    def sign(self) -> float:
        """-1 when maximising, where the models see the negated objective; otherwise 1."""
        return self.optimizer.sign

    @property
    def has_model(self) -> bool:
        """Whether there is anything to fit: at least one trial and one parameter that varies."""
        return bool(self.trials) and self.space.dimension > 0

    @cached_property
    def models(self) -> Surrogate:
        """The models of all outputs."""
        return self.optimizer.surrogate()

    @property
    def varying(self) -> tuple[str, ...]:
        """The parameters that are not constants."""
        return tuple(block.name for block in self.space.coordinates)

    @cached_property
    def positions(self) -> dict[str, Array]:
        """Where the trials lie along each parameter that is no choice, from 0 to 1."""
        numbers = {name: one for name, one in self.space.items() if not isinstance(one, Categorical)}
        return {
            name: np.array([one.locate(trial.params[name]) for trial in self.trials]) for name, one in numbers.items()
        }

    @cached_property
    def best(self) -> Best:
        """The best guess."""
        return self.optimizer.best()

    @cached_property
    def limits(self) -> dict[str, Limit]:
        """The limits of all outputs that have one, in their own units."""
        return self.optimizer.limits

    @cached_property
    def decision(self) -> Decision:
        """The score that chooses the next suggestion."""
        return decide(self.optimizer, self.models)

    def failed(self, trial: Trial) -> bool:
        """Whether a trial crashed or violated a limit, known or unknown."""
        return trial.failed_under(self.optimizer.constraints)

    def failed_in(self, trial: Trial, output: str) -> bool:
        """Whether a trial failed in one output: crashed, or broke this constraint's limit."""
        if output == OBJECTIVE:
            return trial.crashed
        own = {output: trial.constraints[output]} if output in trial.constraints else {}
        return replace(trial, objective=0.0, constraints=own).failed_under(self.optimizer.constraints)

    def number(self, index: int) -> int:
        """The number of a trial, as shown to people."""
        return self.numbers[index] if self.numbers else self.trials[index].number

    def name(self, output: str) -> str:
        """The name of an output in pictures."""
        return self.objective if output == OBJECTIVE else output

    def label(self, name: str) -> str:
        """Name and unit of a parameter or an output."""
        unit = self.units.get(name, "")
        return f"{self.name(name)} [{unit}]" if unit else self.name(name)

    def acquisition(self, points: Array, params: Mapping[str, Any], shown: Sequence[str]) -> Array:
        """The score that chooses the next point, on the slice through `params`, scaled from 0 to 1 (the largest).

        If the next point lies on the slice it is included, since its peak may be too narrow for the grid.
        """
        suggestion = self.decision.suggestion
        on_slice = all(suggestion[name] == params[name] for name in self.varying if name not in shown)
        also = self.space.encode(suggestion)[None]
        return self.decision.scaled(points, also if on_slice else also[:0])

    def params_at(self, at: Mapping[str, Any] | None) -> dict[str, Any]:
        """The params of the best guess, with the given values replaced."""
        given = dict(at or {})
        unknown = [name for name in given if name not in self.space]
        if unknown:
            raise InputError(f"`at` must name parameters; got {unknown}, there are {list(self.space.names)}.")
        if len(given) == len(self.space):
            return self.space.validate(given)
        return self.space.validate({**self.best.params, **given})


if TYPE_CHECKING:
    import optuna

Source: TypeAlias = Union[Optimizer, Result, View, "optuna.Study"]


def view(
    source: Source,
    *,
    units: Mapping[str, str] | None = None,
    numbers: Sequence[int] | None = None,
    objective: str | None = None,
) -> View:
    """Return a view of an optimizer, a result of `minimize` or an Optuna study; a view is returned unchanged.

    Args:
        source: the optimizer, result or study.
        units: see `View`; like the next two, not allowed if the source is already a view.
        numbers: see `View`.
        objective: see `View`.
    """
    if isinstance(source, View):
        if (units, numbers, objective) != (None, None, None):
            raise InputError("`units`, `numbers` and `objective` must be left out with a View; it has its own.")
        return source
    pruned: tuple[int, ...] = ()
    optimizer: Any = source.optimizer if isinstance(source, Result) else source
    if type(source).__module__.startswith("optuna."):
        optimizer, pruned = crashbo.later("optimizer_and_pruned")(optimizer)
        numbers = [trial.number for trial in optimizer.trials] if numbers is None else numbers
    if not isinstance(optimizer, Optimizer):
        raise InputError(
            f"`source` must be an Optimizer, a Result, a View or an Optuna study; got {type(source).__name__}."
        )
    return View(optimizer, dict(units or {}), tuple(numbers or ()), objective or "cost", pruned)


def modelled(source: Source) -> View:
    """Return the view of a source that must have a model."""
    found = view(source)
    if not found.has_model:
        lack = "trials" if not found.trials else "parameters that vary"
        raise InputError(f"`source` must have a model to draw; got one without {lack}. Tell a trial first.")
    return found
