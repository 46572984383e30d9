"""Gains against the Riccati equation, by hand and numerically."""

import math

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from crashbo.errors import InputError
from crashbo.research.problems.pole.lqr import DESIGN_INPUT, DESIGN_STATE, SAFE_GAINS, lqr_gains

WEIGHTS = [([1.0, 1.0, 1.0, 1.0], 1.0), ([1.0, 100.0, 1.0, 1.0], 0.1), ([1e4, 1.0, 1e4, 30.0], 1e-2)]


@pytest.mark.parametrize(("weights", "input_weight"), WEIGHTS)
def test_gains_come_from_the_flow_of_the_riccati_equation(weights, input_weight):
    """Integrate P' = A'P + PA - P B B'P / r + W from 0 to its rest: no Riccati solver involved."""
    A, B, W = DESIGN_STATE, DESIGN_INPUT, np.diag(weights)

    def flow(_, flat):
        P = flat.reshape(4, 4)
        return (A.T @ P + P @ A - P @ B @ B.T @ P / input_weight + W).ravel()

    P = solve_ivp(flow, (0, 60), np.zeros(16), method="LSODA", rtol=1e-10, atol=1e-10).y[:, -1].reshape(4, 4)
    assert np.abs(flow(0, P.ravel())).max() < 1e-5 * np.abs(P).max()
    assert lqr_gains(weights, input_weight) == pytest.approx((B.T @ P / input_weight).ravel(), rel=1e-4)


@pytest.mark.parametrize(("weights", "input_weight"), WEIGHTS)
def test_gains_balance_the_design_model(weights, input_weight):
    closed = DESIGN_STATE - DESIGN_INPUT @ lqr_gains(weights, input_weight)[None]
    assert np.linalg.eigvals(closed).real.max() < -0.05


@pytest.mark.parametrize(("weights", "input_weight"), WEIGHTS)
def test_the_position_gain_is_known_in_closed_form(weights, input_weight):
    """At rest the Riccati equation leaves F_position^2 = W_position / W_u."""
    assert abs(lqr_gains(weights, input_weight)[2]) == pytest.approx(math.sqrt(weights[2] / input_weight), rel=1e-6)


def test_a_common_factor_of_all_weights_changes_nothing():
    assert lqr_gains([1, 6, 1, 1], 0.25) == pytest.approx(lqr_gains([100, 600, 100, 100], 25.0), rel=1e-7)


def test_the_safe_gains_balance_the_true_plant():
    A = np.array([[0, 1, 0, 0], [15.4084, -0.0986, 0, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    B = np.array([[0], [-1.57068], [0], [1]])
    assert np.linalg.eigvals(A - B @ SAFE_GAINS[None]).real.max() < -0.05


@pytest.mark.parametrize(
    ("weights", "input_weight", "message"),
    [
        ([1, 1, 1], 1.0, "`state_weights` must be four finite numbers > 0"),
        ([1, 1, 1, 0], 1.0, "`state_weights` must be four finite numbers > 0"),
        ([1, 1, math.nan, 1], 1.0, "`state_weights` must be four finite numbers > 0"),
        ([1, 1, 1, 1], 0.0, "`input_weight` must be a finite number > 0; got 0.0"),
        ([1, 1, 1, 1], math.inf, "`input_weight` must be a finite number > 0; got inf"),
    ],
)
def test_bad_weights_are_refused(weights, input_weight, message):
    with pytest.raises(InputError, match=message):
        lqr_gains(weights, input_weight)
