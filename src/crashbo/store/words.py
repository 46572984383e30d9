"""Definitions in words: ranges, and what differs between two of them."""

from collections.abc import Mapping
from typing import Any

from crashbo.problem.parameters import Categorical, Int, Parameter
from crashbo.store.definition import Definition
from crashbo.store.values import short


def range_words(parameter: Parameter) -> str:
    """The values of a parameter."""
    if isinstance(parameter, Categorical):
        return "one of " + ", ".join(short(choice) for choice in parameter.choices)
    scale = ", log scale" if parameter.log else ""
    step = f", step {parameter.step:g}" if parameter.step not in (None, 1) else ""
    kind = "integers, " if isinstance(parameter, Int) else ""
    return f"{kind}{parameter.low:g} to {parameter.high:g}{scale}{step}"


def differences(wanted: Definition, found: Definition) -> list[str]:
    """What a study has otherwise than wanted, a line for each thing: "kp is 0 to 10, not 0 to 20"."""
    differing = _compared(_parts(wanted), _parts(found))
    if list(wanted.space) != list(found.space) and set(wanted.space) == set(found.space):
        differing.append(("the order of parameters", ", ".join(wanted.space), ", ".join(found.space)))
    return [_line(*one) for one in differing]


def _line(name: str, wanted: str | None, found: str | None) -> str:
    if found is None:
        return f"{name}: none here, not {wanted}"
    return f"{name} is {found}" + (", which was not said" if wanted is None else f", not {wanted}")


def changes(before: Definition, after: Definition) -> list[str]:
    """What has changed in a definition, a line for each thing: "kp: 0 to 10, now 0 to 20"."""
    lines = []
    for name, old, new in _compared(_parts(before), _parts(after)):
        was = f"; {short(after.defaults[name])} in earlier trials" if name in after.defaults and old is None else ""
        lines.append(f"{name}: {old or 'not set'}, now {new or 'not set'}{was}")
    return lines


def _compared(first: Mapping[str, str], second: Mapping[str, str]) -> list[tuple[str, str | None, str | None]]:
    """What differs between two, with both values."""
    pairs = [(name, first.get(name), second.get(name)) for name in dict.fromkeys([*second, *first])]
    return [one for one in pairs if one[1] != one[2]]


def _parts(definition: Definition) -> dict[str, str]:
    """Everything in a definition by name, in words."""
    parts = {name: range_words(parameter) for name, parameter in definition.space.items()}
    for one in definition.constraints:
        parts[f"the limit of {one.name}"] = "to be learned" if one.threshold is None else f"{one.threshold:g}"
    if definition.space.constraints:
        parts["the constraints between parameters"] = ", ".join(map(str, definition.space.constraints))
    settings: dict[str, Any] = {
        "the direction": definition.direction,
        "the seed": definition.problem.seed,
        "the strategy": definition.problem.strategy,
        **({"the acquisition": definition.problem.acquisition} if definition.problem.acquisition != "auto" else {}),
        **{name.replace("_", " "): value for name, value in definition.problem.options.changed().items()},
        **{f"the unit of {name}": unit for name, unit in definition.units.items()},
    }
    return parts | {name: str(value) for name, value in settings.items()}
