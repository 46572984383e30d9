# mypy: disable-error-code="arg-type, dict-item, list-item"
"""The refusals under test need arguments of wrong types, hence the first line."""

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crashbo.errors import InputError
from crashbo.problem.space import Categorical, Coordinates, Float, Int, Parameter, Space

UNHURRIED = settings(deadline=None)  # the first example pays for the import of scipy

finite = st.floats(-1e300, 1e300)
plain_choices = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-5, 5) | st.text(max_size=3)


def choice_key(choice: object) -> tuple[bool, object]:
    return isinstance(choice, bool), choice


@st.composite
def continuous(draw: st.DrawFn) -> Float:
    if draw(st.booleans()):
        low = draw(st.floats(5e-324, 1e300))
        high = low * draw(st.floats(1.001, 1e6))
        return Float(low, high if math.log(high) > math.log(low) else low, log=True)
    low, high = sorted((draw(finite), draw(finite)))
    return Float(low, high)


@st.composite
def stepped(draw: st.DrawFn) -> Float:
    step = draw(st.sampled_from([0.1, 0.25, 1e-3, 3.0, 1 / 3]))
    low = draw(st.sampled_from([0.0, -10.2, 0.7, 1e3]))
    return Float(low, low + draw(st.floats(0, 50)), step=step)


@st.composite
def integers(draw: st.DrawFn) -> Int:
    log = draw(st.booleans())
    low, high = sorted(draw(st.tuples(*[st.integers(1 if log else -(2**40), 2**40)] * 2)))
    return Int(low, high, log=log, step=1 if log else draw(st.integers(1, 10**6)))


categoricals = st.lists(plain_choices, min_size=1, max_size=4, unique_by=choice_key).map(Categorical)
parameters: st.SearchStrategy[Parameter] = continuous() | stepped() | integers() | categoricals
spaces = st.dictionaries(st.text(min_size=1, max_size=4), parameters, min_size=1, max_size=4).map(Space)


def value_in(parameter: Parameter) -> st.SearchStrategy[Any]:
    if isinstance(parameter, Categorical):
        return st.sampled_from(parameter.choices)
    if isinstance(parameter, Float) and parameter.step is None:
        return st.floats(parameter.low, parameter.high)
    low, step = parameter.low, parameter.step or 1
    return st.integers(0, int(parameter.size) - 1).map(lambda k: parameter.check("value", low + k * step))


@st.composite
def spaces_with_params(draw: st.DrawFn) -> tuple[Space, dict[str, Any]]:
    space = draw(spaces)
    return space, {name: draw(value_in(parameter)) for name, parameter in space.items()}


@st.composite
def spaces_with_units(draw: st.DrawFn) -> tuple[Space, np.ndarray]:
    space = draw(spaces)
    numbers = st.floats(0, 1) | st.sampled_from([0.0, 1.0, -0.5, 1.5])
    rows = draw(st.lists(st.lists(numbers, min_size=space.dimension, max_size=space.dimension), min_size=1, max_size=3))
    return space, np.array(rows).reshape(len(rows), space.dimension)


def same(parameter: Parameter, left: Any, right: Any) -> bool:
    """Equal in type and value; a continuum to within rounding."""
    if isinstance(parameter, Float) and parameter.step is None:
        ulp = math.ulp(max(abs(parameter.low), abs(parameter.high)))
        tolerance = max(2e-13 * abs(right), math.ulp(right)) if parameter.log else 4 * ulp
        return type(left) is float and abs(left - right) <= tolerance
    return type(left) is type(right) and left == right


@UNHURRIED
@given(spaces_with_params())
def test_encoding_lies_in_the_unit_cube_and_comes_back(case: tuple[Space, dict[str, Any]]) -> None:
    space, params = case
    unit = space.encode(params)
    assert unit.shape == (space.dimension,)
    assert ((unit >= 0) & (unit <= 1)).all()
    np.testing.assert_allclose(space.round(unit), unit, rtol=0, atol=1e-15)
    decoded = space.decode(unit)
    assert list(decoded) == list(space)
    assert all(same(space[name], decoded[name], params[name]) for name in space)


