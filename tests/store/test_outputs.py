"""What a program said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashbo import VIOLATED
from crashbo.store.files import make_definition
from crashbo.store.outputs import Said, read_output

DEFINITION = make_definition({"x": [0, 1]}, constraints={"reach": None})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.5 reach=2", Said(0.5, {"reach": 2.0})),
        ("noise\n\n -1e-3 reach=violated \n\n", Said(-1e-3, {"reach": VIOLATED})),
        ('{"objective": 1, "reach": null}\nbye', Said(1.0, {"reach": VIOLATED})),
        ('{"objective": 1}\n{"objective": 2}', Said(2.0)),
        ('{"step": 3}\n0.5', Said(0.5)),
        ('{"objective": 1, "crash": "fell", "reach": 2}', Said(None, {"reach": 2.0}, crash="fell")),
        ('{"crash": true}', Said(crash="crash")),
        ('{"crash": false, "objective": 1}', Said(1.0)),
        ('{"transient": "no link"}', Said(transient="no link")),
        ('{"objective": null}', Said(crash="no cost")),
        ('{"objective": NaN}', Said(crash="cost nan")),
        ("-inf", Said(crash="cost -inf")),
        ('{"objective": 1e300, "reach": 2}', Said(constraints={"reach": 2}, crash="cost beyond 1e100")),
        (
            "reach=2",
            Said(None, {"reach": 2.0}, problem="the last line of the program's output must be its cost; got 'reach=2'"),
        ),
    ],
)
def test_costs_and_crashes(text: str, said: Said) -> None:
    assert read_output(DEFINITION, text) == said


def test_a_line_without_a_cost_keeps_its_constraints() -> None:
    said = read_output(DEFINITION, "reach=2")
    assert said.constraints == {"reach": 2.0}
    assert said.problem == "the last line of the program's output must be its cost; got 'reach=2'"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cost 3",
        "3 4",
        "3 wind=1",
        "3 reach=x",
        "3 reach=1 reach=2",
        "true",
        '{"objective": true}',
        '{"objective": "3"}',
        '{"objective": 1, "reach": "far"}',
        '{"reach": 1}',
        "[1]",
        "{",
    ],
)
def test_what_cannot_be_read_has_no_cost_and_no_crash(text: str) -> None:
    said = read_output(DEFINITION, text)
    assert said.problem
    assert said.objective is None
    assert said.crash is None


@given(st.text())
def test_any_output_can_be_looked_at(text: str) -> None:
    said = read_output(DEFINITION, text)
    assert [bool(said.problem), said.objective is not None, said.crash is not None, said.transient is not None].count(
        True
    ) == 1
