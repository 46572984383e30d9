"""Known constraints between parameters: expressions such as "batch * width <= 4096", or functions of the params.

Expressions are parsed, never evaluated as code: names of parameters, numbers, texts, arithmetic, comparisons, `and`,
`or`, `not`, `in`, and a few functions.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
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
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
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
_COMPARED: dict[type[ast.cmpop], tuple[Callable[[Any, Any], Any], ...]] = {  # with their opposites
    ast.Lt: (operator.lt, operator.ge),
    ast.LtE: (operator.le, operator.gt),
    ast.Gt: (operator.gt, operator.le),
    ast.GtE: (operator.ge, operator.lt),
    ast.Eq: (operator.eq, operator.ne),
    ast.NotEq: (operator.ne, operator.eq),
}
_LONGEST = 1000  # characters of an expression
_DEEPEST = 60  # levels of it


class Table(NamedTuple):
    """Params, a row each: by name, with numbers as floats, and as native values, which only functions need."""

    columns: Columns
    rows: list[dict[str, Any]]


class Rule:
    """One constraint between parameters: an expression, or a function that says whether params are allowed."""

    def __init__(self, source: Any, names: Iterable[str]) -> None:
        self.source, self.names = source, tuple(names)
        if not isinstance(source, str) and not callable(source):
            raise InputError(f"`constraints` must be expressions or functions; got {source!r}.")
        self._distance = self._parsed(source) if isinstance(source, str) else None

    def __str__(self) -> str:
        return self.source if isinstance(self.source, str) else getattr(self.source, "__name__", repr(self.source))

    def violation(self, table: Table) -> Array:
        """How far each row is from satisfying it, 0 where it does; refused if that cannot be computed."""
        try:
            if self._distance is None:
                return np.array([0.0 if self.source(row) else 1.0 for row in table.rows])
            with np.errstate(all="ignore"):
                found = np.asarray(self._distance(table.columns), dtype=np.float64)
        except Exception as error:
            words = f"{str(self)!r} is not ({type(error).__name__}: {error})"
            raise InputError(f"`constraints` must be defined everywhere in the space; {words}.") from error
        count = len(next(iter(table.columns.values())))
        return np.broadcast_to(np.where(np.isnan(found), 1e300, found), (count,))

    def _parsed(self, text: str) -> _Value:
        """The expression as a function of columns."""
        try:
            tree = ast.parse(text.strip(), mode="eval") if len(text) <= _LONGEST else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        if tree is None:
            raise self._refused("it cannot be read")
        level: list[ast.AST] = [tree.body]
        for _ in range(_DEEPEST):
            level = [child for node in level for child in ast.iter_child_nodes(node)]
        if level:
            raise self._refused("it is too deep")
        return self._truth(tree.body, True)

    def _refused(self, why: str) -> InputError:
        shown = self.source if len(self.source) <= 80 else self.source[:80] + "..."
        return InputError(
            f"`constraints` must be comparisons of {', '.join(self.names)}; got {shown!r}: {why}. "
            "Write it like 'a + b <= 1', or pass a function of the params."
        )

    def _truth(self, node: ast.AST, wanted: bool) -> _Value:
        """How far a truth value is from the one wanted."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._truth(operand, not wanted)
            case ast.BoolOp(op=op, values=values):
                return _joined([self._truth(one, wanted) for one in values], isinstance(op, ast.And) == wanted)
            case ast.Compare(left=left, ops=ops, comparators=others):
                links = zip([left, *others], ops, others, strict=False)
                return _joined([self._comparison(*link, wanted) for link in links], wanted)
            case ast.Name(id=name) if name in self.names:  # a choice of True and False
                return lambda columns: np.array([float(bool(one) != wanted) for one in columns[name].tolist()])
        raise self._refused("it is no comparison")

    def _comparison(self, left: ast.AST, kind: ast.cmpop, right: ast.AST, wanted: bool) -> _Value:
        if isinstance(kind, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set):
                raise self._refused("`in` must be followed by a list")
            if not right.elts:
                raise self._refused("a list is empty")
            inside = isinstance(kind, ast.In) == wanted
            return _joined([self._comparison(left, ast.Eq(), one, inside) for one in right.elts], not inside)
        if type(kind) not in _COMPARED:
            raise self._refused(f"{type(kind).__name__.lower()} is not allowed")
        compare = _COMPARED[type(kind)][not wanted]
        first, second = self._value(left), self._value(right)

        def gap(columns: Columns) -> Any:
            a, b = first(columns), second(columns)
            holds = compare(a, b)
            try:
                distance = np.abs(np.subtract(a, b, dtype=np.float64))
            except (TypeError, ValueError):  # texts have no distance
                distance = 1.0
            return np.where(holds, 0.0, 1.0 if compare is operator.ne else np.maximum(distance, 1e-300))

        return gap

    def _value(self, node: ast.AST) -> _Value:
        parts: list[ast.expr]
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                constant = float(value) if type(value) is int and abs(value) < 1e300 else value
                return lambda columns: constant
            case ast.Name(id=name):
                if name not in self.names:
                    raise self._refused(f"`{name}` is no parameter")
                return lambda columns: columns[name]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _ARITHMETIC:
                act, parts = _ARITHMETIC[type(op)], [operand]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _ARITHMETIC:
                act, parts = _ARITHMETIC[type(op)], [left, right]
            case ast.Call(func=ast.Name(id=name), args=[_, *more] as parts, keywords=[]):
                if name not in _FUNCTIONS:
                    raise self._refused(f"`{name}` is none of {', '.join(_FUNCTIONS)}")
                if more and name not in ("min", "max"):
                    raise self._refused(f"`{name}` takes one value")
                act = _FUNCTIONS[name]
            case _:
                raise self._refused(f"{type(node).__name__.lower()} is not allowed")
        values = [self._value(one) for one in parts]
        return lambda columns: act(*(one(columns) for one in values))


def _reduced(join: np.ufunc, values: Iterable[Any]) -> Any:
    return join.reduce(np.broadcast_arrays(*values))


def _joined(parts: list[_Value], every: bool) -> _Value:
    """How far every part, or the nearest, is from what is wanted of it."""
    join = np.maximum if every else np.minimum
    return lambda columns: _reduced(join, [part(columns) for part in parts])