@UNHURRIED
@given(spaces_with_units())
def test_any_point_decodes_to_valid_params(case: tuple[Space, np.ndarray]) -> None:
    space, units = case
    rounded = space.round(units)
    assert rounded.shape == units.shape
    np.testing.assert_allclose(space.round(rounded), rounded, rtol=0, atol=1e-15)
    for unit, row in zip(units, rounded, strict=True):
        params = space.decode(unit)
        assert space.validate(params) == params
        assert all(same(space[name], space.decode(row)[name], params[name]) for name in space)
        for block in space.coordinates:
            if block.kind != "continuous":  # a range may hold too few floats to tell all positions apart
                part = slice(block.start, block.stop)
                np.testing.assert_allclose(space.encode(params)[part], row[part], rtol=0, atol=1e-15)


@UNHURRIED
@given(spaces_with_params())
def test_validated_params_are_native_and_stay_as_they_are(case: tuple[Space, dict[str, Any]]) -> None:
    space, params = case
    valid = space.validate(dict(reversed(params.items())))
    assert list(valid) == list(space)
    assert valid == params
    assert all(type(valid[name]) is type(params[name]) for name in space)


@UNHURRIED
@given(spaces)
def test_json_and_pickle_round_trips(space: Space) -> None:
    written = space.to_json()
    assert json.loads(json.dumps(written, allow_nan=False)) == written
    for copy in (Space.from_json(json.loads(json.dumps(written))), pickle.loads(pickle.dumps(space))):
        assert copy == space
        assert hash(copy) == hash(space)
        assert repr(copy) == repr(space)


@UNHURRIED
@given(spaces, st.integers(0, 5), st.integers(0, 2**32))
def test_samples_are_valid_and_repeatable(space: Space, n: int, seed: int) -> None:
    sample = space.sample(n, np.random.default_rng(seed))
    sobol = space.sobol(n, seed)
    assert len(sample) == len(sobol) == n
    assert [space.validate(params) for params in sample + sobol] == sample + sobol
    assert space.sample(n, np.random.default_rng(seed)) == sample
    assert space.sobol(n, seed) == sobol
    assert space.sobol(n + 7, seed)[:n] == sobol


@pytest.fixture
def space() -> Space:
    return Space(
        {
            "kp": (0, 10),
            "kd": Float(1e-3, 1.0, log=True),
            "order": Int(1, 4),
            "filter": Categorical(["none", None, True]),
            "fixed": Int(3, 3),
        }
    )


def test_space_reads_like_a_mapping(space: Space) -> None:
    assert space.names == tuple(space) == ("kp", "kd", "order", "filter", "fixed")
    assert len(space) == 5
    assert space["kp"] == Float(0.0, 10.0)
    assert type(space["kp"].low) is float
    assert "nope" not in space
    assert Space(space) == space
    assert eval(repr(space)) == space


def test_order_is_part_of_equality() -> None:
    assert Space({"a": (0, 1), "b": (0, 2)}) != Space({"b": (0, 2), "a": (0, 1)})
    assert Space({"a": (0, 1)}) != {"a": Float(0, 1)}


def test_choices_are_equal_only_with_their_types() -> None:
    assert Categorical([0, 1]) != Categorical([False, True])
    assert Categorical([1, True]).check("c", np.bool_(True)) is True
    assert type(Categorical([1.0, True]).check("c", 1)) is float


def test_parameters_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Float(0, 1).low = 2.0  # type: ignore[misc]


def test_encoding_by_hand(space: Space) -> None:
    unit = space.encode({"kp": 2.5, "kd": 1.0, "order": 2, "filter": None, "fixed": 3})
    np.testing.assert_allclose(unit, [0.25, 1.0, 0.375, 0, 1, 0])
    assert space.decode([0, 0, 1, 0.2, 0.1, 0.3]) == {"kp": 0.0, "kd": 1e-3, "order": 4, "filter": True, "fixed": 3}


