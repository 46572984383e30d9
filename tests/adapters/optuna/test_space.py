"""Optuna's distributions as CrashBO parameters."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

import crashbo
from crashbo.adapters.optuna.codec import Record
from crashbo.adapters.optuna.space import declared, distribution_of, infer, parameter_of, translate

DISTRIBUTIONS: list[BaseDistribution] = [
    FloatDistribution(-1.0, 3.0),
    FloatDistribution(1e-7, 10.0, log=True),
    FloatDistribution(-10.2, 10.2, step=0.1),
    IntDistribution(-10, 10),
    IntDistribution(3, 9, step=2),
    IntDistribution(1, 1000, log=True),
    CategoricalDistribution(["a", "b", "c"]),
    CategoricalDistribution([None, True, 2, 3.5, "x"]),
    CategoricalDistribution([1, True, 1.0]),
]


def record(status: Any, number: int = 0, **space: BaseDistribution) -> Record:
    return Record(number, dict.fromkeys(space, 0.5), space, status)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@given(position=st.floats(0.0, 1.0))
def test_every_point_of_the_space_is_one_of_optunas(distribution: BaseDistribution, position: float) -> None:
    both = translate({"p": distribution})
    inner = {"p": both.space["p"].at(position)}
    outer = both.outward(inner)
    number = distribution.to_internal_repr(outer["p"])
    assert distribution._contains(number)
    assert type(outer["p"]) in (float, int, str, bool, type(None))
    stored = {"p": distribution.to_external_repr(number)}  # what comes back from a storage
    assert both.unpack(both.pack(stored)) == stored
    assert both.inward(stored) is not None
    if not isinstance(distribution, CategoricalDistribution):
        assert both.inward(stored) == inner


def test_choices_crashbo_cannot_hold_are_seen_as_texts() -> None:
    with pytest.warns(UserWarning, match="Choices for a categorical distribution"):
        layers = CategoricalDistribution([(8,), (16, 8)])
    both = translate({"layers": layers, "x": FloatDistribution(0, 1)})
    assert both.inward({"layers": (16, 8), "x": 0.5}) == {"layers": "(16, 8)", "x": 0.5}
    assert both.outward({"layers": "(16, 8)", "x": 0.5}) == {"layers": (16, 8), "x": 0.5}
    assert both.pack({"layers": (16, 8), "x": 0.5}) == {"layers": 1.0, "x": 0.5}


@pytest.mark.parametrize("params", [{}, {"p": 11.0}, {"p": "a"}, {"p": None}])
def test_params_outside_the_space_have_no_place_in_it(params: dict[str, Any]) -> None:
    assert translate({"p": FloatDistribution(0.0, 10.0)}).inward(params) is None
    assert translate({"p": CategoricalDistribution(["u", "v"])}).inward(params) is None


@pytest.mark.parametrize(
    "parameter",
    [
        crashbo.Float(0.0, 1.0),
        crashbo.Float(0.1, 1.0, log=True),
        crashbo.Float(0.0, 1.0, step=0.25),
        crashbo.Int(1, 9, step=2),
        crashbo.Int(1, 9, log=True),
        crashbo.Categorical(["a", None, 2]),
    ],
    ids=str,
)
def test_a_declared_space_comes_back(parameter: Any) -> None:
    assert parameter_of(distribution_of(parameter)) == parameter
    space = crashbo.Space({"p": parameter})
    found = declared({"crashbo:space": space.to_json()})
    assert found is not None
    assert found.distributions == {"p": distribution_of(parameter)}
    assert found.space == space
    assert declared({}) is None


class TestInference:
    A, B, C = FloatDistribution(0, 1), FloatDistribution(0, 2), IntDistribution(0, 5)

    def test_nothing_is_known_of_an_empty_study(self) -> None:
        assert infer([]) == {}
        assert infer([record("ignored")]) == {}

    def test_crashed_trials_alone_give_the_space(self) -> None:
        assert infer([record("crashed", a=self.A, c=self.C)]) == {"a": self.A, "c": self.C}

    def test_those_that_crashed_early_do_not_narrow_it(self) -> None:
        early, late = record("crashed", a=self.A), record("crashed", a=self.A, c=self.C)
        assert infer([early, late, early]) == {"a": self.A, "c": self.C}

    def test_finished_trials_decide(self) -> None:
        branches = [record("finished", a=self.A, b=self.B), record("finished", a=self.A, c=self.C)]
        assert infer([*branches, record("crashed", a=self.A, b=self.B, c=self.C)]) == {"a": self.A}

    def test_running_and_transient_trials_are_the_last_resort(self) -> None:
        assert infer([record("pending", a=self.A)]) == {"a": self.A}
        assert infer([record("pending", b=self.B), record("crashed", a=self.A)]) == {"a": self.A}

    def test_a_changed_range_is_the_newest(self) -> None:
        assert infer([record("finished", a=self.A), record("finished", 1, a=self.B)]) == {"a": self.B}

    def test_constants_and_impossible_ranges_are_left_out(self) -> None:
        huge, one = IntDistribution(0, 2**60), FloatDistribution(1.0, 1.0)
        assert infer([record("finished", a=self.A, huge=huge, one=one)]) == {"a": self.A}


def test_a_crash_before_the_last_param_gets_a_place() -> None:
    both = translate({"a": FloatDistribution(0, 1), "b": FloatDistribution(5, 6)})
    filled = both.fill({"a": 0.25, "other": 1}, number=3)
    assert filled["a"] == 0.25
    assert 5 <= filled["b"] <= 6
    assert set(filled) == {"a", "b"}
    assert filled == both.fill({"a": 0.25}, number=3) != both.fill({"a": 0.25}, number=4)
