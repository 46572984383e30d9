"""Crashes with named reasons: margins of their own only where the evidence prefers it."""

import numpy as np

from crashbo.model.numbers import NUMBERS
from crashbo.model.reasons import Reasons, choose_reasons
from tests.model.data import make_block


def _two_places(named: bool, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = rng.random((40, 2))
    fell, hot = X[:, 0] > 0.75, X[:, 1] > 0.8
    crashed = fell | hot
    if named:
        reasons = ["fell" if one else "hot" for one in fell[crashed]]
    else:
        reasons = [["a", "b"][i] for i in rng.integers(2, size=crashed.sum())]
    return make_block(X, np.square(X - 0.3).sum(1), crashed), reasons


def test_reasons_with_places_of_their_own_get_margins():
    block, reasons = _two_places(named=True)
    found = choose_reasons(block, reasons, NUMBERS)
    assert found.names == ("fell", "hot")
    split = found.split(block, reasons)
    assert split.margins == 2
    assert len(split.rows(split.values).sign) == 2 * (len(block.below) + len(block.above))


def test_names_that_say_nothing_stay_together():
    block, reasons = _two_places(named=False)
    assert choose_reasons(block, reasons, NUMBERS) == Reasons()


def test_few_or_unnamed_crashes_stay_together():
    block, reasons = _two_places(named=True)
    assert choose_reasons(block, [""] * len(reasons), NUMBERS) == Reasons()
    rare = ["fell" if i < 3 else "" for i in range(len(reasons))]
    assert choose_reasons(block, rare, NUMBERS) == Reasons()
    assert Reasons(("", "fell")).margin("unknown") == 0
