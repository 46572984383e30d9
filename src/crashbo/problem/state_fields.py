"""A saved optimizer, checked field by field before anything is made of it.

A file may be of another program, cut short, or changed by hand: the message says which field is wrong.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from crashbo.errors import InputError
from crashbo.problem.options import Options
from crashbo.problem.outcome import Constraint, is_number
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Reason

_LARGEST = 1e100
_LISTS = ("constraints", "initial_points", "trials", "pending")
_TEXTS = ("direction", "strategy", "acquisition")
_TRIAL = ("number", "params", "objective", "constraints", "reason")
_REASON = tuple(one.name for one in fields(Reason))
_FREE = ("initial", "given")  # the modes of suggestions that no model made


def read_state(path: Path) -> Any:
    """Return the JSON of a file.

    Raises:
        InputError: if it is none.
    """
    if path.is_dir():
        raise InputError(f"`path` must be a file written by `save`; {path} is a folder. Say a file in it.")
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        words = "it is not a text" if isinstance(error, UnicodeDecodeError) else f"it is not JSON ({error})"
        raise InputError(f"`path` must be a file written by `save`; {path} is none: {words}.") from error


def check_state(state: Mapping[str, Any]) -> None:
    """Check all that a saved optimizer knows, in today's format.

    Raises:
        InputError: that names the field.
    """
    for name in _LISTS:
        if not isinstance(state.get(name), list):
            _refuse(name, "be a list", state.get(name))
    space: Space = _made("space", Space.from_json, state.get("space"))
    _made("options", Options.from_json, state.get("options"))
    for name in _TEXTS:
        if not isinstance(state.get(name), str):
            _refuse(name, "be a text", state.get(name))
    _check_count("asked", state.get("asked"))
    _check_count("seed", state.get("seed"))
    constraints = [_constraint_name(i, one) for i, one in enumerate(state["constraints"])]
    for index, trial in enumerate(state["trials"]):
        _check_trial(f"trials[{index}]", trial, space, constraints)
    for index, point in enumerate(state["pending"]):
        _check_pending(f"pending[{index}]", point, space)
    out = [point["number"] for point in state["pending"]]
    _check_once("pending", out)
    if "numbered" in state:  # versions before counted trials and suggestions apart
        _check_count("numbered", state["numbered"])
        _check_once("trials and pending", [*out, *(trial["number"] for trial in state["trials"])])
    for index, params in enumerate(state["initial_points"]):
        _check_params(f"initial_points[{index}]", params, space)
    _check_errors(state.get("errors", {}))


def _refuse(field: str, rule: str, value: Any) -> None:
    shown = repr(value)
    raise InputError(
        f"`state` must be a saved optimizer; its field `{field}` must {rule}, got "
        f"{shown if len(shown) < 80 else shown[:80] + '...'}."
    )


def _check_count(field: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        _refuse(field, "be an integer >= 0", value)


def _check_once(field: str, numbers: Sequence[int]) -> None:
    if len(set(numbers)) < len(numbers):
        _refuse(field, "have each number once", numbers)


def _made(field: str, make: Callable[[Any], Any], value: Any) -> Any:
    """What is made of a field; whatever that stumbles over, the field is named."""
    if not isinstance(value, Mapping):
        _refuse(field, "be values by name", value)
    try:
        return make(value)
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        words = f"{error}" if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        raise InputError(f"`state` must be a saved optimizer; its field `{field}` is damaged ({words}).") from error


def _constraint_name(index: int, value: Any) -> str:
    made: Constraint = _made(f"constraints[{index}]", lambda one: Constraint(**one), value)
    return made.name


def _check_trial(field: str, trial: Any, space: Space, constraints: Sequence[str]) -> None:
    if not isinstance(trial, Mapping) or any(name not in trial for name in _TRIAL[:3]):
        _refuse(field, f"have {', '.join(_TRIAL[:3])}", trial)
    unknown = [name for name in trial if name not in _TRIAL]
    if unknown:
        _refuse(field, f"have nothing but {', '.join(_TRIAL)}", unknown)
    _check_count(f"{field}.number", trial["number"])
    _check_params(f"{field}.params", trial["params"], space)
    _check_value(f"{field}.objective", trial["objective"])
    seen = trial.get("constraints", {})
    if not isinstance(seen, Mapping):
        _refuse(f"{field}.constraints", "be values by name", seen)
    for name, value in seen.items():
        if name not in constraints:
            _refuse(f"{field}.constraints", f"name constraints of the state ({', '.join(constraints) or 'none'})", name)
        _check_value(f"{field}.constraints.{name}", value)
    if not isinstance(trial.get("reason", ""), str):
        _refuse(f"{field}.reason", "be a text", trial["reason"])


def _check_value(field: str, value: Any) -> None:
    if value is None:
        return
    if not (is_number(value) and abs(value) <= _LARGEST):
        _refuse(field, "be a finite number or null", value)


def _check_params(field: str, params: Any, space: Space) -> None:
    if not isinstance(params, Mapping):
        _refuse(field, "be values by name", params)
    try:
        space.validate(params)
    except InputError as error:
        raise InputError(
            f"`state` must be a saved optimizer; its field `{field}` is not in its space: {error}"
        ) from error


def _check_pending(field: str, point: Any, space: Space) -> None:
    if not isinstance(point, Mapping) or not isinstance(point.get("why"), Mapping):
        _refuse(field, "have number, params and why", point)
    number = point.get("number")
    if isinstance(number, bool) or not isinstance(number, int):
        _refuse(f"{field}.number", "be an integer", number)
    _check_params(f"{field}.params", point.get("params"), space)
    _check_reason(f"{field}.why", point["why"])


def _check_reason(field: str, why: Mapping[str, Any]) -> None:
    """Check why a point was suggested; any numbers will do, since nothing is computed from them."""
    unknown = [name for name in why if name not in _REASON]
    if unknown:
        _refuse(field, f"have nothing but {', '.join(_REASON)}", unknown)
    if not isinstance(why.get("mode"), str):
        _refuse(f"{field}.mode", "be a text", why.get("mode"))
    for name in ("value", "success_probability"):
        if why.get(name) is None and why["mode"] not in _FREE:
            _refuse(f"{field}.{name}", f"be a number in mode {why['mode']!r}", None)
        if why.get(name) is not None and not is_number(why[name]):
            _refuse(f"{field}.{name}", "be a number or null", why[name])
    for name in ("expected", "expected_std", "best"):
        if why.get(name) is not None and not is_number(why[name]):
            _refuse(f"{field}.{name}", "be a number or null", why[name])
    if not is_number(why.get("seconds", 0.0)):
        _refuse(f"{field}.seconds", "be a number", why["seconds"])
    for name in ("thresholds", "deviations", "relation"):
        values = why.get(name, {})
        if not isinstance(values, Mapping) or not all(map(is_number, values.values())):
            _refuse(f"{field}.{name}", "be numbers by name", values)


def _check_errors(errors: Any) -> None:
    if not isinstance(errors, Mapping) or not all(isinstance(one, str) for one in errors.values()):
        _refuse("errors", "be texts by number", errors)
    for number in errors:
        try:
            int(number)
        except (ValueError, TypeError):
            _refuse("errors", "be texts by number", number)
