"""A saved optimizer, checked field by field before anything is made of it.

A file may be of another program, cut short, or changed by hand: the message says which field is wrong.
"""

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from crashbo.errors import InputError
from crashbo.outcome import is_number
from crashbo.space import Space

_LARGEST = 1e100
_LISTS = ("constraints", "initial_points", "trials", "pending")
_TRIAL = ("number", "params", "objective", "constraints", "reason")


def read_state(path: Path) -> Any:
    """Return the JSON of a file.

    Raises:
        InputError: if it is none.
    """
    try:
        return json.loads(path.read_bytes().decode("utf-8"))
    except (ValueError, RecursionError) as error:
        words = "it is not a text" if isinstance(error, UnicodeDecodeError) else f"it is not JSON ({error})"
        raise InputError(f"`path` must be a file written by `save`; {path} is none: {words}.") from error


def check_state(state: Mapping[str, Any]) -> None:
    """Check all that a saved optimizer knows.

    Raises:
        InputError: that names the field.
    """
    for name in _LISTS:
        if not isinstance(state.get(name), list):
            _refuse(name, "be a list", state.get(name))
    if not isinstance(state.get("space"), Mapping):
        _refuse("space", "be a saved space", state.get("space"))
    try:
        space = Space.from_json(state["space"])
    except (InputError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"`state` must be a saved optimizer; its field `space` is damaged ({error}).") from error
    _check_count("asked", state.get("asked"))
    _check_count("seed", state.get("seed"))
    constraints = [_constraint_name(i, one) for i, one in enumerate(state["constraints"])]
    for index, trial in enumerate(state["trials"]):
        _check_trial(f"trials[{index}]", trial, space, constraints)
    for index, point in enumerate(state["pending"]):
        _check_pending(f"pending[{index}]", point, space)
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


def _constraint_name(index: int, value: Any) -> str:
    if not isinstance(value, Mapping) or not isinstance(value.get("name"), str):
        _refuse(f"constraints[{index}]", "be a constraint with a name", value)
    return str(value["name"])


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
    if not is_number(value) or not math.isfinite(value) or abs(value) > _LARGEST:
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


def _check_errors(errors: Any) -> None:
    if not isinstance(errors, Mapping) or not all(isinstance(one, str) for one in errors.values()):
        _refuse("errors", "be texts by number", errors)
    for number in errors:
        if not str(number).lstrip("-").isdigit():
            _refuse("errors", "be texts by number", number)
