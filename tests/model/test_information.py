"""What a value tells about the minimum: the formula in high precision, and its derivative."""

import mpmath
import numpy as np
import pytest

from crashbo.model.truncation import log_information

MODERATE = [-30.5, -29.5, -8.0, -3.0, -1.0, -1e-3, 0.0, 1e-3, 0.5, 2.0, 5.0, 7.0, 9.0, 15.0, 25.0, 37.0]
FAR = [-1e6, -1e2, 40.0, 1e2, 1e6]


def at(function, *arguments: float) -> list[float]:
    """The value and derivatives of a formula at one place."""
    return [float(part[0]) for part in function(*(np.array([one]) for one in arguments))]


def central_difference(function, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
    return (function(x + step)[0] - function(x - step)[0]) / (2 * step)


def exact_log_information(t: float) -> float:
    """The summand of (21) with 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.mpf(t)
        log_cdf = mpmath.log1p(-mpmath.ncdf(-x)) if t > 0 else mpmath.log(mpmath.ncdf(x))
        ratio = mpmath.exp(-x * x / 2) / mpmath.sqrt(2 * mpmath.pi) / mpmath.exp(log_cdf)
        return float(mpmath.log(x * ratio / 2 - log_cdf))


@pytest.mark.parametrize("t", MODERATE + FAR)
def test_information_matches_high_precision(t):
    assert at(log_information, t)[0] == pytest.approx(exact_log_information(t), rel=1e-9, abs=1e-9)


def test_information_decreases_and_stays_finite():
    t = np.concatenate([-np.logspace(8, -4, 400), [0.0], np.logspace(-4, 8, 400)])
    value, _ = log_information(t)
    assert np.isfinite(value).all()
    assert (np.diff(value) < 0).all()
    far, slope = log_information(np.array([-1e150, -1e6, 1e6, 1e150]))
    assert np.isfinite(far).all()
    assert np.isfinite(slope).all()
    assert (slope <= 0).all()


def test_gradients_of_information_match_differences():
    t = np.array([*MODERATE, 1e2])
    assert np.allclose(log_information(t)[1], central_difference(log_information, t), rtol=1e-5, atol=1e-7)
