"""Climbing from several points at once: known peaks, faces, kinks, scores that do not exist."""

import numpy as np
import pytest
from scipy.optimize import minimize

from crashbo.acquisition.ascent import ascend

RNG = np.random.default_rng(0)


def quadratic(centre: np.ndarray, curvature: np.ndarray):
    """A concave parabola, its axes not the coordinates'."""

    def steps(x):
        away = x - centre
        bent = away @ curvature
        return -0.5 * (away * bent).sum(-1), -bent

    return steps


def valley(x):
    """Rosenbrock's, upside down, its top at (0.75, 0.75)."""
    a, b = 4 * x[:, 0] - 2, 4 * x[:, 1] - 2
    value = -(100 * (b - a**2) ** 2 + (1 - a) ** 2)
    by_a, by_b = 400 * a * (b - a**2) + 2 * (1 - a), -200 * (b - a**2)
    return value, 4 * np.stack([by_a, by_b], -1)


@pytest.mark.parametrize("d", [1, 2, 6, 12])
def test_it_climbs_to_the_top_of_a_bent_parabola(d: int) -> None:
    root = RNG.standard_normal((d, d))
    centre = RNG.uniform(0.2, 0.8, d)
    steps = quadratic(centre, root @ root.T + np.eye(d))
    found = ascend(steps, RNG.random((5, d)), rounds=200, precision=1e-14)
    assert np.abs(found[np.argmax(steps(found)[0])] - centre).max() < 1e-5


def test_it_follows_a_narrow_valley() -> None:
    found = ascend(valley, np.array([[0.2, 0.9], [0.4, 0.4]]), rounds=200, precision=1e-12)
    assert valley(found)[0].max() > -1e-6
    best = found[np.argmax(valley(found)[0])]
    assert best == pytest.approx([0.75, 0.75], abs=1e-3)


def test_it_stops_at_the_faces() -> None:
    centre = np.array([1.4, -0.3, 0.5])
    found = ascend(quadratic(centre, np.diag([1.0, 5.0, 20.0])), RNG.random((4, 3)), rounds=60, precision=1e-12)
    assert found[:, 0] == pytest.approx(1.0)
    assert found[:, 1] == pytest.approx(0.0)
    assert np.abs(found[:, 2] - 0.5).min() < 1e-4
    assert found.min() >= 0.0
    assert found.max() <= 1.0


def test_a_kink_that_stops_one_point_does_not_hold_up_the_others() -> None:
    def steps(x):
        value, slope = quadratic(np.array([0.7, 0.3]), np.diag([1.0, 9.0]))(x)
        beyond = np.maximum(0.2 - x[:, 0], 0.0)  # a wall of penalties, which some start behind
        return value - 3000 * beyond, slope + np.stack([3000.0 * (beyond > 0), np.zeros(len(x))], -1)

    found = ascend(steps, np.array([[0.05, 0.9], [0.19, 0.1], [0.5, 0.5], [0.9, 0.9]]), rounds=40, precision=1e-9)
    assert np.abs(found - [0.7, 0.3]).max(-1).min() < 1e-4
    assert steps(found)[0].min() > -5.0


def test_it_never_loses_what_it_had_and_only_evaluates_what_still_climbs() -> None:
    sizes = []

    def steps(x):
        sizes.append(len(x))
        return np.sin(9 * x).sum(-1), 9 * np.cos(9 * x)

    start = RNG.random((6, 3))
    found = ascend(steps, start, rounds=30, precision=1e-6)
    assert len(sizes) <= 30
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < 6
    assert (steps(found)[0] >= steps(start)[0]).all()


def test_points_without_a_score_stay_where_they_are() -> None:
    def steps(x):
        value, slope = quadratic(np.array([0.5, 0.5]), np.eye(2))(x)
        hole = x[:, 0] > 0.8
        return np.where(hole, np.nan, value), np.where(hole[:, None], np.nan, slope)

    start = np.array([[0.9, 0.9], [0.1, 0.2]])
    found = ascend(steps, start, rounds=30, precision=1e-12)
    assert found[0].tolist() == [0.9, 0.9]
    assert found[1] == pytest.approx([0.5, 0.5], abs=1e-4)


def test_a_flat_score_ends_at_once() -> None:
    calls = []

    def steps(x):
        calls.append(1)
        return np.zeros(len(x)), np.zeros_like(x)

    start = RNG.random((3, 2))
    assert (ascend(steps, start, rounds=50, precision=1e-9) == start).all()
    assert len(calls) == 1


def test_it_ends_as_high_as_scipy_does() -> None:
    def steps(x):
        bend = x - 0.3
        value = (np.cos(6 * bend) - 2 * bend**2).sum(-1) + 0.5 * np.sin(5 * x[:, 0] * x[:, 1])
        slope = -6 * np.sin(6 * bend) - 4 * bend
        slope[:, :2] += 2.5 * np.cos(5 * x[:, 0] * x[:, 1])[:, None] * x[:, 1::-1]
        return value, slope

    start = RNG.random((8, 4))
    ours = steps(ascend(steps, start, rounds=60, precision=1e-12))[0].max()
    theirs = max(
        -minimize(
            lambda x: tuple(-one[0] for one in steps(x[None])), one, jac=True, bounds=[(0, 1)] * 4, method="L-BFGS-B"
        ).fun
        for one in start
    )
    assert ours >= theirs - 1e-6
