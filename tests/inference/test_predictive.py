"""The non-Gaussian predictive density against closed forms."""

import torch
from torch.distributions import Normal

from crashbo.inference import predictive
from crashbo.inference.predictive import predictive_density
from tests.helpers import double, labels, matern32_matrix

NOTHING = torch.zeros(0, dtype=torch.long), torch.zeros(0, dtype=torch.float64), double(0.01)
GRID = torch.linspace(-6, 6, 1201, dtype=torch.float64)
STANDARD = Normal(double(0.0), double(1.0))


def test_one_crash_gives_the_skew_normal():
    trial, points = double([[0.4]]), double([[0.5], [0.9]])
    slope = matern32_matrix(points, trial, outputscale=1.0)
    density = predictive_density(
        double([[1.0]]), slope, torch.ones(2).double(), *NOTHING, labels(torch.tensor([True]), 0.7), GRID
    )
    expected = STANDARD.log_prob(GRID).exp() * STANDARD.cdf((slope * GRID - 0.7) / (1 - slope.square()).sqrt())
    expected = expected / torch.trapezoid(expected, GRID)[:, None]
    assert torch.allclose(density, expected, atol=1e-6)


def test_at_the_crash_itself_the_prior_is_cut_off():
    slope = double([[1.0], [0.5]])
    density = predictive_density(
        double([[1.0]]), slope, torch.ones(2).double(), *NOTHING, labels(torch.tensor([True]), 0.7), GRID
    )[0]
    assert density[GRID < 0.69].max() < 1e-6
    above = GRID > 0.71
    expected = STANDARD.log_prob(GRID).exp() / (1 - STANDARD.cdf(double(0.7)))
    assert torch.allclose(density[above], expected[above], rtol=0.02)


def test_every_density_integrates_to_one():
    X, points = double([[0.1], [0.4], [0.6]]), torch.linspace(0, 1, 7, dtype=torch.float64)[:, None]
    density = predictive_density(
        matern32_matrix(X, X),
        matern32_matrix(points, X),
        torch.full((7,), 0.5).double(),
        torch.tensor([0]),
        double([0.3]),
        double(0.01),
        labels(torch.tensor([False, True, True]), 0.5),
        GRID,
    )
    assert density.isfinite().all()
    assert (density >= 0).all()
    assert torch.allclose(torch.trapezoid(density, GRID), torch.ones(7).double())


def test_far_from_the_trials_the_prior_remains():
    density = predictive_density(
        double([[1.0]]), double([[0.0]]), double([1.0]), *NOTHING, labels(torch.tensor([True]), 2.0), GRID
    )
    assert torch.allclose(density[0], STANDARD.log_prob(GRID).exp(), atol=1e-6)


def test_work_in_pieces_gives_the_same_answer(monkeypatch):
    X, points = double([[0.2], [0.6]]), torch.linspace(0, 1, 5, dtype=torch.float64)[:, None]
    grid = torch.linspace(-2, 4, 61, dtype=torch.float64)
    arguments = (matern32_matrix(X, X), matern32_matrix(points, X), torch.full((5,), 0.5).double(), *NOTHING)
    whole = predictive_density(*arguments, labels(torch.tensor([False, True]), 0.5), grid)
    monkeypatch.setattr(predictive, "_CHUNK", 1)
    pieces = predictive_density(*arguments, labels(torch.tensor([False, True]), 0.5), grid)
    assert torch.allclose(whole, pieces, atol=1e-4)
