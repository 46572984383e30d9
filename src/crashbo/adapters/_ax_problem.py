"""An Ax experiment as CrashBO's problem: its parameters, its objective and its constraints."""

import keyword
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from crashbo.errors import InputError
from crashbo.problem.outcome import Constraint
from crashbo.problem.space import Categorical, Float, Int, Parameter, Space

_TOLERANCE = 1e-8  # of an equality, as in Ax


@dataclass(frozen=True)
class Output:
    """A weighted sum of Ax metrics: the objective, or a constraint that must stay below its threshold.

    Attributes:
        name: the constraint's in CrashBO.
        weights: of the metrics.
        threshold: None if unknown.
        sign: -1 if the metric was turned round because Ax wants it above its bound.
    """

    name: str
    weights: tuple[tuple[str, float], ...]
    threshold: float | None = None
    sign: float = 1.0

    def value(self, seen: Mapping[str, float]) -> float | None:
        """Return the sum over the metrics seen; None if one is missing, NaN if one is NaN."""
        if any(name not in seen for name, _ in self.weights):
            return None
        return math.fsum(weight * seen[name] for name, weight in self.weights)


@dataclass(frozen=True)
class Codec:
    """Params of Ax to those of CrashBO and back.

    Attributes:
        space: of CrashBO; an ordered choice is an integer there, its place in the list.
        parameters: of Ax, by name.
        derived: those of them Ax computes from the others; they are not in the space.
    """

    space: Space
    parameters: Mapping[str, Any]
    derived: tuple[str, ...]

    def encode(self, parameters: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the params in CrashBO's space; None if they lie outside."""
        try:
            return self.space.validate({name: self._place(name, parameters[name]) for name in self.space})
        except (InputError, KeyError, ValueError):
            return None

    def decode(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return params as Ax wants them, in the order of its search space."""
        known = {name: self._value(name, params[name]) for name in self.space}
        known |= {name: self.parameters[name].compute(known) for name in self.derived}
        return {name: known[name] for name in self.parameters}

    def _place(self, name: str, value: Any) -> Any:
        return self.parameters[name].values.index(value) if self._is_ordered(name) else value

    def _value(self, name: str, value: Any) -> Any:
        parameter = self.parameters[name]
        return parameter.values[value] if self._is_ordered(name) else parameter.cast(value)

    def _is_ordered(self, name: str) -> bool:
        return bool(getattr(self.parameters[name], "is_ordered", False))


@dataclass(frozen=True)
class Asked:
    """What an Ax experiment asks for.

    Attributes:
        codec: of its parameters.
        objective: its objective.
        direction: of it.
        outputs: its constraints.
    """

    codec: Codec
    objective: Output
    direction: Literal["minimize", "maximize"]
    outputs: tuple[Output, ...]


def read_problem(experiment: Any, constraints: Sequence[Constraint]) -> Asked:
    """Translate an Ax experiment.

    Args:
        experiment: of Ax, with an optimization config.
        constraints: metrics with limits, beside Ax's own outcome constraints.

    Raises:
        InputError: names what CrashBO cannot do.
    """
    config = experiment.optimization_config
    if config is None:
        raise InputError("`experiment` must have an optimization config; got none. Configure the objective first.")
    objective, direction = _objective(config.objective)
    outputs = [Output(one.name, ((one.name, 1.0),), one.threshold) for one in constraints]
    for one in config.outcome_constraints:
        outputs.append(_outcome_constraint(one, outputs))
    return Asked(_codec(experiment.search_space), objective, direction, tuple(outputs))


def _objective(objective: Any) -> tuple[Output, Literal["minimize", "maximize"]]:
    if objective.is_multi_objective:
        raise InputError(
            f"`objective` must be one expression; got {objective.expression!r}. "
            "CrashBO has no multi-objective search: weight the metrics, or constrain all but one."
        )
    if objective.is_single_objective:
        name = objective.metric_names[0]
        return Output(name, ((name, 1.0),)), "minimize" if objective.minimize else "maximize"
    return Output("objective", _weights(objective)), "maximize"  # Ax maximises its expressions


def _weights(expression: Any, sign: float = 1.0) -> tuple[tuple[str, float], ...]:
    """Weights by metric name; Ax gives them by signature, in the order of the names."""
    weights = [sign * weight for _, weight in expression.metric_weights]
    return tuple(zip(expression.metric_names, weights, strict=True))


def _outcome_constraint(constraint: Any, earlier: Sequence[Output]) -> Output:
    if constraint.relative:
        raise InputError(
            f"`outcome_constraints` must not be relative to a baseline; got {constraint.expression!r}. "
            "Write the bound as a number."
        )
    if len(constraint.metric_names) > 1:
        raise InputError(
            f"`outcome_constraints` must bound one metric each; got {constraint.expression!r}, of which Ax's storage "
            "would keep one. Report the sum as a metric of its own."
        )
    learned = [one.name for one in earlier if one.threshold is None]
    repeated = [name for name in constraint.metric_names if name in learned]
    if repeated:
        raise InputError(
            f"`constraints` must hold metrics without a known limit; got {repeated[0]!r}, "
            f"which Ax bounds by {constraint.expression!r}. Drop one of the two."
        )
    sign = 1.0 if constraint.op.name == "LEQ" else -1.0
    name = _identifier(constraint.metric_names[0], [one.name for one in earlier])
    return Output(name, _weights(constraint, sign), sign * constraint.bound, sign)


def _identifier(text: str, taken: Sequence[str]) -> str:
    """A name CrashBO's constraints may have, like the text."""
    base = re.sub(r"\W", "_", text)
    if not base.isidentifier() or base in ("objective", "params", "reason", "self"):
        base = f"metric_{base}"
    names = [base, *(f"{base}_{number}" for number in range(2, len(taken) + 3))]
    return next(name for name in names if name not in taken)


def _codec(search_space: Any) -> Codec:
    parameters = dict(search_space.parameters)
    derived = tuple(name for name, one in parameters.items() if type(one).__name__ == "DerivedParameter")
    searched = {name: _parameter(one) for name, one in parameters.items() if name not in derived}
    between = [_between(one, parameters) for one in search_space.parameter_constraints]
    return Codec(Space(searched, between), parameters, derived)


@dataclass(frozen=True, repr=False)
class _Between:
    """A constraint of Ax between parameters some of which are ordered choices, or have names no expression can hold.

    Attributes:
        weights: of the parameters.
        values: of the ordered choices, whose params in CrashBO are places in these.
        bound: of the weighted sum.
        equal: whether the sum must be the bound, not at most the bound.
    """

    weights: tuple[tuple[str, float], ...]
    values: tuple[tuple[str, tuple[float, ...]], ...]
    bound: float
    equal: bool = False

    def __call__(self, params: Mapping[str, Any]) -> bool:
        choices = dict(self.values)
        terms = [
            weight * (choices[name][params[name]] if name in choices else params[name]) for name, weight in self.weights
        ]
        gap = math.fsum(terms) - self.bound
        return abs(gap) <= _TOLERANCE if self.equal else gap <= 0

    def __repr__(self) -> str:
        return _written(self.weights, self.bound, self.equal)


def _between(constraint: Any, parameters: Mapping[str, Any]) -> str | _Between:
    """A linear constraint of Ax between parameters: an expression wherever one can say it."""
    weights = tuple((str(name), float(weight)) for name, weight in constraint.constraint_dict.items())
    bound, equal = float(constraint.bound), bool(getattr(constraint, "is_equality", False))
    floats = [name for name, _ in weights if parameters[name].parameter_type.name == "FLOAT"]
    floats = [name for name in floats if not hasattr(parameters[name], "values")]
    if equal and floats:
        raise InputError(
            f"`parameter_constraints` must be inequalities where parameters are floats; "
            f"got {_written(weights, bound, equal)!r}. Make `{floats[0]}` a derived parameter."
        )
    choices = tuple(
        (name, tuple(map(float, parameters[name].values))) for name, _ in weights if hasattr(parameters[name], "values")
    )
    plain = all(name.isidentifier() and not keyword.iskeyword(name) for name, _ in weights)
    return _written(weights, bound, equal) if plain and not choices else _Between(weights, choices, bound, equal)


def _written(weights: Sequence[tuple[str, float]], bound: float, equal: bool) -> str:
    sign = "==" if equal else "<="
    return f"{' + '.join(f'{weight!r} * {name}' for name, weight in weights)} {sign} {bound!r}"


def _parameter(parameter: Any) -> Parameter:
    """One Ax parameter; refuses kinds that change what a trial is."""
    kind = type(parameter).__name__
    flags = ("is_fidelity", "is_hierarchical", "is_task", "is_disabled", "logit_scale")
    found = [flag for flag in flags if getattr(parameter, flag, False)]
    if found:
        raise InputError(
            f"`{parameter.name}` must be a plain parameter; got one with {found[0]}. CrashBO cannot search it."
        )
    if kind == "RangeParameter" and parameter.parameter_type.name == "INT":
        return Int(parameter.lower, parameter.upper, log=bool(parameter.log_scale))
    if kind == "RangeParameter":
        return Float(parameter.lower, parameter.upper, log=bool(parameter.log_scale))
    if kind == "ChoiceParameter":
        return Int(0, len(parameter.values) - 1) if parameter.is_ordered else Categorical(list(parameter.values))
    if kind == "FixedParameter":
        return Categorical([parameter.value])
    raise InputError(f"`{parameter.name}` must be a range, a choice or a fixed parameter; got a {kind}.")
