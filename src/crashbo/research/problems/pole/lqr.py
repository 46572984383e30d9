"""Gains from weights: the linear-quadratic regulator of a model that is wrong on purpose."""

from collections.abc import Sequence

import numpy as np
from scipy.linalg import solve_continuous_are

from crashbo.errors import InputError
from crashbo.problem.arrays import Array

# The design model, of a much shorter pole than the one on the hand:
# angle'' = 35.9062 angle - 0.58639 rate - 3.66016 u, position'' = u.
DESIGN_STATE: Array = np.array(
    [[0.0, 1.0, 0.0, 0.0], [35.9062, -0.58639, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0]]
)
DESIGN_INPUT: Array = np.array([[0.0], [-3.66016], [0.0], [1.0]])

SAFE_GAINS: Array = np.array([-34.5495, -7.0337, -1.9780, -3.7277])
"""Known to balance, and no more than that: what control falls back to. Never a data point."""


def lqr_gains(state_weights: Sequence[float] | Array, input_weight: float) -> Array:
    """Return the gains `F` of `u = -F [angle, rate, position, velocity]`, optimal for the design model.

    Math: `F = input_weight^-1 B' P` with `A'P + PA - P B input_weight^-1 B' P + diag(state_weights) = 0`

    Args:
        state_weights: four numbers > 0, on angle, rate, position and velocity.
        input_weight: > 0, on the commanded acceleration.
    """
    weights = np.asarray(state_weights, dtype=np.float64)
    if weights.shape != (4,) or not (np.isfinite(weights).all() and (weights > 0).all()):
        raise InputError(f"`state_weights` must be four finite numbers > 0; got {state_weights!r}.")
    if not (np.isfinite(input_weight) and input_weight > 0):
        raise InputError(f"`input_weight` must be a finite number > 0; got {input_weight!r}.")
    P = solve_continuous_are(DESIGN_STATE, DESIGN_INPUT, np.diag(weights), np.array([[input_weight]]))
    return np.asarray((DESIGN_INPUT.T @ P / input_weight).ravel(), dtype=np.float64)
