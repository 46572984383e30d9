"""A saved optimizer, read field by field.

A file may be of another program, cut short, or changed by hand: the message says which field is wrong.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from crashbo.errors import InputError
from crashbo.problem.history import History
from crashbo.problem.options import Options, is_count
from crashbo.problem.outcome import LARGEST, Constraint, Trial, is_number
from crashbo.problem.problem import Problem
from crashbo.problem.space import Space
from crashbo.problem.suggestion import Reason, Suggestion

if TYPE_CHECKING:
    from crashbo.search.strategy import Strategy

_LISTS, _TEXTS = ("constraints", "initial_points", "trials", "pending"), ("direction", "strategy", "acquisition")
_FREE = ("initial", "given")  # the modes of suggestions that no model made
_NUMBERS = ("value", "success_probability", "expected", "expected_std", "best")


def read_history(state: Mapping[str, Any], strategy: "Strategy | None") -> History:
    """Read all that a saved optimizer knows, in today's format.

    Raises:
        InputError: that names the field.
    """
    for name in _LISTS:
        _check(name, "be a list", state.get(name), isinstance(state.get(name), list))
    problem = _problem(state, strategy)
    _check_count("asked", state.get("asked"))
    trials = tuple(_trial(f"trials[{i}]", one, problem) for i, one in enumerate(state["trials"]))
    pending = tuple(_suggestion(f"pending[{i}]", one, problem.space) for i, one in enumerate(state["pending"]))
    told, out = [trial.number for trial in trials], [one.number for one in pending]
    _check("pending", "have each number once", out, len(set(out)) == len(out))
    errors = {number: words for number, words in _errors(state.get("errors", {})).items() if number in out}
    if "numbered" in state:
        numbered = state["numbered"]
        _check_count("numbered", numbered)
        _check("trials and pending", "have each number once", out + told, len({*out, *told}) == len(out + told))
    else:  # version 0.2 counted trials and suggestions apart: trials keep their numbers, suggestions get the next ones
        first = 1 + max(told, default=-1)
        numbered = first + len(out)
        pending = tuple(Suggestion(one, first + i, one.why) for i, one in enumerate(pending))
        errors = {first + out.index(number): words for number, words in errors.items()}
    for index, params in enumerate(state["initial_points"]):
        _check_params(f"initial_points[{index}]", params, problem.space)
    history = History(problem, trials, pending, state["asked"], errors=errors, numbered=numbered)
    return reduce(History.with_initial_point, state["initial_points"], history)


def _problem(state: Mapping[str, Any], strategy: "Strategy | None") -> Problem:
    _made("space", Space.from_json, state.get("space"))
    _made("options", Options.from_json, state.get("options"))
    for name in _TEXTS:
        _check(name, "be a text", state.get(name), isinstance(state.get(name), str))
    _check_count("seed", state.get("seed"))
    for index, one in enumerate(state["constraints"]):
        _made(f"constraints[{index}]", lambda data: Constraint(**data), one)
    return Problem.from_json(state, strategy)


def _trial(field: str, data: Any, problem: Problem) -> Trial:
    trial: Trial = _made(field, lambda one: Trial(**one), data)
    _check_count(f"{field}.number", trial.number)
    _check_params(f"{field}.params", trial.params, problem.space)
    _check_value(f"{field}.objective", trial.objective)
    _check(f"{field}.constraints", "be values by name", trial.constraints, isinstance(trial.constraints, Mapping))
    names = [one.name for one in problem.constraints]
    rule = f"name constraints of the state ({', '.join(names) or 'none'})"
    for name, value in trial.constraints.items():
        _check(f"{field}.constraints", rule, name, name in names)
        _check_value(f"{field}.constraints.{name}", value)
    _check(f"{field}.reason", "be a text", trial.reason, isinstance(trial.reason, str))
    return trial


def _suggestion(field: str, data: Any, space: Space) -> Suggestion:
    right = isinstance(data, Mapping) and isinstance(data.get("why"), Mapping)
    _check(field, "have number, params and why", data, right)
    number = data.get("number")
    _check(f"{field}.number", "be an integer", number, isinstance(number, int) and not isinstance(number, bool))
    _check_params(f"{field}.params", data.get("params"), space)
    return Suggestion(data["params"], number, _reason(f"{field}.why", data["why"]))


def _reason(field: str, data: Any) -> Reason:
    """Why a point was suggested; any numbers will do, since nothing is computed from them."""
    mode = data.get("mode")
    _check(f"{field}.mode", "be a text", mode, isinstance(mode, str))
    why: Reason = _made(field, lambda one: Reason(**one), data)
    for name in _NUMBERS:
        value = getattr(why, name)
        _check(f"{field}.{name}", "be a number or null", value, value is None or is_number(value))
        needed = name in _NUMBERS[:2] and mode not in _FREE
        _check(f"{field}.{name}", f"be a number in mode {mode!r}", value, not needed or value is not None)
    _check(f"{field}.seconds", "be a number", why.seconds, is_number(why.seconds))
    for name in ("thresholds", "deviations", "relation"):
        values = getattr(why, name)
        right = isinstance(values, Mapping) and all(map(is_number, values.values()))
        _check(f"{field}.{name}", "be numbers by name", values, right)
    return why


def _errors(data: Any) -> dict[int, str]:
    right = isinstance(data, Mapping) and all(isinstance(one, str) for one in data.values())
    _check("errors", "be texts by number", data, right)
    return dict(zip(_made("errors", lambda one: [int(number) for number in one], data), data.values(), strict=True))


def _check(field: str, rule: str, value: Any, holds: bool) -> None:
    if not holds:
        shown = repr(value) if len(repr(value)) < 80 else repr(value)[:80] + "..."
        raise InputError(f"`state` must be a saved optimizer; its field `{field}` must {rule}, got {shown}.")


def _check_count(field: str, value: Any) -> None:
    _check(field, "be an integer >= 0", value, is_count(value, 0))


def _check_value(field: str, value: Any) -> None:
    right = value is None or (is_number(value) and abs(value) <= LARGEST)
    _check(field, "be a finite number or null", value, right)


def _check_params(field: str, params: Any, space: Space) -> None:
    _check(field, "be values by name", params, isinstance(params, Mapping))
    try:
        space.validate(params)
    except InputError as error:
        words = f"its field `{field}` is not in its space: {error}"
        raise InputError(f"`state` must be a saved optimizer; {words}") from error


def _made(field: str, make: Callable[[Any], Any], value: Any) -> Any:
    """What is made of a field; whatever that stumbles over, the field is named."""
    _check(field, "be values by name", value, isinstance(value, Mapping))
    try:
        return make(value)
    except (InputError, KeyError, TypeError, ValueError, AttributeError) as error:
        words = f"{error}" if isinstance(error, InputError) else f"{type(error).__name__}: {error}"
        raise InputError(f"`state` must be a saved optimizer; its field `{field}` is damaged ({words}).") from error
