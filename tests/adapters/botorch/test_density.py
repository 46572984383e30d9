"""The non-Gaussian predictive density against closed forms."""

import numpy as np
from scipy.integrate import trapezoid
from scipy.stats import norm

from crashbo.model import density
from crashbo.model.density import predictive_density
from tests.helpers import given_values, make_labels, matern32_matrix

GRID = np.linspace(-6, 6, 1201)
CRASH = np.array([True])


def without_values(prior: np.ndarray):
    return given_values(prior, np.zeros(0, dtype=int), np.zeros(0), 0.01)


def test_one_crash_gives_the_skew_normal():
    slope = matern32_matrix(np.array([[0.5], [0.9]]), np.array([[0.4]]), outputscale=1.0)
    found = predictive_density(without_values(np.eye(1)), make_labels(CRASH, 0.7), slope, np.ones(2), GRID)
    expected = norm.pdf(GRID) * norm.cdf((slope * GRID - 0.7) / np.sqrt(1 - np.square(slope)))
    expected /= trapezoid(expected, GRID)[:, None]
    assert np.allclose(found, expected, atol=1e-6)


def test_at_the_crash_itself_the_prior_is_cut_off():
    slope = np.array([[1.0], [0.5]])
    found = predictive_density(without_values(np.eye(1)), make_labels(CRASH, 0.7), slope, np.ones(2), GRID)[0]
    assert found[GRID < 0.69].max() < 1e-6
    above = GRID > 0.71
    assert np.allclose(found[above], (norm.pdf(GRID) / norm.sf(0.7))[above], rtol=0.02)


def cross(points: np.ndarray, X: np.ndarray, observed: list[int]) -> np.ndarray:
    return matern32_matrix(points, X)[:, [*observed, *range(len(X))]]


def test_every_density_integrates_to_one():
    X, points = np.array([[0.1], [0.4], [0.6]]), np.linspace(0, 1, 7)[:, None]
    given = given_values(matern32_matrix(X, X), np.array([0]), np.array([0.3]), 0.01)
    labels = make_labels(np.array([False, True, True]), 0.5)
    found = predictive_density(given, labels, cross(points, X, [0]), np.full(7, 0.5), GRID)
    assert np.isfinite(found).all()
    assert (found >= 0).all()
    assert np.allclose(trapezoid(found, GRID), 1.0)


def test_near_a_value_it_is_the_gaussian_of_the_regression():
    X, points = np.array([[0.1], [0.9]]), np.array([[0.12]])
    given = given_values(matern32_matrix(X, X), np.array([0]), np.array([0.3]), 0.01)
    labels = make_labels(np.array([False, False]), 50.0)
    found = predictive_density(given, labels, cross(points, X, [0]), np.full(1, 0.5), GRID)[0]
    k = matern32_matrix(points, X[:1])[0, 0]
    expected = norm.pdf(GRID, k * 0.3 / 0.51, np.sqrt(0.5 - k**2 / 0.51))
    assert np.allclose(found, expected, atol=1e-4)


def test_far_from_the_trials_the_prior_remains():
    found = predictive_density(without_values(np.eye(1)), make_labels(CRASH, 2.0), np.zeros((1, 1)), np.ones(1), GRID)
    assert np.allclose(found[0], norm.pdf(GRID), atol=1e-6)


def test_a_lapsed_crash_says_less():
    given, slope = without_values(np.eye(1)), np.array([[0.9]])
    found = predictive_density(given, make_labels(CRASH, 0.7, lapse=0.3), slope, np.ones(1), GRID)[0]
    expected = norm.pdf(GRID) * (0.3 + 0.7 * norm.cdf((0.9 * GRID - 0.7) / np.sqrt(1 - 0.81)))
    assert np.allclose(found, expected / trapezoid(expected, GRID), atol=1e-6)


def test_work_in_pieces_gives_the_same_answer(monkeypatch):
    X, points = np.array([[0.2], [0.6]]), np.linspace(0, 1, 5)[:, None]
    arguments = (
        without_values(matern32_matrix(X, X)),
        make_labels(np.array([False, True]), 0.5),
        matern32_matrix(points, X),
        np.full(5, 0.5),
        np.linspace(-2, 4, 61),
    )
    whole = predictive_density(*arguments)
    monkeypatch.setattr(density, "_CHUNK", 1)
    assert np.allclose(whole, predictive_density(*arguments), atol=1e-4)
