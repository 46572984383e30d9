"""Back to safety: trips, recovery and the emergency stop."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashbo.errors import InputError
from crashbo.safety import Fallback, Phase, SafetyMonitor

MONITOR = SafetyMonitor(
    limits={"angle": 0.1, "reach": 1.0}, stops={"angle": 0.5}, reasons={"angle": "fell"}, calm=1.0, patience=5.0
)
FINE = {"angle": 0.0, "reach": 0.0}


def trial() -> Fallback[str]:
    return Fallback(MONITOR, "candidate", "safe")


def test_the_candidate_acts_while_all_is_well():
    fallback = trial()
    for time in range(100):
        assert fallback.update(time, {"angle": -0.09, "reach": 0.99}) == "candidate"
    assert fallback.phase is Phase.TRYING
    assert (fallback.failed, fallback.reason, fallback.failed_at) == (False, "", None)


@pytest.mark.parametrize(
    ("signals", "reason"),
    [
        ({"angle": 0.1, "reach": 0.0}, "fell"),
        ({"angle": -0.2, "reach": 0.0}, "fell"),
        ({"angle": 0.0, "reach": -1.0}, "reach"),
        ({"angle": 0.2, "reach": 2.0}, "fell"),
        ({"angle": math.nan, "reach": 0.0}, "fell"),
        ({"angle": 0.0}, "reach"),
    ],
)
def test_a_limit_reached_calls_the_safe_controller_and_says_why(signals, reason):
    fallback = trial()
    fallback.update(0.0, FINE)
    limited = Fallback(SafetyMonitor(MONITOR.limits, reasons=MONITOR.reasons), "candidate", "safe")
    assert limited.update(3.0, signals) == "safe"
    assert limited.phase is Phase.RECOVERING
    assert (limited.failed, limited.reason, limited.failed_at) == (True, reason, 3.0)


def test_recovery_needs_a_calm_second_without_a_break():
    fallback = trial()
    fallback.update(2.0, {"angle": 0.0, "reach": 1.5})
    for time, signals in [(2.5, FINE), (3.4, FINE), (3.45, {"angle": 0.2, "reach": 0.0}), (3.5, FINE), (4.4, FINE)]:
        assert fallback.update(time, signals) == "safe"
        assert fallback.phase is Phase.RECOVERING
    assert fallback.update(4.5, FINE) == "safe"
    assert fallback.phase is Phase.RECOVERED
    assert (fallback.failed, fallback.reason, fallback.failed_at) == (True, "reach", 2.0)


def test_the_candidate_never_comes_back():
    fallback = trial()
    fallback.update(0.0, {"angle": 0.2, "reach": 0.0})
    for time in range(1, 20):
        assert fallback.update(time, FINE) == "safe"
    assert fallback.phase is Phase.RECOVERED


def test_patience_ends_with_the_emergency_stop():
    fallback = trial()
    outside = {"angle": 0.0, "reach": 1.5}
    fallback.update(1.0, outside)
    assert fallback.update(5.9, outside) == "safe"
    assert fallback.update(6.0, outside) is None
    assert fallback.phase is Phase.STOPPED
    assert fallback.update(7.0, FINE) is None


@pytest.mark.parametrize("before", [[], [{"angle": 0.2, "reach": 0.0}]])
def test_an_emergency_limit_stops_in_any_phase(before):
    fallback = trial()
    for signals in before:
        fallback.update(0.0, signals)
    assert fallback.update(1.0, {"angle": 0.6, "reach": 0.0}) is None
    assert fallback.phase is Phase.STOPPED
    assert fallback.reason == "fell"
    assert fallback.failed_at == (0.0 if before else 1.0)


def test_an_emergency_stop_also_ends_a_recovered_trial():
    fallback = trial()
    for time, angle in [(0.0, 0.2), (1.0, 0.0), (2.0, 0.0)]:
        fallback.update(time, {"angle": angle, "reach": 0.0})
    assert fallback.phase is Phase.RECOVERED
    assert fallback.update(3.0, {"angle": 0.6, "reach": 0.0}) is None
    assert fallback.phase is Phase.STOPPED


def test_a_stop_without_a_limit_of_its_own_still_has_a_reason():
    fallback = Fallback(SafetyMonitor({"reach": 1.0}, stops={"button": 1.0}), "candidate", "safe")
    assert fallback.update(0.0, {"reach": 0.0, "button": 1.0}) is None
    assert fallback.reason == "button"


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(-2, 2)), min_size=1, max_size=60))
def test_whatever_happens_the_candidate_acts_only_before_the_first_limit(readings):
    fallback, tripped = trial(), False
    for number, (angle, reach) in enumerate(readings):
        acting = fallback.update(0.1 * number, {"angle": angle, "reach": reach})
        tripped = tripped or abs(angle) >= 0.1 or abs(reach) >= 1.0
        assert (acting == "candidate") == (not tripped)
        assert fallback.failed == tripped == bool(fallback.reason)
        assert (acting is None) == (fallback.phase is Phase.STOPPED)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"limits": {}}, "`limits` must name at least one signal; got none."),
        ({"limits": {"angle": 0.0}}, "`limits` must be numbers > 0; got 0.0 for 'angle'."),
        ({"limits": {"angle": math.nan}}, "`limits` must be numbers > 0; got nan for 'angle'."),
        ({"limits": {"angle": "1"}}, "`limits` must be numbers > 0; got '1' for 'angle'."),
        ({"limits": {"angle": 1.0}, "stops": {"angle": -1}}, "`stops` must be numbers > 0; got -1 for 'angle'."),
        ({"limits": {"angle": 1.0}, "calm": -1.0}, "`calm` must be a finite number of seconds >= 0; got -1.0."),
        ({"limits": {"angle": 1.0}, "patience": math.inf}, "`patience` must be a finite number of seconds"),
    ],
)
def test_bad_monitors_are_refused(settings, message):
    with pytest.raises(InputError) as error:
        SafetyMonitor(**settings)
    assert message in str(error.value)
