"""Warps of values: order, inverse, Jacobian, and their weight in the evidence."""

import numpy as np
import pytest

from crashbo.model.average import weigh_all
from crashbo.model.warp import Warp, make_warp
from tests.model.data import make_block

VALUES = np.array([0.1, 0.4, 0.5, 0.9, 3.0, 40.0])


@pytest.mark.parametrize("strength", [0.0, 1.0, 4.0])
def test_a_warp_keeps_order_and_can_be_undone(strength):
    warp = make_warp(VALUES, strength)
    z = warp(VALUES)
    assert (np.diff(z) > 0).all()
    assert z.mean() == pytest.approx(0.0, abs=1e-12)
    assert warp.undo(z) == pytest.approx(VALUES)


@pytest.mark.parametrize("strength", [0.0, 1.0, 4.0])
def test_the_jacobian_is_the_derivative(strength):
    warp, step = make_warp(VALUES, strength), 1e-6
    slopes = (warp(VALUES + step) - warp(VALUES - step)) / (2 * step)
    assert warp.log_jacobian(VALUES) == pytest.approx(np.log(slopes).sum(), abs=1e-5)


def test_what_is_low_is_left_alone():
    plain, bent = make_warp(VALUES, 0.0), make_warp(VALUES, 4.0)
    assert bent.undo_moments(bent(VALUES[:2]), np.array([0.1, 0.1]))[1] == pytest.approx(0.1 * bent.scale)
    assert np.diff(bent(VALUES[:2])) * bent.scale == pytest.approx(np.diff(plain(VALUES[:2])) * plain.scale)


def test_beyond_all_values_growth_is_linear():
    warp = make_warp(VALUES, 4.0)
    far = warp.undo(np.array([50.0, 51.0, 52.0]))
    assert np.diff(far)[0] == pytest.approx(np.diff(far)[1])
    assert np.isfinite(far).all()


def test_too_little_to_tell_what_is_usual():
    assert make_warp(VALUES[:3], 1.0) is None
    assert make_warp(np.ones(8), 1.0) is None
    assert isinstance(make_warp(np.ones(1), 0.0), Warp)


def test_the_evidence_prefers_a_warp_for_values_of_very_different_size():
    X = np.random.default_rng(0).random((20, 1))
    smooth, steep = np.sin(6 * X[:, 0]), np.exp(4 * np.sin(6 * X[:, 0]))
    weights = {}
    for name, values in (("smooth", smooth), ("steep", steep)):
        models = weigh_all(make_block(X, values, np.zeros(20, dtype=bool), margins=1))
        weights[name] = models.weights[np.array([warp.strength > 0 for warp in models.warps])].sum()
    assert weights["steep"] > 0.9
    assert weights["smooth"] < 0.5
