"""Quasi-random points."""

import numpy as np
import pytest
from scipy.stats import qmc

from crashbo.problem.sobol import sobol


@pytest.mark.parametrize("dimension", [1, 2, 3, 7, 20, 32, 33])
@pytest.mark.parametrize("count", [0, 1, 5, 64, 1000])
def test_points_are_those_of_scipy(count: int, dimension: int) -> None:
    found = sobol(count, dimension, seed=3)
    assert found.shape == (count, dimension)
    sequence = qmc.Sobol(dimension, seed=np.random.default_rng(3))
    assert np.array_equal(found, sequence.random_base2(10)[:count])


def test_they_fill_the_cube_evenly() -> None:
    counts, _ = np.histogramdd(sobol(256, 2, seed=0), bins=16, range=[(0, 1)] * 2)
    assert counts.min() == counts.max() == 1