def test_log_integers_by_hand() -> None:
    space = Space({"n": Int(1, 8, log=True)})
    assert space.encode({"n": 4})[0] == pytest.approx(math.log(4 / 0.5) / math.log(8.5 / 0.5))
    assert space.decode([0.0]) == {"n": 1}
    assert space.decode([1.0]) == {"n": 8}
    edge = math.log(4.5 / 0.5) / math.log(8.5 / 0.5)
    assert [space.decode([edge + shift])["n"] for shift in (-1e-9, 1e-9)] == [4, 5]


def test_coordinates_describe_the_encoding(space: Space) -> None:
    assert space.coordinates == (
        Coordinates("kp", Float(0, 10), 0, 1),
        Coordinates("kd", Float(1e-3, 1.0, log=True), 1, 2),
        Coordinates("order", Int(1, 4), 2, 3),
        Coordinates("filter", Categorical(["none", None, True]), 3, 6),
    )
    assert [one.kind for one in space.coordinates] == ["continuous", "continuous", "grid", "one-hot"]
    assert [one.cells for one in space.coordinates] == [0, 0, 4, 3]
    assert space.dimension == 6
    (logs,) = Space({"n": Int(2, 9, log=True)}).coordinates
    assert logs == Coordinates("n", Int(2, 9, log=True), 0, 1)
    assert (logs.kind, logs.cells) == ("log-grid", 8)


def test_round_is_vectorised_and_leaves_its_input_alone(space: Space) -> None:
    units = np.random.default_rng(0).random((4, 5, 6))
    before = units.copy()
    rounded = space.round(units)
    assert (units == before).all()
    for index in np.ndindex(4, 5):
        np.testing.assert_array_equal(rounded[index], space.round(units[index]))
        assert space.decode(units[index]) == space.decode(rounded[index])
    np.testing.assert_array_equal(rounded[..., :2], units[..., :2])
    np.testing.assert_array_equal(rounded[..., 3:].sum(-1), 1.0)
    np.testing.assert_array_equal(rounded[..., 3:].argmax(-1), units[..., 3:].argmax(-1))
    assert (np.abs(rounded[..., 2] - units[..., 2]) <= 1 / 8).all()


def test_constants_take_no_coordinate() -> None:
    space = Space({"a": Float(2, 2), "b": Int(3, 3, log=True), "c": Categorical(["only"]), "d": Float(0, 1, step=2)})
    assert space.dimension == 0
    assert space.size == 1
    assert space.decode([]) == {"a": 2.0, "b": 3, "c": "only", "d": 0.0}
    assert space.encode(space.decode([])).shape == (0,)
    assert space.round(np.empty((3, 0))).shape == (3, 0)


@pytest.mark.parametrize(
    ("parameter", "size"),
    [
        (Float(0, 1), math.inf),
        (Float(0, 1, step=0.1), 11),
        (Float(0, 1, step=0.3), 4),
        (Int(1, 8), 8),
        (Int(1, 8, step=3), 3),
        (Categorical(["a", "b"]), 2),
    ],
)
def test_size(parameter: Parameter, size: float) -> None:
    assert parameter.size == size
    assert Space({"a": parameter, "b": Int(0, 1)}).size == 2 * size


def test_stepped_floats_are_the_decimals_people_write() -> None:
    parameter = Float(0, 1, step=0.1)
    assert [parameter.at((k + 0.5) / 11) for k in range(11)] == [k / 10 for k in range(11)]
    assert parameter.check("x", 0.1 + 0.2) == 0.3


def test_numpy_scalars_become_native(space: Space) -> None:
    params = {"kp": np.float32(2.5), "kd": np.int64(1), "order": np.float64(2.0), "filter": np.str_("none"), "fixed": 3}
    valid = space.validate(params)
    assert valid == {"kp": 2.5, "kd": 1.0, "order": 2, "filter": "none", "fixed": 3}
    assert [type(value) for value in valid.values()] == [float, float, int, str, int]


