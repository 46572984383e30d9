"""Recording outcomes, when others write too."""

from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from crashbo import VIOLATED, InputError
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.programs import Ending
from crashbo.store.running import record_ending
from crashbo.store.storage import StudyError
from crashbo.store.study import Study, best_seen, open_study
from tests.store.helpers import make_study


def test_two_processes_cannot_finish_one_trial(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    ask(study)
    other = open_study(study.place)
    before = study.trial(0)
    recording.tell(other, 0, 0.5, {"reach": 1.0, "temp": 2.0})
    with pytest.raises(InputError, match="which is finished"):
        recording.tell(study, 0, 0.7, {"reach": 1.0, "temp": 2.0})
    monkeypatch.setattr(recording, "_under_way", lambda *args: before)  # read before the other process wrote
    with pytest.raises(StudyError, match="finished by another process"):
        recording.tell(study, 0, 0.7, {"reach": 1.0, "temp": 2.0})
    assert study.records()[0].objective == 0.5


def test_nothing_is_told_of_a_trial_that_waits(study: Study) -> None:
    study.inner.enqueue_trial({"x": 0.5})
    with pytest.raises(InputError, match="which has no params yet"):
        recording.tell(study, 0, 0.5, {"reach": 1.0, "temp": 2.0})
    assert study.trial(0).state == TrialState.WAITING


def test_the_best_trial_broke_no_limit(study: Study) -> None:
    recording.add(study, {"x": 0.1}, 0.9, {"reach": 1.0, "temp": 10.0})
    recording.add(study, {"x": 0.2}, 0.1, {"reach": VIOLATED, "temp": 10.0})
    recording.add(study, {"x": 0.3}, 0.2, {"reach": 1.0, "temp": 81.0})
    recording.add(study, {"x": 0.4}, None, {"reach": 1.0}, "fell")
    found = best_seen(study.definition, study.records())
    assert found is not None
    assert found.number == 0


def test_a_maximum_is_best_if_more_is_better(tmp_path: Path) -> None:
    study = make_study(tmp_path, direction="maximize")
    for cost in (0.1, 0.7, 0.3):
        recording.add(study, {"x": 0.5}, cost)
    found = best_seen(study.definition, study.records())
    assert found is not None
    assert found.objective == 0.7


def test_a_result_that_comes_late_is_not_lost(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    for _ in range(3):
        ask(study)
    for number in range(3):
        recording.transient(study, number, "its worker was lost")
    record_ending(study, 0, Ending("finished", 0.5))
    record_ending(study, 1, Ending("crashed", None, {}, "fell"))
    record_ending(study, 2, Ending("transient", reason="interrupted"))
    found = study.records()
    assert [(record.status, record.objective) for record in found] == [
        ("finished", 0.5),
        ("crashed", None),
        ("ignored", None),
    ]
    with pytest.raises(InputError, match="which is finished"):
        record_ending(study, 0, Ending("finished", 0.9))
    assert study.records()[0].objective == 0.5


def test_a_constraint_that_was_never_seen_can_be_taken_back(study: Study) -> None:
    recording.add(study, {"x": 0.4}, None, {"reach": 1.0, "temp": 20.0}, "fell")
    now = recording.correct(study, 0, status="crashed", clear=["reach"])
    assert (now.status, now.constraints, now.reason) == ("crashed", {"temp": 20.0}, "fell")
    assert study.records()[0].constraints == {"temp": 20.0}
    first, last = recording.history(study, 0), recording.correct(study, 0, status="crashed", reason="")
    assert first[0]["constraints"] == {"temp": 20.0}
    assert (last.constraints, last.reason) == ({"temp": 20.0}, "")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"status": "crashed", "clear": ["wind"]}, "got 'wind', it has: reach, temp"),
        ({"status": "crashed", "clear": ["temp"]}, "got 'temp', trial 0 has none"),
        ({"status": "crashed", "clear": ["reach"], "constraints": {"reach": 2.0}}, "either cleared or given a value"),
        (
            {"status": "finished", "objective": 0.5, "clear": ["reach"], "constraints": {"temp": 1.0}},
            "`reach` must be told",
        ),
    ],
)
def test_what_cannot_be_taken_back(study: Study, more: dict[str, Any], message: str) -> None:
    recording.add(study, {"x": 0.4}, None, {"reach": 1.0}, "fell")
    with pytest.raises(InputError, match=message):
        recording.correct(study, 0, **more)
    assert recording.history(study, 0) == []


def test_a_finished_trial_that_crashed_after_all_has_no_old_reason(study: Study) -> None:
    recording.add(study, {"x": 0.4}, None, {}, "fell")
    recording.correct(study, 0, status="finished", objective=0.5, constraints={"reach": 1.0, "temp": 2.0})
    assert recording.correct(study, 0, status="crashed").reason == ""


def statements(study: Study, number: int) -> int:
    """How many statements it takes to open the study anew and to tell a trial."""
    from sqlalchemy import event
    from sqlalchemy.engine import Engine

    seen: list[str] = []

    def count(connection: object, cursor: object, statement: str, *rest: object) -> None:
        seen.append(statement)

    event.listen(Engine, "before_cursor_execute", count)
    try:
        recording.tell(open_study(study.place, quick=True), number, 0.5, {"reach": 1.0, "temp": 2.0})
    finally:
        event.remove(Engine, "before_cursor_execute", count)
    return len(seen)


def test_telling_reads_no_more_in_a_long_study(study: Study) -> None:
    ask(study)
    first = statements(study, 0)
    for n in range(30):
        recording.add(study, {"x": n / 30}, 0.1, {"reach": 1.0, "temp": 2.0})
    ask(study)
    assert statements(study, 31) == first


def test_corrections_of_an_older_version_are_read_and_kept(study: Study) -> None:
    recording.add(study, {"x": 0.4}, 1.0, {"reach": 1.0, "temp": 2.0})
    old = {
        "time": "2026-01-01T00:00:00+00:00",
        "status": "crashed",
        "objective": None,
        "constraints": {},
        "reason": "a",
    }
    study.inner.set_user_attr("crashbo:correction:0", [old])
    assert study.records()[0].reason == "a"
    recording.correct(study, 0, status="crashed", reason="b", version=1)
    assert [entry["reason"] for entry in recording.history(study, 0)] == ["a", "b"]


def test_a_point_that_has_crashed_is_not_tried_again(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    first = ask(study)
    recording.transient(study, 0, "no link")
    again = ask(study)
    assert first is not None
    assert again is not None
    assert again.params == first.params
    recording.correct(study, 0, status="crashed", reason="it fell, as the video shows")
    recording.transient(study, 1, "no link")  # says nothing, but the point is known to crash
    other = ask(study)
    assert other is not None
    assert other.params != first.params
