"""Studies whose trials have different parameters: the paths through them, and where each of them leads.

Which parameters a trial has depends on the values of others, in a way that only the objective knows. It is guessed from
the trials so far: each parameter that only some trials have depends on the one other parameter whose values best tell
the trials that have it from those that do not. A guess that proves wrong changes with the next trial.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.history import place
from crashbo.adapters.optuna.space import Distributions, Translation, infer, infer_all, translate
from crashbo.errors import InputError
from crashbo.optimizer import Optimizer
from crashbo.problem.parameters import Categorical, Float, Int, Parameter
from crashbo.problem.problem import Problem
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Reason, Suggestion
from crashbo.search.gain import improvement_shape
from crashbo.search.price import budget_left

_SHORTEST, _LONGEST = 3, 10  # design of a path
Seen: TypeAlias = dict[float, bool]  # by a value in Optuna's internal representation: whether it leads there


def relative_space(records: Sequence[Record]) -> Distributions:
    """Return the parameters of all paths; those that all trials share, if there is only one path."""
    everything = infer_all(records)
    return everything if len(_groups(records, everything)) > 1 else infer(records)


def find_paths(records: Sequence[Record], distributions: Mapping[str, BaseDistribution]) -> list[Translation]:
    """Return the space of each path that trials took: its parameters, with the values that lead there.

    A choice that no trial has made may lead anywhere. Trials of other paths lie outside. Without several paths there
    are none.
    """
    groups = _groups(records, distributions)
    if len(groups) < 2:
        return []
    conditions = dict(_conditions([record for record in records if record.teaches], distributions))
    ranges = {names: infer_all(group) for names, group in sorted(groups.items())}
    return [
        _path({name: mine.get(name, distributions[name]) for name in names}, conditions)
        for names, mine in ranges.items()
    ]


def _groups(records: Sequence[Record], names: Iterable[str]) -> dict[tuple[str, ...], list[Record]]:
    """The trials that ended, by which of the parameters they had.

    One that crashed or was pruned may have ended before it came to the last ones: where others had more, it is left
    out.
    """
    groups: dict[frozenset[str], list[Record]] = {}
    for record in records:
        mine = frozenset(record.distributions).intersection(names)
        if record.teaches and mine:
            groups.setdefault(mine, []).append(record)

    def whole(mine: frozenset[str]) -> bool:
        return any(one.status == "finished" for one in groups[mine]) or not any(mine < other for other in groups)

    return {tuple(sorted(mine)): group for mine, group in groups.items() if whole(mine)}


def _conditions(records: Sequence[Record], names: Iterable[str]) -> Iterator[tuple[str, tuple[str, Seen]]]:
    """For each parameter that only some trials have: on which other it depends, and which values lead to it.

    The simplest condition that agrees with all trials: with few changes from value to value, on a choice rather than
    on a number. A parameter for which there is none is left out.
    """
    having = {name: [record for record in records if name in record.distributions] for name in sorted(names)}
    for name, mine in having.items():
        more = [on for on in having if len(having[on]) > len(mine) and all(on in one.distributions for one in mine)]
        found = [(on, _seen(name, on, having[on])) for on in more]
        ranked = [(_complexity(having[on][0].distributions[on], seen), on, seen) for on, seen in found if seen]
        if ranked:
            _, on, seen = min(ranked, key=lambda one: one[:2])
            yield name, (on, seen)


def _seen(name: str, on: str, records: Sequence[Record]) -> Seen:
    """Which values of one parameter lead to another; empty if that does not depend on this one alone."""
    found: Seen = {}
    for record in records:
        has = name in record.distributions
        value = record.distributions[on].to_internal_repr(record.params[on])
        if (has or record.status == "finished") and found.setdefault(value, has) != has:
            return {}
    return dict(sorted(found.items())) if any(found.values()) else {}


def _complexity(distribution: BaseDistribution, seen: Seen) -> tuple[int, int, int]:
    """Of a condition: changes between neighbouring values, kind of parameter, number of values."""
    values = list(seen.values())
    changes = sum(a != b for a, b in pairwise(values))
    if isinstance(distribution, CategoricalDistribution):
        return min(changes, 1), 0, len(values)
    return changes, 1 + isinstance(distribution, FloatDistribution), len(values)


def _path(names: Mapping[str, BaseDistribution], conditions: Mapping[str, tuple[str, Seen]]) -> Translation:
    """The translation for a path, its space narrowed to the values that lead to its parameters and to no others."""
    plain = translate(names)
    allowed: dict[str, Seen] = {}
    for name, (on, seen) in conditions.items():
        for value, leads in seen.items():
            mine = allowed.setdefault(on, {})
            mine[value] = mine.get(value, True) and leads == (name in names)
    narrow = {name: _narrow(one, allowed.get(name, {})) for name, one in plain.space.items()}
    return replace(plain, space=Space(narrow))


def _narrow(parameter: Parameter, allowed: Seen) -> Parameter:
    """A parameter with the values that are allowed, those next to them, and choices that were never seen."""
    good = [value for value, fine in allowed.items() if fine]
    if not good or all(allowed.values()):
        return parameter
    if isinstance(parameter, Categorical):
        return Categorical([one for index, one in enumerate(parameter.choices) if allowed.get(index, True)])
    below = [value for value, fine in allowed.items() if not fine and parameter.low <= value < min(good)]
    above = [value for value, fine in allowed.items() if not fine and max(good) < value <= parameter.high]
    bounds: dict[str, Any] = {}
    try:
        bounds |= {"low": _between(parameter, max(below), min(good))} if below else {}
        bounds |= {"high": _between(parameter, min(above), max(good))} if above else {}
        return replace(parameter, **bounds)
    except InputError:  # its range is another by now
        return parameter


def _between(parameter: Float | Int, bad: float, good: float) -> float:
    """The last value that may still be good on the way to one that is not: half-way, or on a grid next to that."""
    if isinstance(parameter, Int) or parameter.step is not None:
        steps = round(abs(good - bad) / (parameter.step or 1)) - 1
        return parameter.check("bound", good + math.copysign(steps * (parameter.step or 1), bad - good))
    return math.sqrt(bad * good) if parameter.log else (bad + good) / 2


def heard(records: Sequence[Record], translation: Translation) -> list[Record]:
    """Return the records without suggestions of which an ended trial asked for nothing: its cost says nothing there."""
    names = translation.distributions.keys()
    return [
        one if one.status == "pending" or names & one.distributions.keys() else replace(one, suggestion={})
        for one in records
    ]


def settings_for(settings: Problem, records: Sequence[Record], translation: Translation) -> Problem:
    """Return the settings for one path: a short design, since others need one too, and its share of the crash budget.

    The share is what the failed trials of other paths leave.
    """
    options, free = settings.options, len(translation.space.coordinates)
    initial = min(max(_SHORTEST, 2 * free), options.initial or _LONGEST)
    budget = options.crash_budget
    if budget is not None:
        failed = [one for one in records if one.failed_under(settings.constraints)]
        budget = max(budget - sum(place(one, translation) is None for one in failed), 0)
    return replace(settings, options=replace(options, initial=initial, crash_budget=budget))


@dataclass(frozen=True)
class Path:
    """A path, and the optimizer that knows its trials."""

    translation: Translation
    optimizer: Optimizer

    @property
    def made(self) -> float:
        """Its trials so far, those under way included, relative to those that its model needs."""
        known = self.optimizer.saved
        needed = self.optimizer.initial if self.optimizer.space.dimension else 1
        return (len(known.trials) + len(known.pending)) / needed

    @property
    def lowest(self) -> float:
        """The lowest cost of its trials that succeeded; infinity without one."""
        best = self.optimizer.best_trial
        return math.inf if best is None or best.objective is None else self.optimizer.sign * best.objective

    @property
    def open(self) -> bool:
        """Whether a trial has succeeded there, or the crash budget allows to look for one."""
        return self.lowest < math.inf or budget_left(self.optimizer.history.failed.tolist(), self.optimizer.options) > 0


def next_path(paths: Sequence[Path], ask: Callable[[Optimizer], Suggestion]) -> tuple[Path, Suggestion]:
    """Return the path that the next trial should take, and what to try there.

    Paths whose model has too few trials come first, in turn. Then it is the path whose own suggestion has the largest
    expected improvement on the best trial of all.
    """
    paths = [path for path in paths if path.open] or paths
    behind = min(paths, key=lambda path: path.made)
    lowest = min(path.lowest for path in paths)
    if behind.made < 1 or lowest == math.inf:
        return behind, ask(behind.optimizer)
    found = [(path, ask(path.optimizer)) for path in paths if path.lowest < math.inf]
    return max(found, key=lambda one: _improvement(one[0].optimizer.sign, one[1].why, lowest))


def _improvement(sign: float, why: Reason, lowest: float) -> float:
    """Expected improvement of a suggestion on a cost, times its probability to succeed."""
    if why.expected is None or not why.expected_std:
        return 0.0
    _, _, shape = improvement_shape(np.array((lowest - sign * why.expected) / why.expected_std))
    return why.expected_std * float(shape) * (why.success_probability or 0.0)
