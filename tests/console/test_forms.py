"""What people type is checked field by field."""

from typing import Any

import pytest

from crashbo.console.forms import Form, FormError, parse_number, parse_param
from crashbo.errors import InputError
from crashbo.problem.outcome import VIOLATED
from crashbo.problem.parameters import Categorical, Float, Int
from crashbo.store.files import make_definition

DEFINITION = make_definition(
    {"kp": [0, 10], "order": {"low": 1, "high": 8, "type": "int"}, "filter": ["none", "butter"]},
    constraints=["reach", "heat"],
)
GOOD = {"kp": "2.5", "order": 3, "filter": 1}


def form(**body: Any) -> Form:
    return Form(body, ("number", "objective", "constraints", "params", "reason", "status"))


@pytest.mark.parametrize(("text", "value"), [("0.73", 0.73), (" -1e-3 ", -1e-3), (2, 2.0), ("5", 5.0)])
def test_numbers_are_read_as_people_write_them(text: Any, value: float) -> None:
    assert parse_number(text) == value


@pytest.mark.parametrize("text", ["", None])
def test_an_empty_number_is_asked_for(text: Any) -> None:
    with pytest.raises(InputError, match="Enter the cost"):
        parse_number(text, "Enter the cost.")


@pytest.mark.parametrize("text", ["abc", "nan", "inf", "1e400", "1e101", "1_000", True, [1], "9" * 500])
def test_what_is_no_finite_number_is_refused(text: Any) -> None:
    with pytest.raises(InputError, match="must be a number, such as"):
        parse_number(text)


def test_a_comma_is_explained() -> None:
    with pytest.raises(InputError, match="Write a point, not a comma"):
        parse_number("0,73")


@pytest.mark.parametrize(
    ("parameter", "value", "words"),
    [
        (Float(0, 10), "12", "from 0 to 10; got 12"),
        (Float(0, 1, step=0.25), "0.3", "nearest is 0.25"),
        (Int(1, 8), "2.5", "whole number from 1 to 8"),
        (Int(1, 8), "9", "from 1 to 8"),
        (Float(0, 10), "", "Enter a number from 0 to 10"),
        (Categorical(["a", "b"]), 2, "of the list"),
        (Categorical(["a", "b"]), True, "of the list"),
        (Categorical(["a", "b"]), "a", "of the list"),
        (Categorical(["a", "b"]), None, "Choose one"),
    ],
)
def test_params_outside_the_space_are_refused(parameter: Any, value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_param("kp", parameter, value)


def test_params_are_read_in_the_order_of_the_space() -> None:
    found = form(params=GOOD).params(DEFINITION)
    assert found == {"kp": 2.5, "order": 3, "filter": "butter"}
    assert list(found) == ["kp", "order", "filter"]
    assert type(found["order"]) is int


def test_every_wrong_field_is_named_at_once() -> None:
    wrong = form(objective="x", constraints={"reach": "y"}, params=GOOD | {"kp": 11, "order": ""})
    wrong.params(DEFINITION)
    wrong.objective()
    wrong.constraints(DEFINITION, all_needed=True)
    with pytest.raises(FormError) as caught:
        wrong.finish()
    assert set(caught.value.fields) == {"param:kp", "param:order", "objective", "constraint:reach", "constraint:heat"}
    assert "`" not in caught.value.fields["param:kp"]


def test_constraints_may_be_violated_and_after_a_crash_missing() -> None:
    one = form(constraints={"reach": "violated", "heat": ""})
    assert one.constraints(DEFINITION, all_needed=False) == {"reach": VIOLATED}
    one.finish()


@pytest.mark.parametrize("number", [None, -1, True, 1.0, "1", 2**31])
def test_a_trial_has_a_number(number: Any) -> None:
    with pytest.raises(InputError, match="number of a trial"):
        form(number=number).number()


def test_texts_are_cut_off_at_no_length_but_refused() -> None:
    one = form(reason="x" * 21)
    one.text("reason", 20)
    with pytest.raises(FormError, match="at most 20 characters long; it has 21"):
        one.finish()


def test_control_characters_are_dropped() -> None:
    assert form(reason="\x00fe\x1b[31mll \u202e\n").text("reason", 50) == "fe[31mll"


@pytest.mark.parametrize("body", [[], "x", 1, None])
def test_a_body_is_an_object(body: Any) -> None:
    with pytest.raises(InputError, match="JSON object"):
        Form(body, ("number",))


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InputError, match="only number; got 'path'"):
        Form({"path": "/etc/passwd"}, ("number",))
    with pytest.raises(InputError, match="names of this study"):
        form(params={"kp": 1, "other": 2}).params(DEFINITION)
    with pytest.raises(InputError, match="names of this study"):
        form(constraints=["reach"]).constraints(DEFINITION, all_needed=False)
    with pytest.raises(InputError, match="one of finished, crashed"):
        form(status=["finished"]).word("status", ("finished", "crashed"))
