"""Pictures of a GPCR draw what the arrays say."""

import numpy as np
import pytest

from crashbo.errors import InputError
from crashbo.show import plot_posterior, plot_predictive
from crashbo.show.gpcr import Curves

X = np.linspace(0, 10, 21)


@pytest.fixture
def curves() -> Curves:
    trials = np.array([1.0, 3.0, 5.0]), np.array([0.5, 2.0, 1.0]), np.array([7.0, 9.0])
    return Curves(X, np.sin(X), np.full(21, 0.3), np.full(21, 0.5), 2.03, *trials)


def test_the_posterior_spans_the_domain_and_marks_every_trial(curves: Curves) -> None:
    top, bottom = plot_posterior(curves, name="gain").axes
    assert bottom.get_xlabel() == "gain"
    assert bottom.get_xlim() == (0.0, 10.0)
    drawn = {points.get_gid(): len(points.get_offsets()) for points in top.collections if points.get_gid()}
    assert drawn["stable trials"] == 3
    assert drawn["crashed trials (cost unknown)"] == 2


def test_the_predictive_comparison_has_both_curves(curves: Curves) -> None:
    grid = np.linspace(-3, 3, 61)
    density = np.exp(-0.5 * np.square(grid - np.sin(X)[:, None]))
    density /= np.trapezoid(density, grid)[:, None]
    (axes,) = plot_predictive(curves, grid, density).axes
    drawn = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert drawn["p(f*), mode"] == pytest.approx(drawn["q(f*), mean"], abs=1e-6)


def test_two_inputs_are_refused() -> None:
    with pytest.raises(InputError, match="`mean` must have one value per point"):
        Curves(X, np.zeros((21, 2)), X, X, 1.0, X, X, X)
