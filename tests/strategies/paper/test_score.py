"""mES by hand, its gradient, and the weight of constraints."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from crashbo.strategies.averaged import Averaged
from crashbo.strategies.paper.model import GPCR
from crashbo.strategies.paper.score import PaperScore, log_mes
from tests.strategies.paper.models import simulation1, simulation2


def test_mes_by_hand():
    # One point, mean 1, deviation 2, minima 0 and 2: z = -1/2 and 1/2. From tables: phi(1/2) = 0.3520653,
    # Phi(1/2) = 0.6914625, Phi(-1/2) = 0.3085375.
    low = 0.5 * 0.3520653 / (2 * 0.6914625) - math.log(0.6914625)
    high = -0.5 * 0.3520653 / (2 * 0.3085375) - math.log(0.3085375)
    value, _, _ = log_mes(np.array([1.0]), np.array([2.0]), np.array([0.0, 2.0]))
    assert math.exp(value[0]) == pytest.approx(0.5 * (low + high), rel=1e-6)


def test_mes_is_the_entropy_that_the_cut_takes():
    mean, deviation, minimum = 0.7, 0.4, 0.5
    mass = norm.sf(minimum, mean, deviation)

    def density(f):
        return norm.pdf(f, mean, deviation) / mass

    cut = quad(lambda f: -density(f) * math.log(density(f)), minimum, mean + 12 * deviation)[0]
    gained = float(norm(mean, deviation).entropy()) - cut
    value, _, _ = log_mes(np.array([mean]), np.array([deviation]), np.array([minimum]))
    assert math.exp(value[0]) == pytest.approx(gained, rel=1e-6)


def test_derivatives_by_moments():
    mean, deviation, minima = np.array([0.3, 2.0, -1.0]), np.array([0.5, 0.2, 1.5]), np.array([-0.4, 0.1, 0.2])
    _, by_mean, by_deviation = log_mes(mean, deviation, minima)
    step = 1e-6
    ahead, behind = log_mes(mean + step, deviation, minima)[0], log_mes(mean - step, deviation, minima)[0]
    assert by_mean == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)
    ahead, behind = log_mes(mean, deviation + step, minima)[0], log_mes(mean, deviation - step, minima)[0]
    assert by_deviation == pytest.approx((ahead - behind) / (2 * step), rel=1e-5)


def models() -> Averaged[GPCR]:
    objective, constraint = simulation2()
    return Averaged(objective, {"g": constraint})


def crashing() -> Averaged[GPCR]:
    return Averaged(simulation1(), {})


@pytest.mark.parametrize(
    "score",
    [
        PaperScore(crashing(), "mes", np.array([-0.5, 0.1])),
        PaperScore(models(), "mesco", np.array([-50.0, -10.0, 3.0])),
        PaperScore(crashing()),
        PaperScore(models()),
    ],
)
def test_gradients_in_the_points(score):
    X, step = np.random.default_rng(2).random((5, 2)), 1e-6
    values, gradients = score.with_slope(X)
    assert values == pytest.approx(score.log(X))
    assert score(X) == pytest.approx(np.exp(values))
    for j in range(2):
        move = step * np.eye(2)[j]
        assert gradients[:, j] == pytest.approx(
            (score.log(X + move) - score.log(X - move)) / (2 * step), rel=1e-3, abs=1e-4
        )


def test_constraints_are_multiplied_and_own_crashes_are_not():
    X, both = np.random.default_rng(3).random((6, 2)), models()
    score = PaperScore(both, "mesco", np.array([-50.0, 3.0]))
    assert score(X) == pytest.approx(score.gain(X) * both.success(X, "g"))
    alone = PaperScore(crashing(), "mes", np.array([0.0]))
    assert alone(X) == pytest.approx(alone.gain(X))
    assert PaperScore(both).gain(X) is None
    assert PaperScore(both)(X) == pytest.approx(both.success(X))
