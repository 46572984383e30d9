"""Expected improvement of trials that succeed, against Monte Carlo and by hand; its slopes against differences."""

import numpy as np
import pytest
from scipy.stats import norm

from crashbo.model.average import learn
from crashbo.model.inference import infer
from crashbo.model.moments import Moments, log_held
from crashbo.model.prediction import Predictor
from crashbo.search.gain import expected_improvement, improvement_shape, with_slopes
from tests.model.data import small_block


def _moments(mean: float, deviation: float, margin: float, spread: float, covariance: float) -> Moments:
    means, deviations, covariances = [mean, margin], [deviation, spread], [deviation**2, covariance]
    return Moments(*(np.reshape(one, (1, 2, 1)) for one in (means, deviations, covariances)))


def test_without_margins_it_is_the_textbook_formula():
    at = Moments(np.array([[[0.3]]]), np.array([[[0.5]]]), np.array([[[0.25]]]))
    u = (0.1 - 0.3) / 0.5
    value = expected_improvement(at, np.array([[0.1]]), np.zeros((1, 0, 1)))
    assert value[0, 0] == pytest.approx(0.5 * (norm.pdf(u) + u * norm.cdf(u)))


@pytest.mark.parametrize("correlation", [-0.9, -0.5, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("best", [-1.0, 0.0, 1.0])
def test_with_a_margin_it_agrees_with_monte_carlo(correlation, best):
    deviation, spread, limit = 0.7, 1.3, 0.4
    covariance = correlation * deviation * spread
    draws = np.random.default_rng(0).multivariate_normal(
        [0.1, -0.2], [[deviation**2, covariance], [covariance, spread**2]], 400_000
    )
    truth = (np.maximum(best - draws[:, 0], 0) * (draws[:, 1] <= limit)).mean()
    at = _moments(0.1, deviation, -0.2, spread, covariance)
    value = expected_improvement(at, np.array([[best]]), np.array([[[limit]]]))[0, 0]
    assert value == pytest.approx(truth, rel=0.06, abs=2e-4)
    assert np.exp(log_held(at, np.array([[[limit]]])))[0, 0] == pytest.approx(norm.cdf(0.6 / 1.3))


def test_the_shape_has_no_cancellation_far_below():
    u = np.array([-40.0, -10.0, -1.0, 0.0, 3.0])
    _, _, h = improvement_shape(u)
    assert h[3] == pytest.approx(norm.pdf(0))
    assert h[1] == pytest.approx(norm.pdf(10) / 100 * (1 - 3 / 100 + 15 / 1e4), rel=2e-3)
    assert (h >= 0).all()
    assert np.isfinite(h).all()


def test_slopes_are_those_of_differences():
    block = small_block(4, 10, 2, "own")
    candidates = learn(block)
    values = np.stack([warp(block.values) for warp in candidates.warps])
    posterior = infer(block.rows(values), candidates.at)
    predictor = Predictor(posterior)
    best = np.full((len(candidates), 1), -0.5)
    limit = posterior.at.threshold[:, 1:, None]

    def gain(X):
        return expected_improvement(Moments.of(predictor(X)), best, limit).sum(0)

    X = np.random.default_rng(1).random((6, 2))
    q = predictor(X)
    value, *slopes = with_slopes(lambda at: expected_improvement(at, best, limit), q)
    gradient = q.vjp(*slopes)
    assert value.sum(0) == pytest.approx(gain(X))
    for j in range(2):
        step = np.zeros(2)
        step[j] = 1e-5
        assert gradient[:, j] == pytest.approx((gain(X + step) - gain(X - step)) / 2e-5, rel=2e-3, abs=1e-6)
