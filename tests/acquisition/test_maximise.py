"""Maximisation over the unit cube: known maxima, rounding, forbidden points, repeatability."""

import math

import numpy as np
import pytest
import torch

from crashbo.acquisition.maximise import Effort, maximise, sobol
from tests.helpers import double


def peak(centre):
    """A smooth peak of height 0."""
    return lambda X: -(X - double(centre)).square().sum(-1)


def wavy(X):
    """Many local maxima, the highest in the middle of each axis."""
    shifted = X - 0.37
    return (torch.cos(20 * shifted) - 10 * shifted.square()).sum(-1)


def look(dimension, seed=0, count=512, round_=None):
    """Points all over the cube."""
    points = sobol(count, dimension, seed)
    return points if round_ is None else round_(points)


def to_grid(cells: int):
    """Round the first coordinate to the centres of cells."""

    def rounded(X):
        result = X.clone()
        result[..., 0] = ((X[..., 0].detach() * cells).floor().clamp(0, cells - 1) + 0.5) / cells
        return result

    return rounded


@pytest.mark.parametrize("dimension", [1, 2, 6])
def test_it_finds_a_peak(dimension):
    centre = torch.linspace(0.15, 0.85, dimension, dtype=torch.float64)
    found = maximise(peak(centre), look(dimension, 0))
    assert found.point.shape == (dimension,)
    assert torch.allclose(found.point, centre, atol=1e-4)
    assert found.value == pytest.approx(0.0, abs=1e-7)


@pytest.mark.parametrize("dimension", [1, 2])
def test_it_finds_the_highest_of_many(dimension):
    found = maximise(wavy, look(dimension, 1))
    assert torch.allclose(found.point, double([0.37] * dimension), atol=1e-3)
    assert found.value == pytest.approx(dimension, abs=1e-5)


@pytest.mark.parametrize("dimension", [1, 2, 6])
@pytest.mark.parametrize("direction", [-1.0, 1.0])
def test_it_reaches_a_corner_and_never_leaves_the_cube(dimension, direction):
    found = maximise(lambda X: direction * X.sum(-1), look(dimension, 2))
    assert torch.allclose(found.point, torch.full((dimension,), float(direction > 0)).double(), atol=1e-9)
    assert (found.point >= 0).all()
    assert (found.point <= 1).all()


def test_every_point_looked_at_lies_in_the_cube():
    seen = []

    def score(X):
        seen.append(X.detach().clone())
        return peak([1.3, -0.2])(X)

    maximise(score, look(2, 0))
    looked = torch.cat(seen)
    assert looked.min() >= 0
    assert looked.max() <= 1


def test_the_same_seed_gives_the_same_answer():
    first, second = (maximise(wavy, look(3, 4)) for _ in range(2))
    assert torch.equal(first.point, second.point)
    assert first.value == second.value
    assert torch.equal(sobol(8, 3, 1), sobol(8, 3, 1))
    assert not torch.equal(sobol(8, 3, 1), sobol(8, 3, 2))


def test_points_are_rounded_and_the_rest_is_refined():
    rounded = to_grid(4)
    found = maximise(peak([0.6, 0.234]), look(2, round_=rounded), round_=rounded)
    assert torch.allclose(found.point, double([0.625, 0.234]), atol=1e-4)
    assert torch.equal(rounded(found.point), found.point)
    assert found.value == pytest.approx(-(0.025**2), abs=1e-7)


def test_many_cells_are_climbed():
    found = maximise(
        peak([0.512, 0.3]),
        look(2, count=8, round_=to_grid(100)),
        round_=to_grid(100),
        effort=Effort(starts=1, iterations=5),
    )
    assert abs(float(found.point[0]) - 0.515) <= 0.03


@pytest.mark.parametrize("rounded", [None, to_grid(10)])
def test_forbidden_points_are_not_returned(rounded):
    centre = double([0.55, 0.5])

    def allowed(X):
        return (X - centre).norm(dim=-1) > 0.2

    found = maximise(peak(centre), look(2, round_=rounded), allowed=allowed, round_=rounded)
    assert bool(allowed(found.point[None]))
    assert found.value < -0.04


def test_all_points_given_are_looked_at():
    needle = double([0.123456, 0.654321])

    def score(X):
        return -((X - needle).norm(dim=-1) + 1e-9).sqrt() - (X - needle).norm(dim=-1).gt(1e-6).double()

    found = maximise(score, torch.cat([look(2, count=16), needle[None]]), effort=Effort(starts=2, iterations=3))
    assert torch.allclose(found.point, needle)


def test_scores_that_are_not_finite_are_survived():
    def score(X):
        return torch.where(X[..., 0] < 0.5, math.nan, peak([0.7])(X))

    assert float(maximise(score, look(1, 0)).point) == pytest.approx(0.7, abs=0.02)
    flat = maximise(lambda X: X.new_full(X.shape[:-1], -math.inf), look(1, 0))
    assert 0 <= float(flat.point) <= 1


def test_where_nothing_is_allowed_it_still_answers():
    found = maximise(peak([0.5]), look(1, 0), allowed=lambda X: torch.zeros(len(X), dtype=torch.bool))
    assert 0 <= float(found.point) <= 1


def test_a_slope_of_its_own_leads_to_the_same_maximum() -> None:
    centre = np.array([0.6, 0.234])
    asked = []

    def slope(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        asked.append(x)
        return -np.square(x - centre).sum(-1), -2 * (x - centre)

    for round_ in (None, to_grid(5)):
        plain, quick = (
            maximise(peak(centre.tolist()), look(2, round_=round_), round_=round_, slope=one) for one in (None, slope)
        )
        torch.testing.assert_close(quick.point, plain.point, rtol=1e-5, atol=1e-5)
    assert asked


def test_effort_limits_the_evaluations() -> None:
    asked = []

    def slope(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        asked.append(x)
        shifted = x - 0.37
        return np.cos(20 * shifted).sum(-1), -20 * np.sin(20 * shifted)

    maximise(wavy, look(6), slope=slope, effort=Effort(evaluations=3))
    few = len(asked)
    maximise(wavy, look(6), slope=slope)
    assert few <= 3 + 20  # a line search that has begun is ended
    assert few < len(asked) - few
