"""What follows from a history is a new one; the old one stays as it was."""

import pytest

from crashbo import CRASHED
from crashbo.errors import InputError
from crashbo.problem.history import History
from crashbo.problem.outcome import Outcome, Trial
from crashbo.problem.problem import Problem
from crashbo.problem.suggestion import Reason

BEGUN = History(Problem.of({"x": (0.0, 1.0)}, constraints=["g"]))
WHY = Reason("given")


def test_a_trial_takes_the_place_of_its_suggestion() -> None:
    out = BEGUN.suggested({"x": 0.1}, WHY).suggested({"x": 0.2}, WHY)
    told = out.told(out.pending[1], Outcome(1.0, {"g": None})).told({"x": 0.3}, Outcome(None, {}, "fell"))
    assert [trial.number for trial in told.trials] == [1, 2]
    assert [one.number for one in told.pending] == [0]
    assert (told.asked, told.next_number) == (2, 3)
    assert (out.trials, BEGUN.pending) == ((), ())
    with pytest.raises(InputError, match="still out; got number 1, told already"):
        told.told(out.pending[1], Outcome(1.0, {"g": 0.0}))


def test_a_correction_keeps_what_is_not_given() -> None:
    told = BEGUN.told({"x": 0.3}, Outcome(None, {"g": None}, "fell"))
    assert told.corrected(0).trials == told.trials
    assert told.corrected(0, constraints={"g": 2.0}).trials[0] == Trial(0, {"x": 0.3}, None, {"g": 2.0}, "fell")
    assert told.corrected(0, 1.5).trials[0] == Trial(0, {"x": 0.3}, 1.5, {"g": None})
    assert told.corrected(0, 1.5).corrected(0, CRASHED, reason="slipped").trials[0].reason == "slipped"
    assert told.without_trial(0).trials == ()
    with pytest.raises(InputError, match="`number` must be that of a finished trial; got 3, there are: 0 to 0"):
        told.without_trial(3)


def test_errors_stay_with_their_suggestions() -> None:
    out = BEGUN.suggested({"x": 0.1}, WHY)
    broken = out.with_error(out.number_out({"x": 0.1}), "no such file")
    assert [one.error for one in broken.failures] == ["no such file"]
    assert broken.without(0).failures == ()
    with pytest.raises(InputError, match="`params` must be a suggestion that is still out"):
        out.number_out({"x": 0.7})


def test_points_that_were_given_come_once_each() -> None:
    given = BEGUN.with_initial_point({"x": 0.5}).with_initial_point({"x": 0.6})
    assert given.next_given == {"x": 0.5}
    assert given.suggested({"x": 0.5}, WHY).next_given == {"x": 0.6}
    assert given.told({"x": 0.5}, Outcome(1.0, {"g": 0.0})).with_pending([{"x": 0.6}]).next_given is None
