"""The price of a crash: how it adapts to failures, to the share allowed, to budgets and to the end of a run."""

import pytest

from crashbo.model.numbers import NUMBERS
from crashbo.problem.options import Options
from crashbo.search.price import allowed_share, budget_left, crash_price

FAIL, OK = True, False


def price(failures, start=0, **options):
    return crash_price(failures, start, Options(**options), NUMBERS)


def test_failures_make_it_dearer_and_successes_cheaper():
    assert price([]) == pytest.approx(NUMBERS.price_per_odds * 4)
    assert price([FAIL]) > price([]) > price([OK])
    assert price([FAIL, OK]) == pytest.approx(price([OK, FAIL]))


def test_it_is_in_balance_at_the_share_allowed():
    assert price([FAIL, OK, OK, OK, OK], risk=0.2) == pytest.approx(price([], risk=0.2))
    assert price([FAIL, OK], risk=0.5) == pytest.approx(price([], risk=0.5))


def test_it_begins_with_the_odds_against_a_failure():
    assert price([], risk=0.5) == pytest.approx(NUMBERS.price_per_odds)
    assert price([], risk=0.05) == pytest.approx(NUMBERS.price_per_odds * 19)
    assert price([], crash_budget=2, n_trials=None) == pytest.approx(NUMBERS.price_per_odds * 9)  # 2 of the next 20


def test_every_risk_is_free():
    assert price([FAIL] * 5, risk=1.0) == 0.0


def test_failures_of_the_design_do_not_count_but_against_a_budget():
    assert price([FAIL, FAIL, OK], start=3) == pytest.approx(price([]))
    assert budget_left([FAIL, FAIL, OK], Options(crash_budget=3)) == 1


def test_a_spent_budget_makes_failures_unaffordable():
    assert price([FAIL, FAIL, OK], start=3, crash_budget=2) >= 1e6
    assert price([OK], crash_budget=0) >= 1e6
    assert price([FAIL, OK], crash_budget=2) < 1e3


def test_a_budget_allows_the_share_that_is_left():
    options = Options(crash_budget=3, n_trials=40, risk=0.2)
    assert allowed_share([OK] * 10, options) == pytest.approx(3 / 30)
    assert allowed_share([FAIL] + [OK] * 9, options) == pytest.approx(2 / 30)
    assert allowed_share([OK] * 38, options) == 0.2  # no more than the risk


def test_bold_at_first_and_careful_in_the_end():
    early, late = price([OK] * 2, n_trials=20), price([OK] * 18, n_trials=20)
    assert early == pytest.approx(price([OK] * 2) * 0.2)
    assert late == pytest.approx(price([OK] * 18) * 1.8)


def test_a_budget_has_the_same_price_early_and_late_at_the_same_share():
    early, late = [OK] * 2, [OK] * 30
    assert allowed_share(early, Options(crash_budget=4, n_trials=42)) == pytest.approx(0.1)
    assert allowed_share(late, Options(crash_budget=1, n_trials=40)) == pytest.approx(0.1)
    assert price(early, start=2, crash_budget=4, n_trials=42) == pytest.approx(NUMBERS.price_per_odds * 9)
    assert price(late, start=30, crash_budget=1, n_trials=40) == pytest.approx(NUMBERS.price_per_odds * 9)


def test_a_long_row_is_soon_forgotten():
    assert price([FAIL] * 500) == pytest.approx(price([FAIL] * 4))
    assert price([OK] * 500) == pytest.approx(price([OK] * 3))
    assert price([FAIL] * 500 + [OK] * 15) == pytest.approx(price([]))
