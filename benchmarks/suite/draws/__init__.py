"""Problems drawn from a distribution: `draw(number)` is the same problem on every machine.

Draws 0 to 999 are for tuning, 1000 to 1999 to decide whether a change is good, 10000 and later for the report: run
once for the state that is reported, never tuned on.
"""

from functools import lru_cache

from benchmarks.suite.draws.landscape import make_landscape
from benchmarks.suite.draws.optimum import find_optimum, holds, stored_optima
from benchmarks.suite.problem import Problem
from crashbo.errors import InputError

__all__ = ["BUDGET", "GROUP", "draw", "draw_name", "draw_number"]

BUDGET, GROUP = 50, "drawn"
_PREFIX = "draw-"


@lru_cache(maxsize=64)
def draw(number: int) -> Problem:
    """Return the problem of a number; its optimum from the file, or searched for about a second.

    Raises:
        InputError: if the number is negative, or the optimum in the file is of another version of the draws.
    """
    if number < 0:
        raise InputError(f"`number` must not be negative; got {number}. Draws start at 0.")
    landscape = make_landscape(number)
    optimum, minimiser = stored_optima().get(number) or find_optimum(landscape)
    if not holds(landscape, optimum, minimiser):
        raise InputError(
            f"`number` must be a draw whose stored optimum holds; got {number}. "
            f"Run `python -m benchmarks.suite optima --draws {number}` and the runs on it again."
        )
    return Problem(
        draw_name(number),
        GROUP,
        landscape.axes.space,
        BUDGET,
        landscape.truth,
        optimum,
        minimiser,
        noise_std=landscape.recipe.noise * landscape.spread,
        crash_rate=landscape.recipe.crash_rate,
    )


def draw_name(number: int) -> str:
    """Return the name of a draw in files and tables."""
    return f"{_PREFIX}{number}"


def draw_number(name: str) -> int | None:
    """Return the number in a draw's name; None for any other name."""
    digits = name.removeprefix(_PREFIX)
    return int(digits) if name.startswith(_PREFIX) and digits.isdigit() else None
