"""The benchmark of halved and doubled numbers."""

import math
from dataclasses import fields, replace

import pytest
from benchmarks.sensitivity import SKIPPED, relative, settings

from crashbo.model.numbers import NUMBERS


def test_every_number_is_halved_and_doubled_and_stays_sound():
    found = settings()
    assert {name.split(",")[0] for name in found} == {one.name for one in fields(NUMBERS)} - set(SKIPPED)
    assert len(found) + len(SKIPPED) <= 20
    for pair in found.values():
        for change in pair:
            assert replace(NUMBERS, **change) != NUMBERS
    assert found["price_per_odds"] == ({"price_per_odds": 0.375}, {"price_per_odds": 1.5})
    assert found["debts"] == ({"debts": (-0.25, 1.5)}, {"debts": (-1.0, 6.0)})
    assert found["most_models"] == ({"most_models": 6}, {"most_models": 24})
    assert found["noise, centre"][0]["noise"] == (pytest.approx(-6 - math.log(2)), 2.0)
    assert all(-1 < rho < 1 for rho, _ in found["correlations"][1]["correlations"])
    assert sum(weight for _, weight in found["kernels"][0]["kernels"]) == pytest.approx(1.0)


def test_ratios_are_averaged_in_logs_over_runs_that_succeeded():
    assert relative([1.0, 4.0, math.inf], [2.0, 2.0, 1.0])[0] == pytest.approx(1.0)
    assert relative([4.0, 4.0], [1.0, 1.0]) == (pytest.approx(4.0), pytest.approx(1.0))
