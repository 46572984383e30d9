"""Outcomes: what a trial may end in, and the message for everything else."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest

import crashbo
from crashbo import CRASHED, VIOLATED, Constraint, Crash, CrashBOError, InputError, Trial
from crashbo.problem.outcome import Outcome, check_outcome, labelled, outcome_of, why_no_cost

REACH = [Constraint("reach")]


def test_labels_are_public_and_say_so():
    assert repr(CRASHED) == "crashbo.CRASHED"
    assert repr(VIOLATED) == "crashbo.VIOLATED"
    assert crashbo.CRASHED is CRASHED
    assert CRASHED is not VIOLATED


def test_a_crash_carries_its_reason_and_values():
    crash = Crash("fell over", reach=11.2, torque=VIOLATED)
    assert crash.reason == str(crash) == "fell over"
    assert crash.values == {"reach": 11.2, "torque": VIOLATED}
    assert Crash().reason == ""
    assert isinstance(crash, CrashBOError)
    assert isinstance(crash, RuntimeError)


def test_a_constraint_has_a_name_and_perhaps_a_limit():
    assert Constraint("reach").threshold is None
    assert Constraint("reach", 13).threshold == 13
    assert Constraint("reach", np.float64(0.5)).threshold == 0.5
    assert Constraint("reach", -1.0) == Constraint("reach", threshold=-1.0)


@pytest.mark.parametrize("name", ["", "two words", "1st", "a-b", None, 3, "objective", "params"])
def test_a_constraint_must_be_named_by_an_identifier(name):
    with pytest.raises(
        InputError, match="`name` must be an identifier other than objective, params, reason, self; got"
    ):
        Constraint(name)


@pytest.mark.parametrize("name", ["reason", "self"])
def test_a_constraint_may_not_take_the_name_of_another_argument_of_tell(name):
    with pytest.raises(InputError, match="`name` must be an identifier"):
        Constraint(name)


@pytest.mark.parametrize(
    "threshold", [math.nan, math.inf, -math.inf, "3", True, [1.0], 1j, pytest.param(10**400, id="huge-int")]
)
def test_a_known_limit_must_be_a_finite_number(threshold):
    with pytest.raises(InputError, match="`threshold` must be a finite number or None; got"):
        Constraint("reach", threshold)


def test_a_trial_knows_whether_it_crashed_or_failed():
    fine = Trial(0, {"x": 0.1}, 1.0, {"reach": 2.0})
    unsafe = Trial(1, {"x": 0.1}, 1.0, {"reach": None})
    crashed = Trial(2, {"x": 0.1}, None, {"reach": 2.0})
    assert [one.crashed for one in (fine, unsafe, crashed)] == [False, False, True]
    assert [one.failed for one in (fine, unsafe, crashed)] == [False, True, True]


@pytest.mark.parametrize(
    "value",
    [
        2,
        2.0,
        Fraction(2),
        np.float32(2.0),
        np.int64(2),
        np.array(2.0),
        np.array([2.0]),
    ],
    ids=lambda value: f"{type(value).__name__}-{getattr(value, 'dtype', '')}",
)
def test_scalars_of_any_kind_become_floats(value):
    found = check_outcome(value, {"reach": value}, REACH)
    cost, seen = found.objective, found.constraints
    assert (cost, seen) == (2.0, {"reach": 2.0})
    assert type(cost) is float
    assert type(seen["reach"]) is float


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (math.nan, "cost nan"),
        (math.inf, "cost inf"),
        (-math.inf, "cost -inf"),
        (np.float64("nan"), "cost nan"),
        (np.array([math.inf]), "cost inf"),
        (None, "no cost"),
        (1.1e100, "cost beyond 1e100"),
        (-1e101, "cost beyond 1e100"),
        pytest.param(10**400, "cost beyond 1e100", id="huge-int"),
    ],
)
def test_what_no_model_can_take_is_a_crash_or_a_violation(value, reason):
    assert check_outcome(value, {"reach": 1.0}, REACH) == Outcome(None, {"reach": 1.0}, reason)
    assert check_outcome(value, {}, REACH, "fell").reason == "fell"
    assert check_outcome(1.0, {"reach": value}, REACH) == Outcome(1.0, {"reach": None})
    assert why_no_cost(value) == reason
    assert why_no_cost(CRASHED) == ""
    assert why_no_cost(-1e100) is None


BAD = [True, np.True_, "1.0", 1j, [1.0], np.array([1.0, 2.0])]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_anything_but_a_number_is_refused(value):
    with pytest.raises(InputError, match=r"`objective` must be a number or crashbo\.CRASHED; got"):
        check_outcome(value, {"reach": 1.0}, REACH)
    with pytest.raises(InputError, match=r"`reach` must be a number or crashbo\.VIOLATED; got"):
        check_outcome(1.0, {"reach": value}, REACH)


def test_labels_belong_to_one_kind_of_output():
    with pytest.raises(InputError, match=r"`objective` must be a number or crashbo\.CRASHED; got"):
        check_outcome(VIOLATED, {"reach": 1.0}, REACH)
    with pytest.raises(InputError, match=r"`reach` must be a number or crashbo\.VIOLATED; got"):
        check_outcome(1.0, {"reach": CRASHED}, REACH)


def test_what_a_function_returns_or_raises_is_an_outcome():
    assert outcome_of({"objective": 0.5, "reach": 2}, REACH) == Outcome(0.5, {"reach": 2.0})
    assert outcome_of(Crash("fell", reach=VIOLATED), REACH) == Outcome(None, {"reach": None}, "fell")
    assert outcome_of(None, REACH) == Outcome(None, {}, "no cost")
    assert outcome_of(CRASHED, REACH) == Outcome(None, {})
    with pytest.raises(InputError, match=r"`rollout` must return 'objective' in its mapping; got \['cost'\]"):
        outcome_of({"cost": 1.0}, REACH)


def test_each_output_is_seen_or_labelled_on_its_own():
    assert check_outcome(0.73, {"reach": 11.2}, REACH) == Outcome(0.73, {"reach": 11.2})
    assert check_outcome(0.73, {"reach": VIOLATED}, REACH) == Outcome(0.73, {"reach": None})
    assert check_outcome(CRASHED, {"reach": 11.2}, REACH) == Outcome(None, {"reach": 11.2})
    assert check_outcome(CRASHED, {"reach": VIOLATED}, REACH) == Outcome(None, {"reach": None})
    assert check_outcome(CRASHED, {}, REACH) == Outcome(None, {})


def test_an_undeclared_constraint_is_refused_by_name():
    with pytest.raises(InputError, match=r"`speed` must be a declared constraint; got \['speed'\], declared: 'reach'"):
        check_outcome(1.0, {"reach": 1.0, "speed": 2.0}, REACH)
    with pytest.raises(InputError, match="declared: none"):
        check_outcome(CRASHED, {"speed": 2.0}, [])


def test_a_cost_comes_with_all_constraints():
    with pytest.raises(InputError, match=r"`reach` must be told with the objective; got nothing.*crashbo\.VIOLATED"):
        check_outcome(1.0, {}, REACH)


def test_words_of_files_are_the_labels():
    assert check_outcome("crashed", {"reach": "violated"}, REACH) == Outcome(None, {"reach": None})
    told = labelled({"reach": None, "speed": 2.0})
    assert (told, json.dumps(told)) == ({"reach": VIOLATED, "speed": 2.0}, '{"reach": "violated", "speed": 2.0}')
    assert (Outcome(1.0, {"reach": None}).status, Outcome(None).status) == ("finished", "crashed")
