"""One problem: checked once, the same after a trip through JSON."""

from dataclasses import replace

import pytest

from crashbo.errors import InputError
from crashbo.problem.options import FixedModel, Options
from crashbo.problem.outcome import Constraint
from crashbo.problem.problem import UNKNOWN_SPACE, Problem
from crashbo.problem.space import Space
from crashbo.search.default import DefaultStrategy

LINE = Space({"x": (0.0, 1.0)}, ["x <= 0.9"])
FIXED = Options(fixed={"g": FixedModel(0.2, 1.0)}, risk=0.1)


@pytest.mark.parametrize(
    "problem",
    [
        Problem(LINE),
        Problem(LINE, (Constraint("g"), Constraint("h", 2.0)), "maximize", "paper", "mes", 7, FIXED),
    ],
)
def test_a_problem_is_the_same_after_a_trip_through_json(problem: Problem) -> None:
    assert Problem.from_json(problem.to_json()) == problem
    assert Options.from_json(problem.options.changed()) == problem.options


def test_what_users_write_becomes_a_problem() -> None:
    problem = Problem.of({"x": (0.0, 1.0)}, constraints=["g"], seed=None, options=None)
    assert problem == Problem(Space({"x": (0.0, 1.0)}), (Constraint("g"),), seed=problem.seed)
    assert replace(problem, direction="maximize").seed == problem.seed
    assert (problem.sign, replace(problem, direction="maximize").sign) == (1.0, -1.0)


def test_a_problem_is_checked_when_it_is_made() -> None:
    for settings, message in (
        ({"constraints": ["x"]}, "`x` must name either a parameter or a constraint"),
        ({"direction": "down"}, "`direction` must be 'minimize' or 'maximize'"),
        ({"seed": 1.5}, "`seed` must be an integer >= 0"),
        ({"options": FIXED}, "`options.fixed` must name outputs"),
    ):
        with pytest.raises(InputError, match=message):
            Problem.of(LINE, **settings)
    with pytest.raises(InputError, match=r"`options` must be those of crashbo\.Options; got \{'speed': 7\}"):
        Options.from_json({"speed": 7})


def test_of_an_object_the_name_is_kept_and_of_an_unknown_space_nothing() -> None:
    own = Problem(UNKNOWN_SPACE, strategy=DefaultStrategy())
    stored = own.to_json()
    assert stored["strategy"] == own.strategy_name == "DefaultStrategy"
    assert Problem.from_json(stored, own.strategy) == own
    del stored["space"]
    assert Problem.from_json(stored | {"strategy": "default"}).space == UNKNOWN_SPACE
