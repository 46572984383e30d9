"""Checks of the user's trials: every rule has a message that names it."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crashbo import CrashBOError, InputError
from crashbo.adapters.botorch.data import as_double, check_bounds, check_trials, cost_scale
from tests.adapters.botorch.helpers import double

X = double([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
Y = double([[1.0], [2.0], [3.0]])
CRASHED = torch.tensor([False, True, False])


def test_costs_are_kept_for_stable_trials_only():
    data = check_trials(X, Y, CRASHED)
    assert data.observed.tolist() == [0, 2]
    assert data.costs.tolist() == [1.0, 3.0]
    assert data.sign.tolist() == [1.0, -1.0, 1.0]


@pytest.mark.parametrize("ignored", [math.nan, math.inf, -math.inf, 1e300])
def test_costs_of_crashed_trials_are_ignored(ignored):
    Y = double([[1.0], [ignored], [3.0]])
    assert check_trials(X, Y, CRASHED).costs.tolist() == [1.0, 3.0]


def test_without_costs_only_labels_remain():
    data = check_trials(X, None, CRASHED)
    assert data.observed.numel() == data.costs.numel() == 0
    assert data.crashed.tolist() == CRASHED.tolist()


@pytest.mark.parametrize("crashed", [[0, 1, 0], [0.0, 1.0, 0.0], np.array([False, True, False]), [False, True, False]])
def test_labels_may_be_any_array_of_truth_values(crashed):
    assert check_trials(X, Y, crashed).crashed.tolist() == CRASHED.tolist()


def test_arrays_lists_and_other_precisions_become_double():
    data = check_trials(X.float().numpy(), Y.int().tolist(), CRASHED)
    assert data.X.dtype == data.costs.dtype == torch.float64


def test_bounds_map_to_the_unit_cube():
    bounds = double([[-5.0, 0.0], [10.0, 15.0]])
    data = check_trials(double([[-5.0, 0.0], [2.5, 7.5], [10.0, 15.0]]), Y, CRASHED, bounds)
    assert data.X.tolist() == [[0.0, 0.0], [0.5, 0.5], [1.0, 1.0]]


def test_rounding_at_the_border_is_forgiven():
    data = check_trials(double([[-1e-12, 1 + 1e-12]]), double([[1.0]]), [False])
    assert data.X.tolist() == [[0.0, 1.0]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((X[0], Y, CRASHED), r"`train_X` must be n x d; got shape \(2,\)"),
        ((X[None], Y, CRASHED), r"`train_X` must be n x d; got shape \(1, 3, 2\)"),
        ((X[:0], Y[:0], CRASHED[:0]), r"`train_X` must hold at least one trial; got shape \(0, 2\)"),
        ((X[:, :0], Y, CRASHED), r"`train_X` must hold at least one trial; got shape \(3, 0\)"),
        (("abc", Y, CRASHED), r"`train_X` must be a tensor or an array of numbers; got str"),
        ((X.to(torch.complex128), Y, CRASHED), r"`train_X` must be real; got torch.complex128"),
        ((X + double([0.0, 1.0]), Y, CRASHED), r"`train_X` must lie in the unit cube.*; got 1\.2 in row 0, column 1"),
        ((-X, Y, CRASHED), r"`train_X` must lie in the unit cube.*; got -0\.1 in row 0, column 0"),
        ((X * math.nan, Y, CRASHED), r"`train_X` must be finite; got NaN or infinity"),
        ((X, Y[:, 0], CRASHED), r"`train_Y` must be 3 x 1.*; got shape \(3,\)"),
        ((X, Y.expand(3, 2), CRASHED), r"`train_Y` must be 3 x 1.*; got shape \(3, 2\)"),
        ((X, Y[:2], CRASHED), r"`train_Y` must be 3 x 1.*; got shape \(2, 1\)"),
        ((X, [["a"], ["b"], ["c"]], CRASHED), r"`train_Y` must be a tensor or an array of numbers; got list"),
        ((X, double([[1.0], [0.0], [math.nan]]), CRASHED), r"`train_Y` must be finite.*; got nan in row 2"),
        ((X, double([[math.inf], [0.0], [1.0]]), CRASHED), r"`train_Y` must be finite.*; got inf in row 0"),
        (
            (X, double([[-1e101], [0.0], [1.0]]), CRASHED),
            r"`train_Y` must be .* below 1e\+100.*; got -1e\+101 in row 0",
        ),
        ((X, Y, CRASHED[:2]), r"`crashed` must have shape \(3,\).*; got \(2,\)"),
        ((X, Y, CRASHED[:, None]), r"`crashed` must have shape \(3,\).*; got \(3, 1\)"),
        ((X, Y, torch.tensor([0, 2, 1])), r"`crashed` must be boolean; got values of torch.int64 other than 0 and 1"),
        ((X, Y, double([0.0, math.nan, 1.0])), r"`crashed` must be boolean; got values of torch.float64"),
        ((X, Y, ["yes", "no", "no"]), r"`crashed` must be .*; got"),
        ((X, Y, None), r"`crashed` must be .*; got"),
    ],
)
def test_bad_trials_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        check_trials(*arguments)


def test_points_outside_the_bounds_are_refused():
    bounds = double([[-5.0, 0.0], [10.0, 15.0]])
    trials = double([[-5.0, 0.0], [2.5, 7.5], [10.0, 15.1]])
    with pytest.raises(InputError, match=r"`train_X` must lie in `bounds`; got 15\.1 in row 2, column 1"):
        check_trials(trials, Y, CRASHED, bounds)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ([0.0, 1.0], r"`bounds` must be 2 x 2; got shape \(2,\)"),
        ([[0.0], [1.0]], r"`bounds` must be 2 x 2; got shape \(2, 1\)"),
        (
            [[0.0, 1.0], [1.0, 1.0]],
            r"`bounds` must be finite with lower < upper; got \[\[0\.0, 1\.0\], \[1\.0, 1\.0\]\]",
        ),
        ([[0.0, 0.0], [1.0, math.inf]], r"`bounds` must be finite with lower < upper; got .*inf"),
        ([[0.0, 0.0], [1.0, math.nan]], r"`bounds` must be finite with lower < upper; got .*nan"),
        ("unit", r"`bounds` must be a tensor or an array of numbers; got str"),
    ],
)
def test_bad_bounds_are_refused(bounds, message):
    with pytest.raises(InputError, match=message):
        check_bounds(bounds, 2)


def test_errors_share_a_base_and_a_builtin_type():
    with pytest.raises(ValueError) as caught:
        check_bounds([0.0], 1)
    assert isinstance(caught.value, CrashBOError)


def test_conversion_detaches():
    assert not as_double(torch.ones(1, requires_grad=True), "train_X").requires_grad


costs = st.lists(st.floats(-1e12, 1e12, allow_nan=False), min_size=1, max_size=12)


@given(costs=costs)
def test_standardised_costs_are_of_order_one(costs):
    n = len(costs)
    data = check_trials(torch.full((n, 1), 0.5), double(costs)[:, None], [False] * n)
    offset, scale = cost_scale(data)
    scaled = data.scaled(offset, scale).costs
    assert scale > 0
    assert scaled.isfinite().all()
    assert scaled.abs().max() <= math.sqrt(n) + 1e-6


@pytest.mark.parametrize(
    ("costs", "expected"),
    [
        ([], (0.0, 1.0)),
        ([0.0], (0.0, 1.0)),
        ([4.0], (4.0, 4.0)),
        ([-3.0, -3.0], (-3.0, 3.0)),
        ([1.0, 3.0], (2.0, 2**0.5)),
    ],
)
def test_scale_of_few_costs(costs, expected):
    n = len(costs) + 1
    Y = double([*costs, math.nan])[:, None]
    data = check_trials(torch.full((n, 1), 0.5), Y, [False] * (n - 1) + [True])
    assert cost_scale(data) == pytest.approx(expected)
