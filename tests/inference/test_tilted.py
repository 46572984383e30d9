"""Tilted moments against numerical integration, and far into the tails."""

import math

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import norm, truncnorm

from crashbo.inference.tilted import match_moments, truncation
from tests.helpers import double


def tail_moments(z: float) -> tuple[float, float]:
    """Excess and shrinkage for z < 0, integrated over t = |z| (z - x), where nothing cancels."""

    def moment(power: int) -> float:
        return quad(lambda t: t**power * math.exp(-t - 0.5 * (t / z) ** 2), 0, 60, epsabs=0, epsrel=1e-13)[0]

    mean = moment(1) / moment(0)
    return mean / -z, (moment(2) / moment(0) - mean**2) / z**2


@pytest.mark.parametrize("z", [-3.0, -1.0, -0.1, 0.0, 0.7, 2.0, 5.0, 8.0])
def test_moderate_cuts_match_the_truncated_normal(z):
    hazard, excess, shrinkage = truncation(double(z))
    mean, variance = truncnorm.stats(-np.inf, z, moments="mv")
    assert float(hazard) == pytest.approx(-mean, rel=1e-9, abs=1e-14)
    assert float(excess) == pytest.approx(z - mean, rel=1e-9)
    assert float(shrinkage) == pytest.approx(variance, rel=1e-9)


@pytest.mark.parametrize("z", [-1.0, -5.0, -15.0, -29.9, -30.1, -50.0, -1e3, -1e5, -1e8])
def test_tail_matches_an_integral_without_cancellation(z):
    expected_excess, expected_shrinkage = tail_moments(z)
    hazard, excess, shrinkage = truncation(double(z))
    assert float(excess) == pytest.approx(expected_excess, rel=1e-9)
    assert float(shrinkage) == pytest.approx(expected_shrinkage, rel=1e-9)
    assert float(hazard) == pytest.approx(expected_excess - z, rel=1e-12)


@pytest.mark.parametrize("z", [-1e3, -1e5, -1e8])
def test_far_below_the_cut_the_kept_part_is_exponential(z):
    hazard, excess, shrinkage = truncation(double(z))
    assert float(hazard) == pytest.approx(-z, rel=2 / z**2 + 1e-15)
    assert float(excess) == pytest.approx(-1 / z, rel=3 / z**2 + 1e-15)
    assert float(shrinkage) == pytest.approx(1 / z**2, rel=7 / z**2 + 1e-15)


def test_a_cut_far_above_changes_nothing():
    hazard, excess, shrinkage = truncation(double(40.0))
    assert float(hazard) < 1e-300
    assert float(excess) == 40.0
    assert float(shrinkage) == 1.0
    site = match_moments(double(-40.0), double(1.0), double(1.0), double(0.0))
    assert [float(part) for part in site] == [0.0, 0.0, 0.0]


def test_shape_functions_are_finite_and_in_range_for_every_size_of_z():
    sizes = torch.logspace(-100, 100, 2001, dtype=torch.float64)
    z = torch.cat([-sizes, double([0.0]), sizes])
    hazard, excess, shrinkage = truncation(z)
    assert torch.stack([hazard, excess, shrinkage]).isfinite().all()
    assert (hazard >= 0).all()
    assert (excess > 0).all()
    assert ((shrinkage > 0) & (shrinkage <= 1)).all()


def test_shrinkage_decreases_smoothly_across_the_switch_to_the_series():
    shrinkage = truncation(torch.linspace(-31, -29, 201, dtype=torch.float64)).shrinkage
    assert (shrinkage.diff() > 0).all()
    assert (shrinkage.diff().diff() > 0).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("width", [0.0, 0.05, 1.3])
@pytest.mark.parametrize(("mean", "variance"), [(0.0, 1.0), (0.8, 0.3), (-1.5, 2.0), (2.5, 0.7)])
def test_site_reproduces_the_integrated_tilted_moments(mean, variance, width, sign):
    deviation = math.sqrt(variance)

    def tilted(u: float) -> float:
        inside = norm.cdf(-sign * u / width) if width else float(sign * u <= 0)
        return norm.pdf(u, mean, deviation) * inside

    def moment(power: int) -> float:
        lower, upper = mean - 12 * deviation, mean + 12 * deviation
        return quad(lambda u: u**power * tilted(u), lower, upper, points=[0.0], limit=500, epsabs=1e-13)[0]

    mass = moment(0)
    site = match_moments(double(mean), double(variance), double(sign), double(width))
    matched_precision = 1 / variance + float(site.precision)
    matched_mean = (mean / variance + float(site.shift)) / matched_precision
    assert math.exp(site.log_mass) == pytest.approx(mass, rel=1e-7)
    assert matched_mean == pytest.approx(moment(1) / mass, abs=1e-7)
    assert 1 / matched_precision == pytest.approx(moment(2) / mass - (moment(1) / mass) ** 2, rel=1e-6)


@pytest.mark.parametrize("width", [0.0, 1e-4, 1.0])
def test_sites_stay_finite_and_log_concave_for_extreme_cavities(width):
    sizes = torch.logspace(-100, 100, 401, dtype=torch.float64)
    mean = torch.cat([-sizes, sizes])
    for sign in (1.0, -1.0):
        one = torch.ones_like(mean)
        precision, shift, log_mass = match_moments(mean, one, sign * one, width * one)
        assert precision.isfinite().all()
        assert shift.isfinite().all()
        assert (precision >= 0).all()
        assert (log_mass <= 0).all()
