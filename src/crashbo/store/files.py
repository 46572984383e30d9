"""A study's definition as people write it: a YAML or JSON file, or options of the command line."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crashbo.errors import InputError
from crashbo.problem.options import Options
from crashbo.problem.outcome import Constraint
from crashbo.problem.parameters import Categorical, Float, Int, Parameter
from crashbo.problem.problem import Problem, strategy_in
from crashbo.problem.space import Space
from crashbo.store.definition import Definition

_KEYS = (
    "parameters",
    "parameter_constraints",
    "constraints",
    "direction",
    "seed",
    "strategy",
    "acquisition",
    "options",
    "units",
)
_SIZE = 1_000_000  # characters; a definition takes a few hundred


def read_definition(path: Path) -> dict[str, Any]:
    """Read a definition file as keyword arguments for `make_definition`."""
    if not path.is_file():
        what = "is a folder. Say a file in it." if path.is_dir() else "does not exist. Write it first."
        raise InputError(f"`--space` must be a file; got {path}, which {what}")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"`--space` must be a text file; {path} is not ({error.reason}).") from error
    if len(text) > _SIZE:
        raise InputError(f"`--space` must be a short text; {path} has {len(text)} characters.")
    data = _parse(path, text)
    if not isinstance(data, dict) or not isinstance(data.get("parameters"), dict):
        raise InputError(f"`{path}` must have `parameters:` with a line for each; see docs/command-line.md.")
    unknown = [key for key in data if key not in _KEYS]
    if unknown and "trials" not in data:  # an export is a definition with its trials
        raise InputError(f"`{path}` must have the keys {', '.join(_KEYS)}; got {unknown}. Remove them.")
    return {key: value for key, value in data.items() if key in _KEYS and value is not None}


def _parse(path: Path, text: str) -> Any:
    if path.suffix == ".json":
        try:
            return json.loads(text)
        except json.JSONDecodeError as error:
            raise InputError(f"`{path}` must be JSON; line {error.lineno}: {error.msg}.") from error
    import yaml

    try:
        return yaml.load(text, Loader=_loader())
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark else ""
        raise InputError(f"`{path}` must be YAML; {where}{getattr(error, 'problem', error)}.") from error


def _loader() -> Any:
    """Safe YAML without its traps: `on`, `off`, `yes`, `no` are words, 1e-3 is a number, no key counts twice."""
    import yaml

    class Loader(yaml.SafeLoader):
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
            keys = [self.construct_object(key, deep=True) for key, _ in node.value]
            twice = [key for key in keys if keys.count(key) > 1]
            if twice:
                raise yaml.constructor.ConstructorError(None, None, f"`{twice[0]}` is there twice", node.start_mark)
            return dict(super().construct_mapping(node, deep))

    kept = {"tag:yaml.org,2002:bool", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"}
    Loader.yaml_implicit_resolvers = {
        first: [(tag, rule) for tag, rule in rules if tag not in kept]
        for first, rules in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    number = re.compile(r"[-+]?(\d+\.?\d*([eE][-+]?\d+)?|\.\d+([eE][-+]?\d+)?)$")
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"(true|false|True|False)$"), list("tfTF"))
    Loader.add_implicit_resolver("tag:yaml.org,2002:float", number, list("-+.0123456789"))
    return Loader


def make_definition(
    parameters: Mapping[str, Any],
    *,
    parameter_constraints: Sequence[str] = (),
    constraints: Mapping[str, Any] | Iterable[str] = (),
    direction: str = "minimize",
    seed: int = 0,
    strategy: str | None = None,
    acquisition: str = "auto",
    options: Mapping[str, Any] | None = None,
    units: Mapping[str, str] | None = None,
) -> Definition:
    """Make a definition from plain values, as a file or a form holds them.

    Args:
        parameters: per name `{low, high, log, step, type, choices, unit}`, or [low, high], or a list of words.
        parameter_constraints: known ones between parameters, such as "kp + kd <= 1"; see `Space`.
        constraints: names, or limits by name, None where the limit is unknown; also `{threshold, unit}`.
        direction: "minimize" or "maximize".
        seed: same seed, same suggestions on one machine.
        strategy: "default" or "paper"; None: "paper" if an acquisition is named, as in files of version 0.1.
        acquisition: of the paper's strategy.
        options: of `crashbo.Options`.
        units: by name.

    Raises:
        InputError: that names the parameter or constraint.
    """
    found = {str(name): _unit(value) for name, value in parameters.items()}
    named = constraints if isinstance(constraints, Mapping) else dict.fromkeys(constraints)
    limits = {str(name): _unit(value) for name, value in named.items()}
    strategy, acquisition = strategy_in({"strategy": strategy, "acquisition": acquisition, "options": options})
    inner = {name: unit for name, (_, unit) in (found | limits).items() if unit}
    problem = Problem.of(
        Space({name: make_parameter(name, value) for name, (value, _) in found.items()}, parameter_constraints),
        constraints=[Constraint(name, _limit(name, value)) for name, (value, _) in limits.items()],
        direction=direction,
        seed=seed,
        strategy=strategy,
        acquisition=acquisition,
        options=Options.from_json(options or {}),
    )
    return Definition(problem, inner | {str(name): str(unit) for name, unit in (units or {}).items()})


def _unit(value: Any) -> tuple[Any, str]:
    """Split off the unit of an entry."""
    if not isinstance(value, Mapping):
        return value, ""
    return {key: one for key, one in value.items() if key != "unit"}, str(value.get("unit") or "")


def make_parameter(name: str, value: Any) -> Parameter:
    """Make a parameter from plain values, as a file holds them."""
    if isinstance(value, (list, tuple)):
        numbers = [one for one in value if isinstance(one, (int, float)) and not isinstance(one, bool)]
        if len(value) == 2 and len(numbers) == 2:
            return _named(name, Float, {"low": value[0], "high": value[1]})
        if numbers and len(numbers) == len(value):
            raise InputError(f"`{name}` must be [low, high]; got {list(value)}. Write choices as {{choices: [...]}}.")
        return _named(name, Categorical, {"choices": list(value)})
    if not isinstance(value, Mapping):
        raise InputError(f"`{name}` must be [low, high], a list of choices or {{low: .., high: ..}}; got {value!r}.")
    entry = dict(value)
    kind = entry.pop("type", "categorical" if "choices" in entry else "float")
    kinds: dict[str, Any] = {"float": Float, "int": Int, "categorical": Categorical}
    if kind not in kinds:
        raise InputError(f"`{name}` must be of type {', '.join(kinds)}; got {kind!r}.")
    return _named(name, kinds[kind], entry)


def _named(name: str, kind: Any, arguments: Mapping[str, Any]) -> Parameter:
    """Build a parameter; what is wrong with it is said with its name."""
    try:
        parameter: Parameter = kind(**arguments)
    except TypeError as error:
        wanted = "choices" if kind is Categorical else "low, high, log and step"
        raise InputError(f"`{name}` must have {wanted}; got {', '.join(arguments) or 'nothing'}.") from error
    except InputError as error:
        raise InputError(f"`{name}` must be a valid parameter. {error}") from error
    if isinstance(parameter, Categorical):
        return parameter
    last: Any = parameter.at(1.0)
    return replace(parameter, high=last)  # Optuna wants the range to end on the grid


def _limit(name: str, value: Any) -> float | None:
    """The known limit of a constraint, None if it is to be learned."""
    if isinstance(value, Mapping):
        if set(value) - {"threshold"}:
            raise InputError(f"`{name}` must have a threshold and a unit at most; got {sorted(value)}.")
        value = value.get("threshold")
    if value is None or (isinstance(value, (int, float)) and not isinstance(value, bool)):
        return value
    raise InputError(f"`{name}` must have a number as its limit, or none; got {value!r}.")


def to_file(definition: Definition) -> dict[str, Any]:
    """Return a definition as a file holds it; `make_definition` reads it back."""
    problem = definition.problem
    found = problem.to_json()
    return {
        "parameters": {str(one.pop("name")): one for one in found["space"]["parameters"]},
        **({"parameter_constraints": list(problem.space.constraints)} if problem.space.constraints else {}),
        "constraints": {one.name: one.threshold for one in problem.constraints},
        **{name: found[name] for name in ("direction", "seed", "strategy", "acquisition")},
        "options": problem.options.changed(),
        "units": dict(definition.units),
    }
