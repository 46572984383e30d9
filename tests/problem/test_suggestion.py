"""What an optimizer gives, in words."""

import pytest

from crashbo import CRASHED, VIOLATED, Constraint, Optimizer, Options
from crashbo.problem.suggestion import Best, Reason

LINE = {"x": (0.0, 1.0)}


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (Reason("initial"), "an initial point"),
        (Reason("given"), "a point you gave"),
        (
            Reason("gain", 1.0, 0.88, expected=0.71, expected_std=0.05, best=0.76, better=True),
            "most likely place of an improvement: expected 0.71 ± 0.05, best so far 0.76; 88 % likely to succeed",
        ),
        (
            Reason("gain", 1.0, 0.5, expected=0.9, expected_std=0.3, best=0.76),
            "uncertain enough to be an improvement: expected 0.9 ± 0.3, best so far 0.76; 50 % likely to succeed",
        ),
        (
            Reason("success", 0.4, 0.4),
            "no point is known to be safe, and this one is 40 % likely to succeed, more than any other",
        ),
        (Reason("mesco", 0.4, 1.0), "tells most about the lowest cost where constraints hold; 100 % likely to succeed"),
        (Reason("mes", 0.4, 0.9, best=2.0), "tells most about the lowest cost: best so far 2; 90 % likely to succeed"),
        (Reason("midway", 0.4, 0.9), "midway; 90 % likely to succeed"),
    ],
)
def test_why_answers_why(reason, words):
    assert str(reason) == words


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_why_compares_with_the_best_that_did_not_fail(direction):
    sign = 1.0 if direction == "minimize" else -1.0
    optimizer = Optimizer(LINE, constraints=[Constraint("heat", 1.0)], direction=direction, options=Options(initial=4))
    for x in (0.0, 0.3, 0.6, 0.8):
        optimizer.tell({"x": x}, sign * (x - 0.4) ** 2, heat=0.0)
    optimizer.tell({"x": 1.0}, -sign * 10.0, heat=2.0)  # better, and beyond its limit
    why = optimizer.ask().why
    assert why.best == pytest.approx(sign * 0.01)
    assert why.better == (sign * why.expected < 0.01)
    assert why.expected_std >= 0


def test_before_any_cost_nothing_is_expected():
    optimizer = Optimizer(LINE, strategy="paper", options=Options(initial=1, samples=3, starts=10))
    optimizer.tell({"x": 0.5}, CRASHED)
    why = optimizer.ask().why
    assert (why.mode, why.expected, why.best, why.better) == ("success", None, None, False)


@pytest.mark.parametrize("strategy", ["default", "paper"])
def test_there_is_no_limit_while_nothing_failed(strategy):
    options = Options(initial=2, samples=3, starts=10)
    optimizer = Optimizer(LINE, constraints=["reach", Constraint("heat", 2.0)], strategy=strategy, options=options)
    for x in (0.1, 0.5, 0.9):
        optimizer.tell({"x": x}, x, reach=x, heat=x)
    assert set(optimizer.limits) == {"heat"}
    assert set(optimizer.ask().why.thresholds) == {"heat"}
    optimizer.tell({"x": 1.0}, 1.0, reach=VIOLATED, heat=1.0)
    assert set(optimizer.limits) == {"reach", "heat"}
    free = Optimizer(LINE, strategy=strategy, options=options)
    for x in (0.1, 0.5, 0.9):
        free.tell({"x": x}, x)
    assert free.limits == {}


def test_the_best_guess_in_words():
    assert str(Best({"x": 0.25, "n": 3}, 1.0, 0.1, 0.97, True)) == "x = 0.25, n = 3: 1 ± 0.1, success 97.0%."
