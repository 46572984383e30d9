"""How one label changes a Gaussian, against numerical integration, and far into the tails."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

from crashbo.model.truncation import Site, match_moments, truncation


def at(z: float) -> tuple[float, float, float]:
    return tuple(float(part[0]) for part in truncation(np.array([z])))


def site_at(mean: float, variance: float, sign: float, width: float, lapse: float = 0.0) -> Site:
    arguments = (np.array([part]) for part in (mean, variance, sign, width, lapse))
    return Site(*(float(part[0]) for part in match_moments(*arguments)))


def tail_moments(z: float) -> tuple[float, float]:
    """Excess and shrinkage for z < 0, integrated over t = |z| (z - x), where nothing cancels."""

    def moment(power: int) -> float:
        return quad(lambda t: t**power * math.exp(-t - 0.5 * (t / z) ** 2), 0, 60, epsabs=0, epsrel=1e-13)[0]

    mean = moment(1) / moment(0)
    return mean / -z, (moment(2) / moment(0) - mean**2) / z**2


@pytest.mark.parametrize("z", [-3.0, -1.0, -0.1, 0.0, 0.7, 2.0, 5.0, 8.0])
def test_moderate_cuts_match_the_truncated_normal(z):
    hazard, excess, shrinkage = at(z)
    mean, variance = truncnorm.stats(-np.inf, z, moments="mv")
    assert hazard == pytest.approx(-mean, rel=1e-9, abs=1e-14)
    assert excess == pytest.approx(z - mean, rel=1e-9)
    assert shrinkage == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("z", [-1.0, -5.0, -15.0, -29.9, -30.1, -50.0, -1e3, -1e5, -1e8])
def test_tail_matches_an_integral_without_cancellation(z):
    expected_excess, expected_shrinkage = tail_moments(z)
    hazard, excess, shrinkage = at(z)
    assert excess == pytest.approx(expected_excess, rel=1e-9)
    assert shrinkage == pytest.approx(expected_shrinkage, rel=1e-9)
    assert hazard == pytest.approx(expected_excess - z, rel=1e-12)


@pytest.mark.parametrize("z", [-1e3, -1e5, -1e8])
def test_far_below_the_cut_the_kept_part_is_exponential(z):
    hazard, excess, shrinkage = at(z)
    assert hazard == pytest.approx(-z, rel=2 / z**2 + 1e-15)
    assert excess == pytest.approx(-1 / z, rel=3 / z**2 + 1e-15)
    assert shrinkage == pytest.approx(1 / z**2, rel=7 / z**2 + 1e-15)


def test_a_cut_far_above_changes_nothing():
    hazard, excess, shrinkage = at(40.0)
    assert hazard < 1e-300
    assert excess == 40.0
    assert shrinkage == 1.0
    assert site_at(-40.0, 1.0, 1.0, 0.0) == (0.0, 0.0, 0.0, 1.0)


def test_shape_functions_are_finite_and_in_range_for_every_size_of_z():
    sizes = np.logspace(-100, 100, 2001)
    hazard, excess, shrinkage = truncation(np.concatenate([-sizes, [0.0], sizes]))
    assert np.isfinite(np.stack([hazard, excess, shrinkage])).all()
    assert (hazard >= 0).all()
    assert (excess > 0).all()
    assert ((shrinkage > 0) & (shrinkage <= 1)).all()


def test_shrinkage_decreases_smoothly_across_the_switch_to_the_series():
    shrinkage = truncation(np.linspace(-31, -29, 201)).shrinkage
    assert (np.diff(shrinkage) > 0).all()
    assert (np.diff(shrinkage, n=2) > 0).all()


def tilted_moments(mean: float, variance: float, sign: float, width: float, lapse: float) -> tuple[float, float, float]:
    """Mass, mean and variance of a Gaussian times a label, integrated."""
    deviation = math.sqrt(variance)
    floor = lapse if sign < 0 else 0.0

    def tilted(u: float) -> float:
        inside = norm.cdf(-sign * u / width) if width else float(sign * u <= 0)
        return norm.pdf(u, mean, deviation) * (floor + (1 - lapse) * inside)

    def moment(power: int) -> float:
        lower, upper = mean - 12 * deviation, mean + 12 * deviation
        return quad(lambda u: u**power * tilted(u), lower, upper, points=[0.0], limit=500, epsabs=1e-13)[0]

    mass = moment(0)
    first = moment(1) / mass
    return mass, first, moment(2) / mass - first**2


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("width", [0.0, 0.05, 1.3])
@pytest.mark.parametrize("lapse", [0.0, 0.05, 0.4])
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (0.8, 0.3), (-1.5, 2.0), (2.5, 0.7)])
def test_site_reproduces_the_integrated_tilted_moments(mean, variance, width, sign, lapse):
    mass, first, second = tilted_moments(mean, variance, sign, width, lapse)
    site = site_at(mean, variance, sign, width, lapse)
    matched_precision = 1 / variance + site.precision
    assert math.exp(site.log_mass) == pytest.approx(mass, rel=1e-7)
    assert (mean / variance + site.shift) / matched_precision == pytest.approx(first, abs=1e-6)
    if second <= variance:
        assert 1 / matched_precision == pytest.approx(second, rel=1e-6)
    else:  # a precision below 0 would be needed
        assert site.precision == 0.0


def test_the_share_that_did_not_lapse():
    site = site_at(-1.0, 1.0, -1.0, 0.0, 0.1)
    assert site.kept == pytest.approx(0.9 * norm.cdf(-1) / (0.1 + 0.9 * norm.cdf(-1)))
    assert site_at(-1.0, 1.0, 1.0, 0.0, 0.1).kept == 1.0


@pytest.mark.parametrize("lapse", [0.0, 1e-6, 0.3])
@pytest.mark.parametrize("width", [0.0, 1e-4, 1.0])
def test_sites_stay_finite_and_log_concave_for_extreme_cavities(width, lapse):
    sizes = np.logspace(-100, 100, 401)
    mean = np.concatenate([-sizes, sizes])
    for sign in (1.0, -1.0):
        one = np.ones_like(mean)
        precision, shift, log_mass, kept = match_moments(mean, one, sign * one, width * one, lapse * one)
        assert np.isfinite(precision).all()
        assert np.isfinite(shift).all()
        assert (precision >= 0).all()
        assert (log_mass <= 1e-15).all()
        assert ((kept >= 0) & (kept <= 1)).all()
