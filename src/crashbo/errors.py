"""The errors CrashBO raises: one base, each child also a builtin type."""


class CrashBOError(Exception):
    """Base of every error raised on purpose by CrashBO."""


class InputError(CrashBOError, ValueError):
    """An argument breaks its rule: a value, a shape or a range."""


class NumericalError(CrashBOError, ArithmeticError):
    """The data or hyperparameters are too extreme for double precision."""


class MissingExtraError(CrashBOError, ImportError):
    """Something that an optional dependency brings was used without it."""
