"""Known constraints between parameters: expressions such as "batch * width <= 4096", or functions of the params.

Expressions are parsed, never evaluated as code: names of parameters, numbers, texts, arithmetic, comparisons, `and`,
`or`, `not`, `in`, and a few functions.
"""

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crashbo.arrays import Array
from crashbo.errors import InputError

Columns: TypeAlias = Mapping[str, NDArray[Any]]
_Value: TypeAlias = Callable[[Columns], Any]

_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: np.true_divide,
    ast.FloorDiv: np.floor_divide,
    ast.Mod: np.mod,
    ast.Pow: np.power,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "min": lambda *values: _reduced(np.minimum, values),
    "max": lambda *values: _reduced(np.maximum, values),
    "sqrt": np.sqrt,
    "exp": np.exp,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
}
_OPPOSITES = ((ast.Lt, ast.GtE), (ast.LtE, ast.Gt), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn))
_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {a: b for pair in _OPPOSITES for a, b in (pair, pair[::-1])}
_COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_LONGEST = 1000  # characters of an expression
_DEEPEST = 50  # levels of it


class Table(NamedTuple):
    """Params, a row each: by name, with numbers as floats, and as native values, which only functions need."""

    columns: Columns
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Rule:
    """One constraint between parameters."""

    source: str | Callable[[dict[str, Any]], Any]  # as the user wrote it, an expression or a function
    measure: Callable[[Table], Array]  # of a table, how far each row is from satisfying it; 0 where it does

    def __str__(self) -> str:
        return self.source if isinstance(self.source, str) else getattr(self.source, "__name__", repr(self.source))

    def violation(self, table: Table) -> Array:
        """How far each row is from satisfying it; 0 where it does.

        Raises:
            InputError: if that cannot be computed.
        """
        try:
            return self.measure(table)
        except Exception as error:
            words = f"{str(self)!r} is not ({type(error).__name__}: {error})"
            raise InputError(f"`constraints` must be defined everywhere in the space; {words}.") from error


def make_rule(source: Any, names: Any) -> Rule:
    """Make a rule from an expression, or from a function that takes params and returns whether they are allowed.

    Raises:
        InputError: if it is neither, or says something that is not allowed.
    """
    if isinstance(source, str):
        return Rule(source, _Parser(source, tuple(names)).measure())
    if not callable(source):
        raise InputError(f"`constraints` must be expressions or functions; got {source!r}.")

    return Rule(source, lambda table: np.array([0.0 if source(row) else 1.0 for row in table.rows]))


def _reduced(join: np.ufunc, values: Sequence[Any]) -> Any:
    return join.reduce(np.broadcast_arrays(*values))


class _Parser:
    """Turns one expression into a function of columns."""

    def __init__(self, text: str, names: tuple[str, ...]) -> None:
        self.text, self.names = text, names

    def measure(self) -> Callable[[Table], Array]:
        try:
            tree = ast.parse(self.text.strip(), mode="eval") if len(self.text) <= _LONGEST else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        if tree is None:
            raise self._refused("it cannot be read")
        found = self._truth(tree.body, True, 0)

        def quiet(table: Table) -> Array:
            with np.errstate(all="ignore"):
                values = np.asarray(found(table.columns), dtype=np.float64)
            count = len(next(iter(table.columns.values())))
            return np.broadcast_to(np.where(np.isnan(values), 1e300, values), (count,))

        return quiet

    def _refused(self, why: str) -> InputError:
        shown = self.text if len(self.text) <= 80 else self.text[:80] + "..."
        return InputError(
            f"`constraints` must be comparisons of {', '.join(self.names)}; got {shown!r}: {why}. "
            "Write it like 'a + b <= 1', or pass a function of the params."
        )

    def _truth(self, node: ast.AST, wanted: bool, depth: int) -> _Value:
        """How far a truth value is from the one wanted."""
        if depth > _DEEPEST:
            raise self._refused("it is too deep")
        if isinstance(node, ast.BoolOp):
            parts = [self._truth(one, wanted, depth + 1) for one in node.values]
            every = isinstance(node.op, ast.And) == wanted
            join = np.maximum if every else np.minimum
            return lambda columns: _reduced(join, [part(columns) for part in parts])
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return self._truth(node.operand, not wanted, depth + 1)
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            links = [
                self._comparison(left, kind if wanted else _OPPOSITE.get(type(kind), type(kind))(), right, depth + 1)
                for left, kind, right in zip(sides, node.ops, sides[1:], strict=False)
            ]
            join = np.maximum if wanted else np.minimum
            return lambda columns: _reduced(join, [link(columns) for link in links])
        if isinstance(node, ast.Name) and node.id in self.names:  # a choice of True and False
            return lambda columns: np.array([float(bool(one) != wanted) for one in columns[node.id].tolist()])
        raise self._refused("it is no comparison")

    def _comparison(self, left: ast.AST, kind: ast.cmpop, right: ast.AST, depth: int) -> _Value:
        if isinstance(kind, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set):
                raise self._refused("`in` must be followed by a list")
            inside = isinstance(kind, ast.In)
            same = [self._comparison(left, ast.Eq() if inside else ast.NotEq(), one, depth) for one in right.elts]
            if not same:
                raise self._refused("a list is empty")
            join = np.minimum if inside else np.maximum
            return lambda columns: _reduced(join, [one(columns) for one in same])
        compare = _COMPARED.get(type(kind))
        if compare is None:
            raise self._refused(f"{type(kind).__name__.lower()} is not allowed")
        first, second = self._value(left, depth), self._value(right, depth)

        def gap(columns: Columns) -> Any:
            a, b = first(columns), second(columns)
            holds = compare(a, b)
            try:
                distance = np.abs(np.subtract(a, b, dtype=np.float64))
            except (TypeError, ValueError):  # texts have no distance
                distance = 1.0
            return np.where(holds, 0.0, np.maximum(distance, 1e-300) if not isinstance(kind, ast.NotEq) else 1.0)

        return gap

    def _value(self, node: ast.AST, depth: int) -> _Value:
        if depth > _DEEPEST:
            raise self._refused("it is too deep")
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool | int | float | str)):
            value = float(node.value) if type(node.value) is int and abs(node.value) < 1e300 else node.value
            return lambda columns: value
        if isinstance(node, ast.Name):
            if node.id not in self.names:
                raise self._refused(f"`{node.id}` is no parameter")
            return lambda columns: columns[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            inner, sign = self._value(node.operand, depth + 1), -1.0 if isinstance(node.op, ast.USub) else 1.0
            return lambda columns: sign * inner(columns)
        if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            act = _ARITHMETIC[type(node.op)]
            left, right = self._value(node.left, depth + 1), self._value(node.right, depth + 1)
            return lambda columns: act(left(columns), right(columns))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords and node.args:
            if node.func.id not in _FUNCTIONS:
                raise self._refused(f"`{node.func.id}` is none of {', '.join(_FUNCTIONS)}")
            call, given = _FUNCTIONS[node.func.id], [self._value(one, depth + 1) for one in node.args]
            if node.func.id not in ("min", "max") and len(given) != 1:
                raise self._refused(f"`{node.func.id}` takes one value")
            return lambda columns: call(*(one(columns) for one in given))
        raise self._refused(f"{type(node).__name__.lower()} is not allowed")
