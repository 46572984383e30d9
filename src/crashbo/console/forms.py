"""What people type into the page, checked field by field. Messages stand beside the field they are about."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from crashbo.adapters.optuna.codec import is_violated
from crashbo.errors import CrashBOError, InputError
from crashbo.problem.outcome import LARGEST, VIOLATED
from crashbo.problem.parameters import Categorical, Float, Int, Parameter
from crashbo.store.definition import Definition

REASON_LIMIT, NAME_LIMIT = 1000, 60  # characters
_TEXT_LIMIT = 400  # of a number or a choice
_MISSING = object()


class FormError(CrashBOError, ValueError):
    """What was typed cannot be used.

    Attributes:
        fields: what is wrong, by field.
    """

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__(" ".join(fields.values()))
        self.fields = dict(fields)


class Form:
    """The body of a request, taken apart once; every problem found is reported, not only the first."""

    def __init__(self, body: Any, allowed: Sequence[str]) -> None:
        if not isinstance(body, dict):
            raise InputError("The request must be a JSON object.")
        unknown = [str(key)[:40] for key in body if key not in allowed]
        if unknown:
            raise InputError(f"The request must have only {', '.join(allowed)}; got {unknown[0]!r} too.")
        self._body = body
        self._wrong: dict[str, str] = {}

    def finish(self) -> None:
        """Raise what was found wrong.

        Raises:
            FormError: if anything was.
        """
        if self._wrong:
            raise FormError(self._wrong)

    def _fail(self, field: str, message: str) -> None:
        self._wrong.setdefault(field, message)

    def number(self) -> int:
        """The number of a trial."""
        value = self._body.get("number")
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31:
            raise InputError("`number` must be the number of a trial. Reload the page.")
        return value

    def version(self) -> int | None:
        """How many corrections whoever makes this one has seen; None if it is not there."""
        value = self._body.get("version")
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**31):
            raise InputError("`version` must be that of the trial as it was read. Reload the page.")
        return value

    def text(self, field: str, limit: int) -> str:
        """A short text without control characters; empty if it is not there."""
        value = self._body.get(field, "")
        if not isinstance(value, str):
            self._fail(field, "This must be a text.")
            return ""
        if len(value) > limit:
            self._fail(field, f"This must be at most {limit} characters long; it has {len(value)}. Shorten it.")
        return "".join(letter for letter in value if letter.isprintable() or letter == "\n").strip()

    def word(self, field: str, allowed: Sequence[str]) -> str:
        """One of some words."""
        value = self._body.get(field)
        if value not in allowed:
            raise InputError(f"`{field}` must be one of {', '.join(allowed)}.")
        return str(value)

    def flag(self, field: str) -> bool:
        """Yes or no; no if it is not there."""
        value = self._body.get(field, False)
        if not isinstance(value, bool):
            raise InputError(f"`{field}` must be true or false.")
        return value

    def objective(self) -> float:
        """The cost; one that is none (NaN, infinite, beyond 1e100) is a crash, see `crashbo.problem.outcome`."""
        empty = "Enter the cost. If it crashed, press CRASHED."
        return self._float("objective", self._body.get("objective"), empty, finite=False)

    def constraints(self, definition: Definition, *, all_needed: bool) -> dict[str, Any]:
        """Value or `VIOLATED` by constraint; those left empty are left out."""
        given = self._mapping("constraints", definition.constraint_names)
        found: dict[str, Any] = {}
        for name in definition.constraint_names:
            value = given.get(name)
            if value is None or value == "":
                if all_needed:
                    self._fail(f"constraint:{name}", "Enter a value, or say that it broke its limit.")
            elif is_violated(value):
                found[name] = VIOLATED
            else:
                found[name] = self._float(f"constraint:{name}", value, "", finite=False)
        return found

    def allowed_params(self, definition: Definition) -> dict[str, Any]:
        """A value for every parameter of the space; together they satisfy its constraints between parameters."""
        found = self.params(definition)
        if not any(field.startswith("param:") for field in self._wrong):
            broken = " and ".join(f"“{one}”" for one in definition.space.broken(found))
            if broken:
                self._fail(
                    "params", f"These values must satisfy the study's parameter constraints; they break {broken}."
                )
        return found

    def params(self, definition: Definition) -> dict[str, Any]:
        """A value for every parameter of the space."""
        given = self._mapping("params", definition.space.names)
        found = {}
        for name, parameter in definition.space.items():
            try:
                found[name] = parse_param(name, parameter, given.get(name, _MISSING))
            except InputError as error:
                self._fail(f"param:{name}", plain(name, error))
        return found

    def _mapping(self, field: str, allowed: Sequence[str]) -> Mapping[str, Any]:
        given = self._body.get(field) or {}
        if not isinstance(given, dict) or any(name not in allowed for name in given):
            raise InputError(f"`{field}` must have names of this study only. Reload the page.")
        return given

    def _float(self, field: str, value: Any, empty: str, *, finite: bool = True) -> float:
        try:
            return parse_number(value, empty, finite=finite)
        except InputError as error:
            self._fail(field, str(error))
            return math.nan


def parse_number(value: Any, empty: str = "", *, finite: bool = True) -> float:
    """Return the number that a text or a number stands for; a finite one, unless any will do.

    Raises:
        InputError: with a message for people.
    """
    if value is None or value == "":
        raise InputError(empty or "Enter a number.")
    text = str(value).strip() if isinstance(value, (str, int, float)) and not isinstance(value, bool) else "?"
    try:
        found = float(text) if len(text) <= _TEXT_LIMIT and "_" not in text else None
    except ValueError:
        found = None
    if found is not None and (not finite or abs(found) <= LARGEST):
        return found
    comma = " Write a point, not a comma." if text.count(",") == 1 else ""
    raise InputError(f"This must be a number, such as 0.73; got “{text[:30]}”.{comma}")


def parse_param(name: str, parameter: Parameter, value: Any) -> Any:
    """Return the value of a parameter that a text, a number or the index of a choice stands for."""
    if value is _MISSING or value is None or value == "":
        raise InputError(
            "Choose one." if isinstance(parameter, Categorical) else f"Enter a number {_range(parameter)}."
        )
    if isinstance(parameter, Categorical):
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < len(parameter.choices):
            raise InputError("Choose one of the list.")
        return parameter.choices[value]
    number = parse_number(value)
    if isinstance(parameter, Int) and not number.is_integer():
        raise InputError(f"This must be a whole number {_range(parameter)}; got {number:g}.")
    if not parameter.low <= number <= parameter.high:
        raise InputError(f"This must be a number {_range(parameter)}; got {number:g}.")
    return parameter.check(name, number)


def _range(parameter: Float | Int) -> str:
    return f"from {parameter.low:g} to {parameter.high:g}"


def plain(name: str, error: CrashBOError) -> str:
    """A message for a place beside the field, where its name stands already."""
    return str(error).replace(f"`{name}` must", "This must", 1)