def test_samples_are_uniform() -> None:
    space = Space({"x": (0, 4), "n": Int(1, 4), "c": Categorical(["a", "b"]), "k": Float(1, 100, log=True)})
    for sample in (space.sample(4096, np.random.default_rng(0)), space.sobol(4096, 0)):
        assert np.mean([params["x"] < 1 for params in sample]) == pytest.approx(0.25, abs=0.03)
        assert np.mean([params["n"] == 4 for params in sample]) == pytest.approx(0.25, abs=0.03)
        assert np.mean([params["c"] == "b" for params in sample]) == pytest.approx(0.5, abs=0.03)
        assert np.mean([params["k"] < 10 for params in sample]) == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Float("a", 1), "`low` must be a finite number; got 'a'. Pass an int or a float."),
        (lambda: Float(True, 1), "`low` must be a finite number; got True."),
        (lambda: Float(0, math.inf), "`high` must be a finite number; got inf."),
        (lambda: Float(0, 10**400), "`high` must be a finite number; got 1000"),
        (lambda: Float(2, 1), "`low` must not exceed `high`; got 2.0 and 1.0. Swap them."),
        (lambda: Float(-1e308, 1e308), "`high` - `low` must be finite; got -1e+308 and 1e+308. Narrow the range."),
        (lambda: Float(0, 1, log=True), "`low` must be positive on a log scale; got 0.0. Raise it, or drop `log`."),
        (lambda: Float(0, 1, log=1), "`log` must be True or False; got 1. Pass a bool."),
        (lambda: Float(0, 1, step=0), "`step` must be positive; got 0.0. The grid starts at `low` and goes up."),
        (lambda: Float(1, 2, log=True, step=0.1), "`step` must be left out on a log scale; got 0.1. Drop one"),
        (lambda: Float(0, 1, step=1e-300), "`step` must be at least 2**-40 of the larger bound; got 1e-300. Drop it."),
        (lambda: Float(1e9, math.nextafter(1e9, 2e9), log=True), "`high` must exceed `low` by more than rounding; got"),
        (lambda: Int(0, 1.5), "`high` must be an integer; got 1.5. Round it."),
        (lambda: Int(False, 2), "`low` must be an integer; got False. Round it."),
        (lambda: Int(2, 1), "`low` must not exceed `high`; got 2 and 1. Swap them."),
        (lambda: Int(0, 9, log=True), "`low` must be positive on a log scale; got 0."),
        (lambda: Int(1, 9, log=True, step=2), "`step` must be left out on a log scale; got 2."),
        (lambda: Int(1, 9, step=-1), "`step` must be positive; got -1."),
        (lambda: Int(0, 2**50), "`low` and `high` must lie within 2**40 of zero; got 0 and 1125899906842624."),
        (lambda: Int(0, 9, step=10**400), "`step` must not exceed 2**40."),
        (lambda: Categorical([]), "`choices` must be a list of at least one choice; got []. List the values."),
        (lambda: Categorical("abc"), "`choices` must be a list of at least one choice; got 'abc'."),
        (lambda: Categorical([[1]]), "`choices` must be None, bools, finite numbers or strings; got [1]. Name it"),
        (lambda: Categorical([math.nan]), "`choices` must be None, bools, finite numbers or strings; got nan."),
        (lambda: Categorical([1, 1.0]), "`choices` must be unique; got [1, 1.0]. Remove the repeated ones."),
        (lambda: Space({}), "`parameters` must be a dict of at least one parameter; got {}. Add one."),
        (lambda: Space([("x", (0, 1))]), "`parameters` must be a dict of at least one parameter; got [('x', (0, 1))]."),
        (lambda: Space({"": (0, 1)}), "`parameters` must be named by non-empty strings; got ''. Rename it."),
        (
            lambda: Space({"x": 3}),
            "`x` must be a Float, Int, Categorical, (low, high) or a list of choices; got 3. Use one of these.",
        ),
        (lambda: Space({"x": (1, 0)}), "`x` must be a valid range; got (1, 0). `low` must not exceed `high`;"),
        (lambda: Space.from_json({}), "`data` must be what `to_json` returns; got {}. Write it anew."),
        (
            lambda: Space.from_json({"parameters": [{"name": "x", "type": "odd"}]}),
            "`data` must be what `to_json` returns",
        ),
        (
            lambda: Space.from_json({"parameters": [{"name": "x", "type": "int", "low": 0, "high": 1}] * 2}),
            "`data` must name each parameter once; got ['x']. Remove the repeated ones.",
        ),
    ],
)
def test_construction_refuses(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        build()
    assert str(caught.value).startswith(message)


VALID = {"kp": 1.0, "kd": 0.1, "order": 2, "filter": None, "fixed": 3}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kp": "1"}, "`kp` must be a finite number; got '1'. Pass an int or a float."),
        ({"kp": math.nan}, "`kp` must be a finite number; got nan."),
        ({"kp": True}, "`kp` must be a finite number; got True."),
        ({"kp": 10.5}, "`kp` must lie in [0.0, 10.0]; got 10.5. Stay inside, or widen the space."),
        ({"order": 2.5}, "`order` must be an integer; got 2.5. Round it."),
        ({"order": True}, "`order` must be an integer; got True."),
        ({"order": 5}, "`order` must lie in [1, 4]; got 5."),
        ({"filter": 1}, "`filter` must be one of ['none', None, True]; got 1. Pick a listed choice."),
        ({"filter": []}, "`filter` must be one of ['none', None, True]; got []."),
        ({"filter": np.zeros(2)}, "`filter` must be one of ['none', None, True]; got array([0., 0.])."),
        ({"fixed": 4}, "`fixed` must lie in [3, 3]; got 4."),
    ],
)
def test_validate_refuses_values(space: Space, change: dict[str, Any], message: str) -> None:
    for refuse in (space.validate, space.encode):
        with pytest.raises(InputError) as caught:
            refuse(VALID | change)
        assert str(caught.value).startswith(message)


