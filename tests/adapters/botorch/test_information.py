"""What noisy values and labels tell about the minimum: formulas in high precision, and their derivatives."""

import math

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import multivariate_normal

from crashbo.model.information import log_both_below, log_coin_information, log_noisy_information
from tests.model.test_information import MODERATE, at, central_difference


def exact_log_noisy(t: float, share: float) -> float:
    """Its counterpart for noisy values with 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.mpf(t)
        ratio = mpmath.npdf(x) / mpmath.ncdf(x)
        return float(mpmath.log(-mpmath.log1p(-mpmath.mpf(share) * ratio * (ratio + x)) / 2))


@pytest.mark.parametrize("t", [-1e6, -1e2, *MODERATE[:12]])
def test_without_noise_noisy_information_is_half_the_log_of_what_is_left(t):
    with mpmath.workdps(60):
        ratio = mpmath.npdf(t) / mpmath.ncdf(t)
        expected = float(mpmath.log(-mpmath.log(1 - ratio * (ratio + mpmath.mpf(t))) / 2))
    assert at(log_noisy_information, t, 1.0)[0] == pytest.approx(expected, rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("t", [8.0, 10.0, 20.0])
def test_noisy_information_still_tells_poor_points_apart(t):
    value, by_t, _ = at(log_noisy_information, t, 1.0)
    assert value == pytest.approx(exact_log_noisy(t, 1.0), rel=1e-6)
    assert by_t < 0


@pytest.mark.parametrize("share", [1e-6, 0.1, 0.5, 0.9, 1.0 - 1e-6])
@pytest.mark.parametrize("t", [-50.0, -3.0, 0.0, 1.0, 4.0])
def test_noisy_information_matches_high_precision(t, share):
    assert at(log_noisy_information, t, share)[0] == pytest.approx(exact_log_noisy(t, share), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("share", [0.01, 0.5, 0.99, 1.0])
def test_gradients_of_noisy_information_match_differences(share):
    t = np.array([-25.0, -3.0, -0.5, 0.0, 0.5, 3.0, 4.0])
    shares = np.full_like(t, share)
    _, by_t, by_share = log_noisy_information(t, shares)
    assert np.allclose(by_t, central_difference(lambda x: log_noisy_information(x, shares), t), rtol=1e-4, atol=1e-7)
    if share < 1:
        difference = central_difference(lambda s: log_noisy_information(t, s), shares, 1e-6)
        assert np.allclose(by_share, difference, rtol=1e-4)


def test_noisy_information_is_finite_everywhere_and_falls_with_noise():
    t = np.array([-1e150, -1e8, -1e2, -1.0, 0.0, 1.0, 1e2, 1e8, 1e150])[:, None]
    share = np.array([1e-300, 1e-12, 0.01, 0.3, 0.6, 1 - 1e-12, 1.0])
    value, by_t, _ = log_noisy_information(t, share)
    assert np.isfinite(value).all()
    assert np.isfinite(by_t).all()
    assert (np.diff(value, axis=-1) >= 0).all()


@pytest.mark.parametrize("correlation", [-0.9, -0.5, 0.0, 0.5, 0.9])
@pytest.mark.parametrize("u", [-3.0, -1.0, 0.5])
@pytest.mark.parametrize("v", [-1.0, 0.0, 2.0])
def test_both_below_agrees_with_the_bivariate_integral(u, v, correlation):
    exact = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf([u, v])
    found, *slopes = at(log_both_below, u, v, correlation)
    assert math.exp(found) == pytest.approx(exact, abs=0.02, rel=0.35 if abs(correlation) > 0.8 else 0.15)
    point = [u, v, correlation]
    for i, slope in enumerate(slopes):
        ends = [at(log_both_below, *(x + h * (i == j) for j, x in enumerate(point)))[0] for h in (1e-6, -1e-6)]
        assert slope == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)


def test_both_below_is_exact_without_correlation():
    assert at(log_both_below, -0.7, 0.3, 0.0)[0] == pytest.approx(log_ndtr(-0.7) + log_ndtr(0.3))


@pytest.mark.parametrize("p", [1e-12, 1e-3, 0.3, 0.999])
def test_coin_information_of_a_probability(p):
    value, slope = at(log_coin_information, math.log(p))
    assert math.exp(value) == pytest.approx(-math.log1p(-p), rel=1e-6)
    assert slope == pytest.approx(p / (1 - p) / -math.log1p(-p), rel=1e-6)


def test_coin_information_stays_finite_with_its_derivative():
    value, slope = log_coin_information(np.array([-1e6, -50.0, -8.0, -1e-3, -1e-14, 0.0]))
    assert np.isfinite(value).all()
    assert np.isfinite(slope).all()
    assert (np.diff(value) >= 0).all()
