"""The errors that CrashBO raises. All derive from `CrashBOError`, and each also from a builtin exception."""


class CrashBOError(Exception):
    """Base class of all errors of CrashBO."""


class InputError(CrashBOError, ValueError):
    """An argument has a wrong value, shape or range."""


class NumericalError(CrashBOError, ArithmeticError):
    """The data or hyperparameters are too extreme for double precision."""


class MissingExtraError(CrashBOError, ImportError):
    """A feature needs an extra that is not installed."""
