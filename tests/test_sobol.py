"""Quasi-random points."""

import numpy as np
import pytest

from crashbo.sobol import _of_scipy, sobol


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 20, 32, 33])
@pytest.mark.parametrize("count", [0, 1, 5, 64, 1000])
def test_points_are_those_of_scipy(count: int, dimension: int) -> None:
    found = sobol(count, dimension, seed=3)
    assert found.shape == (count, dimension)
    assert np.array_equal(found, _of_scipy(count, dimension, seed=3))


def test_they_fill_the_cube_evenly() -> None:
    counts, _ = np.histogramdd(sobol(256, 2, seed=0), bins=16, range=[(0, 1)] * 2)
    assert counts.min() == counts.max() == 1
