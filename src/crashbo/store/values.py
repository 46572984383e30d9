"""Values as people write them, `kp=1.5 reach=violated`, checked against a study's definition."""

import math
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from crashbo.adapters.optuna.codec import is_violated
from crashbo.errors import InputError
from crashbo.problem.outcome import LARGEST, VIOLATED
from crashbo.problem.parameters import Categorical, Int, Parameter
from crashbo.store.definition import Definition


def parse_number(name: str, text: str, hint: str = "") -> float:
    """Return the finite number that a text stands for; `hint` says what else to do."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not abs(value) <= LARGEST:
        raise InputError(f"`{name}` must be a finite number; got {text!r}.{hint and ' ' + hint}")
    return value


def parse_outcome(name: str, text: str, hint: str = "") -> float:
    """Return what a trial gave as a number; also NaN, infinity and beyond 1e100, which are crashes or violations."""
    try:
        return float(text)
    except ValueError:
        raise InputError(f"`{name}` must be a number; got {text!r}.{hint and ' ' + hint}") from None


def split_pairs(words: Iterable[str]) -> dict[str, str]:
    """Return `name=value` words as a dict; each name once."""
    pairs: dict[str, str] = {}
    for word in words:
        name, sign, text = word.partition("=")
        if not sign or not name:
            raise InputError(f"`values` must be written as name=value; got {word!r}.")
        if name in pairs:
            raise InputError(f"`{name}` must be given once; got it twice.")
        pairs[name] = text
    return pairs


def parse_constraints(definition: Definition, pairs: Mapping[str, str]) -> dict[str, Any]:
    """Return constraint values, VIOLATED where the text is `violated`."""
    unknown = [name for name in pairs if name not in definition.constraint_names]
    if unknown:
        known = ", ".join(definition.constraint_names) or "none"
        raise InputError(f"`{unknown[0]}` must be a constraint of the study; it has: {known}.")
    return {name: VIOLATED if is_violated(text) else parse_outcome(name, text) for name, text in pairs.items()}


def parse_params(definition: Definition, pairs: Mapping[str, str]) -> dict[str, Any]:
    """Return checked params of the study's space from texts."""
    read = {name: parse_value(definition.space.get(name), name, text) for name, text in pairs.items()}
    return definition.space.validate(read)


def parse_value(parameter: Parameter | None, name: str, text: str) -> Any:
    """Return the value of a parameter that a text stands for, not checked yet; of an unknown one the text."""
    if isinstance(parameter, Categorical):
        return next((choice for choice in parameter.choices if show(choice) == text), text)
    if isinstance(parameter, Int) and text.lstrip("+-").isdigit():
        return int(text)
    return parse_number(name, text) if parameter is not None else text


def split_words(definition: Definition, words: Sequence[str]) -> tuple[list[str], dict[str, str], dict[str, str]]:
    """Sort words into plain ones, params and the rest, which should be constraints."""
    plain = [word for word in words if "=" not in word]
    pairs = split_pairs(word for word in words if "=" in word)
    params = {name: text for name, text in pairs.items() if name in definition.space}
    return plain, params, {name: text for name, text in pairs.items() if name not in params}


def show(value: Any) -> str:
    """A parameter's value as a program reads it: numbers to the last digit, true, false and null as in JSON."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return repr(value) if isinstance(value, float) else str(value)


def visible(text: str) -> str:
    """A text in one line that does nothing to a terminal: control characters are written as escapes."""
    return "".join(
        one if one.isprintable() or unicodedata.category(one) == "Zs" else one.encode("unicode_escape").decode()
        for one in text
    )


def short(value: Any) -> str:
    """A value for people: numbers to five digits."""
    return f"{value:.5g}" if isinstance(value, float) else show(value)


def sentence(params: Mapping[str, Any]) -> str:
    """Params for people, in one line."""
    return ", ".join(f"{name} = {short(value)}" for name, value in params.items())
