"""What a report says, before any HTML: plain text and numbers."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crashbo.model.surrogate import Limit
from crashbo.model.words import describe_limit, describe_places
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.outcome import Trial
from crashbo.problem.parameters import Categorical, Int, Parameter
from crashbo.problem.suggestion import Suggestion
from crashbo.show.importance import Importance
from crashbo.show.views import View


@dataclass(frozen=True)
class Counts:
    """How the trials ended: with a cost, within all limits or beyond one; without a cost; stopped early."""

    succeeded: int
    violated: int
    crashed: int
    pruned: int = 0

    @property
    def total(self) -> int:
        return self.succeeded + self.violated + self.crashed + self.pruned


@dataclass(frozen=True)
class LimitLine:
    """One limit as it stands.

    Attributes:
        label: of the output, with its unit.
        known: whether it was given, not learned.
        limit: given, or learned, with its standard deviation.
        worst: the worst value seen without a failure; NaN if none was.
    """

    label: str
    known: bool
    limit: Limit
    worst: float

    @property
    def words(self) -> str:
        """The limit, and how sure it is."""
        return describe_limit(self.limit)


@dataclass(frozen=True)
class Table:
    """Rows of text under a header."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def number(value: float, digits: int = 5) -> str:
    """A number for people."""
    return "unknown" if math.isnan(value) else f"{value:.{digits}g}"


def shown(value: Any) -> str:
    """A parameter's value for people."""
    return number(value, 6) if isinstance(value, float) else str(value)


def with_unit(view: View, name: str, value: Any) -> str:
    """A value and its unit."""
    unit = view.units.get(name, "")
    return f"{shown(value)} {unit}" if unit else shown(value)


def params_text(view: View, params: Mapping[str, Any]) -> str:
    """Params in a line."""
    return ", ".join(f"{name} = {with_unit(view, name, value)}" for name, value in params.items())


def count(view: View) -> Counts:
    """Count how the trials ended."""
    tally = Counter(outcome(view, index) for index in range(len(view.trials)))
    return Counts(tally["succeeded"], tally["violated"], tally["crashed"], tally["pruned"])


def outcome(view: View, index: int) -> str:
    """What became of a trial, in a word of docs/glossary.md."""
    trial = view.trials[index]
    if view.number(index) in view.pruned:
        return "pruned"
    return "crashed" if trial.crashed else "violated" if view.failed(trial) else "succeeded"


def best_trial(view: View) -> Trial | None:
    """The best trial that did not fail; None if all did."""
    fine = [one for index, one in enumerate(view.trials) if outcome(view, index) == "succeeded"]
    return min(fine, key=lambda one: view.sign * (one.objective or 0.0)) if fine else None


def limits(view: View) -> tuple[LimitLine, ...]:
    """All limits, learned and known; one with nothing to say is absent."""
    if not view.has_model:
        return ()
    known = {one.name: one.threshold for one in view.optimizer.constraints if one.threshold is not None}
    found = []
    for name, limit in view.limits.items():
        sign = view.sign if name == OBJECTIVE else 1.0
        fine = [one.objective if name == OBJECTIVE else one.constraints.get(name) for one in view.trials]
        seen = [sign * one for one in fine if one is not None and one <= known.get(name, math.inf)]
        worst = sign * max(seen) if seen else math.nan
        found.append(LimitLine(view.label(name), name in known, limit, worst))
    return tuple(found)


def sentences(view: View, importance: Importance | None) -> list[str]:
    """The run in words."""
    counts = count(view)
    if not counts.total:
        return ["No trial has been told yet: there is nothing to report but the settings."]
    said = [_outcome(counts)]
    reasons = Counter(one.reason for one in view.trials if one.crashed)
    if any(reasons):
        told = [f"{reason or 'no reason given'} ({times})" for reason, times in reasons.most_common(6)]
        said.append(f"Reasons of the crashes: {', '.join(told)}.")
    found = best_trial(view)
    if found is not None:
        cost = with_unit(view, OBJECTIVE, found.objective)
        said.append(
            f"The best trial was number {view.number(view.trials.index(found))}, with a {view.objective} of {cost}."
        )
    if view.has_model:
        said += _limit_sentences(view)
        if view.models.relation is not None:
            said.append(view.optimizer.crash_relation)
        said += describe_places(view.models, view.space, view.optimizer.direction)
    if importance is not None and len(importance.names) > 1:
        said.append(_importance_sentence(view, importance))
    return said


def _outcome(counts: Counts) -> str:
    if counts.succeeded == counts.total:
        return f"{_times(counts.total)}, none failed."
    parts = [f"{counts.crashed} crashed"] * bool(counts.crashed)
    parts += [f"{counts.violated} violated a limit"] * bool(counts.violated)
    parts += [f"{counts.pruned} pruned"] * bool(counts.pruned)
    return f"{_times(counts.total)}: {counts.succeeded} succeeded, {' and '.join(parts)}."


def _times(count: int) -> str:
    return f"{count} trial" + "s" * (count != 1)


def _limit_sentences(view: View) -> list[str]:
    side = "above" if view.sign > 0 else "below"
    said = []
    for line in limits(view):
        if line.known:
            continue
        if line.label == view.label(OBJECTIVE):
            said.append(f"Trials seem to crash {side} a {line.label} of {line.words}.")
        else:
            said.append(f"{line.label} seems to be violated above {line.words}.")
    return said


def _importance_sentence(view: View, importance: Importance) -> str:
    success = int(importance.success.argmax())
    crashing = f"success depends most on {importance.names[success]} ({importance.success[success]:.0%})"
    if not importance.cost.any():
        return crashing[0].upper() + crashing[1:] + "."
    cost = int(importance.cost.argmax())
    sentence = (
        f"The {view.objective} depends most on {importance.names[cost]} ({importance.cost[cost]:.0%} of its variation)"
    )
    return f"{sentence}; {crashing}." if importance.success.any() else f"{sentence}."


def next_sentence(view: View, suggestion: Suggestion) -> str:
    """What would be tried next, and why."""
    return f"{params_text(view, suggestion)}: {suggestion.why}."


def space_table(view: View) -> Table:
    """The parameters."""
    rows = [(name, _range(parameter), view.units.get(name, "")) for name, parameter in view.space.items()]
    return Table(("parameter", "values", "unit"), tuple(rows))


def _range(parameter: Parameter) -> str:
    if isinstance(parameter, Categorical):
        return "one of " + ", ".join(str(choice) for choice in parameter.choices)
    kind = "whole numbers " if isinstance(parameter, Int) else ""
    step = f", step {parameter.step:g}" if parameter.step not in (None, 1) else ""
    scale = ", log scale" if parameter.log else ""
    return f"{kind}{parameter.low:g} to {parameter.high:g}{step}{scale}"


def settings_table(view: View, versions: Sequence[tuple[str, str]]) -> Table:
    """What is needed to repeat the run."""
    optimizer = view.optimizer
    told = [
        ("direction", optimizer.direction),
        ("strategy", optimizer.problem.strategy_name),
        *([("acquisition", optimizer.acquisition)] if optimizer.acquisition != "auto" else []),
        ("seed", str(optimizer.seed)),
        *((f"constraint {one.name}", _threshold(one.threshold)) for one in optimizer.constraints),
        *((f"option {name}", str(value)) for name, value in vars(optimizer.options).items()),
        *((f"version of {name}", version) for name, version in versions),
    ]
    return Table(("setting", "value"), tuple(told))


def _threshold(value: float | None) -> str:
    return "limit unknown" if value is None else f"limit {value:g}"