def test_validate_names_what_is_missing_and_unknown() -> None:
    space = Space({"a": (0, 1), "b": Float(0, 1, step=0.25), "c": Int(1, 9, step=3)})
    with pytest.raises(InputError) as caught:
        space.validate({"a": 0, "z": 1})
    assert str(caught.value) == (
        "`params` must have exactly the names ['a', 'b', 'c']; got ['a', 'z']. Add ['b', 'c']. Remove ['z']."
    )
    with pytest.raises(InputError, match=r"`params` must map parameter names to values; got \[1\]. Pass a dict."):
        space.validate([1])
    with pytest.raises(InputError, match=r"`b` must be 0.0 plus a multiple of 0.25; got 0.3. The nearest is 0.25."):
        space.validate({"a": 0, "b": 0.3, "c": 1})
    with pytest.raises(InputError, match=r"`c` must be 1 plus a multiple of 3; got 6. The nearest is 7."):
        space.validate({"a": 0, "b": 0.5, "c": 6})


def test_points_and_counts_are_checked(space: Space) -> None:
    with pytest.raises(
        InputError, match=r"`unit` must have shape \(..., 6\); got \(2,\). Give a column per coordinate."
    ):
        space.round([0, 1])
    with pytest.raises(InputError, match=r"`unit` must have shape \(6,\); got \(2, 6\). Decode row by row."):
        space.decode(np.zeros((2, 6)))
    with pytest.raises(InputError, match=r"`unit` must be finite; got NaN or infinity. Check where"):
        space.decode([math.nan] * 6)
    for draw in (lambda n: space.sample(n, np.random.default_rng(0)), lambda n: space.sobol(n, 0)):
        with pytest.raises(InputError, match=r"`n` must not be negative; got -1. Ask for at least 0 points."):
            draw(-1)
        with pytest.raises(InputError, match=r"`n` must be an integer; got 1.5. Round it."):
            draw(1.5)


def test_space_does_not_load_torch_or_scipy() -> None:
    heavy = "any(name in sys.modules for name in ('torch', 'scipy'))"
    code = f"import sys, crashbo.problem.space, crashbo.research.problems; sys.exit({heavy})"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
