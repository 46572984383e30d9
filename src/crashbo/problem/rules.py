"""Known constraints between parameters: expressions such as "batch * width <= 4096", or functions of the params.

Expressions are parsed, never evaluated as code: names of parameters, numbers, texts, arithmetic, comparisons, `and`,
`or`, `not`, `in`, and a few functions.
"""

import ast
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import InputError
from crashbo.problem.arrays import Array

Columns: TypeAlias = Mapping[str, NDArray[Any]]  # values by parameter, numbers as floats

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
    "min": lambda *values: np.minimum.reduce(np.broadcast_arrays(*values)),
    "max": lambda *values: np.maximum.reduce(np.broadcast_arrays(*values)),
    **{name: getattr(np, name) for name in ("sqrt", "exp", "log", "log2", "log10")},
}
_COMPARED: dict[type[ast.cmpop], tuple[Callable[[Any, Any], Any], ...]] = {  # with their opposites
    ast.Lt: (operator.lt, operator.ge),
    ast.LtE: (operator.le, operator.gt),
    ast.Gt: (operator.gt, operator.le),
    ast.GtE: (operator.ge, operator.lt),
    ast.Eq: (operator.eq, operator.ne),
    ast.NotEq: (operator.ne, operator.eq),
}
_LONGEST = 2000  # characters of an expression
_DEEPEST = 60  # levels of it, where a chain such as a + b - c is one


class Rule:
    """One constraint between parameters: an expression, or a function that says whether params are allowed."""

    def __init__(self, source: Any, names: Iterable[str]) -> None:
        self.source, self.names = source, tuple(names)
        if not isinstance(source, str) and not callable(source):
            raise InputError(f"`constraints` must be expressions or functions; got {source!r}.")
        self._tree = self._parsed(source) if isinstance(source, str) else None

    def __reduce__(self) -> Any:  # the tree of a long sum is too deep for pickle
        return Rule, (self.source, self.names)

    def __str__(self) -> str:
        return self.source if isinstance(self.source, str) else getattr(self.source, "__name__", repr(self.source))

    def violation(self, columns: Columns, rows: Sequence[dict[str, Any]] = ()) -> Array:
        """How far params are from satisfying it, 0 where they do; refused if that cannot be computed.

        They are given as columns, and for functions also as rows of native values.
        """
        try:
            if self._tree is None:
                return np.array([0.0 if self.source(row) else 1.0 for row in rows])
            with np.errstate(all="ignore"):
                found = np.asarray(self._distance(self._tree, True, columns), dtype=np.float64)
        except InputError:
            raise
        except Exception as error:
            words = f"{str(self)!r} is not ({type(error).__name__}: {error})"
            raise InputError(f"`constraints` must be defined everywhere in the space; {words}.") from error
        count = len(next(iter(columns.values())))
        return np.broadcast_to(np.where(np.isnan(found), 1e300, found), (count,))

    def _parsed(self, text: str) -> ast.expr:
        try:
            tree = ast.parse(text.strip(), mode="eval") if len(text) <= _LONGEST else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        if tree is None:
            raise self._refused("it cannot be read")
        level: list[ast.AST] = [tree.body]
        for _ in range(_DEEPEST):
            level = [child for node in level for child in _parts(node)]
        if level:
            raise self._refused("it is too deep")
        return tree.body

    def _refused(self, why: str) -> InputError:
        shown = self.source if len(self.source) <= 80 else self.source[:80] + "..."
        return InputError(
            f"`constraints` must be comparisons of {', '.join(self.names)}; got {shown!r}: {why}. "
            "Write it like 'a + b <= 1', or pass a function of the params."
        )

    def _distance(self, node: ast.AST, wanted: bool, columns: Columns) -> Any:
        """How far a truth value is from the one wanted."""
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return self._distance(operand, not wanted, columns)
            case ast.BoolOp(op=op, values=values):
                found = [self._distance(one, wanted, columns) for one in values]
                return _joined(found, isinstance(op, ast.And) == wanted)
            case ast.Compare(left=left, ops=ops, comparators=others):
                links = zip([left, *others], ops, others, strict=False)
                return _joined([self._gap(*link, wanted, columns) for link in links], wanted)
            case ast.Name(id=name) if name in columns:  # a choice of True and False
                return np.array([float(bool(one) != wanted) for one in columns[name].tolist()])
        raise self._refused("it is no comparison")

    def _gap(self, left: ast.AST, kind: ast.cmpop, right: ast.AST, wanted: bool, columns: Columns) -> Any:
        """How far two values are from comparing as wanted."""
        if isinstance(kind, ast.In | ast.NotIn):
            if not isinstance(right, ast.Tuple | ast.List | ast.Set):
                raise self._refused("`in` must be followed by a list")
            if not right.elts:
                raise self._refused("a list is empty")
            inside = isinstance(kind, ast.In) == wanted
            return _joined([self._gap(left, ast.Eq(), one, inside, columns) for one in right.elts], not inside)
        if type(kind) not in _COMPARED:
            raise self._refused(f"{type(kind).__name__.lower()} is not allowed")
        compare = _COMPARED[type(kind)][not wanted]
        a, b = self._value(left, columns), self._value(right, columns)
        try:
            distance = np.abs(np.subtract(a, b, dtype=np.float64))
        except (TypeError, ValueError):  # texts have no distance
            distance = 1.0
        return np.where(compare(a, b), 0.0, 1.0 if compare is operator.ne else np.maximum(distance, 1e-300))

    def _value(self, node: ast.AST, columns: Columns) -> Any:
        match node:
            case ast.Constant(value=None | bool() | int() | float() | str() as value):
                return float(value) if type(value) is int and abs(value) < 1e300 else value
            case ast.Name(id=name):
                if name not in columns:
                    raise self._refused(f"`{name}` is no parameter")
                return columns[name]
            case ast.UnaryOp(op=op, operand=operand) if type(op) in _ARITHMETIC:
                return _ARITHMETIC[type(op)](self._value(operand, columns))
            case ast.BinOp() if all(type(sign) in _ARITHMETIC for sign in _parts(node)[1::2]):
                first, *rest = _parts(node)
                total = self._value(first, columns)
                for sign, other in zip(rest[::2], rest[1::2], strict=True):
                    total = _ARITHMETIC[type(sign)](total, self._value(other, columns))
                return total
            case ast.Call(func=ast.Name(id=name), args=[_, *more] as values, keywords=[]):
                if name not in _FUNCTIONS:
                    raise self._refused(f"`{name}` is none of {', '.join(_FUNCTIONS)}")
                if more and name not in ("min", "max"):
                    raise self._refused(f"`{name}` takes one value")
                return _FUNCTIONS[name](*(self._value(one, columns) for one in values))
        raise self._refused(f"{type(node).__name__.lower()} is not allowed")


def _parts(node: ast.AST) -> list[ast.AST]:
    """What a node is made of; of a chain such as a + b - c, which Python nests to the left: a, +, b, -, c."""
    parts = list(ast.iter_child_nodes(node))
    while isinstance(node, ast.BinOp) and isinstance(parts[0], ast.BinOp):
        parts[:1] = ast.iter_child_nodes(parts[0])
    return parts


def _joined(distances: list[Any], every: bool) -> Any:
    """The distance from where all are as wanted, or from where one is."""
    return _FUNCTIONS["max" if every else "min"](*distances)
