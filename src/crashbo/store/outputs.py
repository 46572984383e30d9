"""What a program said on its output: a cost, constraint values, a crash.

Either a line of JSON, `{"objective": 0.73, "reach": 11.2}`, the last one counts; or a last line as for
`crashbo tell`, `0.73 reach=11.2`. `{"crash": "fell"}` and `{"transient": "no connection"}` say what went wrong.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from crashbo.adapters.optuna.codec import is_violated
from crashbo.errors import InputError
from crashbo.problem.outcome import VIOLATED, is_number, why_no_cost
from crashbo.store.definition import Definition
from crashbo.store.values import parse_constraints, split_pairs


@dataclass(frozen=True)
class Said:
    """A program's own words.

    Attributes:
        objective: the cost; None if there is none.
        constraints: value or `crashbo.VIOLATED`.
        crash: the reason, if it said that it crashed, or if its cost is none (see `crashbo.problem.outcome`).
        transient: the reason, if it said that.
        problem: why no cost could be read.
    """

    objective: float | None = None
    constraints: Mapping[str, Any] = field(default_factory=dict)
    crash: str | None = None
    transient: str | None = None
    problem: str = ""


def read_output(definition: Definition, text: str) -> Said:
    """Return what an output says; never raises."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    known = {"objective", "crash", "transient", *definition.constraint_names}
    for line in reversed(lines):
        found = _object(line)
        if found is not None and known & set(found):
            return _from_json(definition, found)
    return _from_line(definition, lines[-1]) if lines else Said(problem="the program printed nothing")


def _object(line: str) -> dict[str, Any] | None:
    if not line.startswith("{"):
        return None
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _from_json(definition: Definition, found: Mapping[str, Any]) -> Said:
    try:
        seen = {name: _constraint(name, found[name]) for name in definition.constraint_names if name in found}
    except InputError as error:
        return Said(problem=str(error))
    if found.get("transient") not in (None, False):
        return Said(constraints=seen, transient=_words(found["transient"], "transient"))
    if found.get("crash") not in (None, False):
        return Said(constraints=seen, crash=_words(found["crash"], "crash"))
    if "objective" not in found:
        return Said(constraints=seen, problem="the program's JSON line has no `objective`")
    return _with_cost(found["objective"], seen)


def _words(value: Any, default: str) -> str:
    return value if isinstance(value, str) and value else default


def _constraint(name: str, value: Any) -> Any:
    if is_violated(value):
        return VIOLATED
    if not is_number(value):
        raise InputError(f"`{name}` must be a number, null or 'violated'; the program said {value!r}")
    return value


def _with_cost(value: Any, seen: Mapping[str, Any]) -> Said:
    try:
        crash = why_no_cost(value)
    except InputError:
        return Said(constraints=seen, problem=f"the cost must be a number; the program said {value!r}")
    return Said(float(value), seen) if crash is None else Said(constraints=seen, crash=crash)


def _from_line(definition: Definition, line: str) -> Said:
    words = line.split()
    plain = [word for word in words if "=" not in word]
    try:
        seen = parse_constraints(definition, split_pairs(word for word in words if "=" in word))
        cost = float(plain[0]) if len(plain) == 1 else None
    except ValueError:
        return Said(problem=_unclear(line))
    return Said(constraints=seen, problem=_unclear(line)) if cost is None else _with_cost(cost, seen)


def _unclear(line: str) -> str:
    return f"the last line of the program's output must be its cost; got {line[:100]!r}"
