"""The state everyone sees."""

import json
from typing import Any

import pytest

from crashbo.console.desk import TakenError
from crashbo.console.hub import Hub
from crashbo.console.snapshot import Reader
from crashbo.console.words import why
from crashbo.problem.parameters import Float
from crashbo.store import recording
from crashbo.store.editing import Edit, edit
from crashbo.store.storage import StudyError
from crashbo.store.study import Study
from tests.console.helpers import QuickModel, reopen

PARAMS = {"kp": 2.0, "kd": 0.5}


@pytest.fixture
def hub(study: Study) -> Hub:
    """A hub that is not started: nothing happens by itself."""
    model = QuickModel(study, silent=True)
    made = Hub(study, model)
    model.start(made.hear)
    made.refresh()
    return made


def offer(hub: Hub, **changes: Any) -> None:
    seen = hub.snapshot
    found = {"params": PARAMS, "beliefs": {"mode": "mes"}, "expected": {}} | changes
    hub.hear({"kind": "offer", "basis": seen.basis, "count": len(seen.rows), "offer": found, "problem": ""})


def state(hub: Hub) -> Any:
    return json.loads(hub.state())


def test_every_change_is_told_once(hub: Hub, study: Study) -> None:
    heard: list[int] = []
    deaf = hub.listen(heard.append)
    hub.refresh()
    assert heard == []
    recording.add(reopen(study), PARAMS, 1.0, {"reach": 1.0})
    hub.refresh()
    hub.refresh()
    assert len(heard) == 1
    deaf()
    offer(hub)
    assert len(heard) == 1
    assert hub.listeners == 0


def test_the_model_looks_only_at_what_is_new_to_it(hub: Hub, study: Study) -> None:
    assert isinstance(hub.model, QuickModel)
    before = hub.model.looks
    number = hub.desk.start(PARAMS)
    hub.refresh()
    study.inner._storage.set_trial_user_attr(study.trial(number)._trial_id, "note", "of another program")
    hub.refresh()
    assert hub.model.looks == before + 1


def test_a_corrected_reason_is_new_to_the_model(hub: Hub, study: Study) -> None:
    assert isinstance(hub.model, QuickModel)
    recording.add(study, PARAMS, None, {}, "fell")
    hub.refresh()
    before = hub.model.looks
    recording.correct(reopen(study), 0, status="crashed", reason="battery")
    hub.refresh()
    assert state(hub)["trials"][0]["reason"] == "battery"
    assert hub.model.looks == before + 1


@pytest.mark.parametrize("wanted", [Edit(options={"risk": 0.1}), Edit(parameters={"kp": Float(0.0, 20.0)})])
def test_an_edited_study_is_new_to_the_model(hub: Hub, study: Study, wanted: Edit) -> None:
    """A suggestion for what the study was before is shown, but not to be taken."""
    assert isinstance(hub.model, QuickModel)
    offer(hub)
    key, before = state(hub)["offer"]["key"], hub.model.looks
    edited = edit(reopen(study), wanted)
    hub.refresh()
    hub.refresh()
    assert hub.model.looks == before + 1
    assert hub.study.definition == hub.desk.study.definition == edited.definition
    assert state(hub)["info"]["parameters"][0]["high"] == edited.definition.space["kp"].high
    with pytest.raises(TakenError, match="newer suggestion"):
        hub.claim(key)
    offer(hub)
    assert hub.claim(state(hub)["offer"]["key"]).params == PARAMS


def test_an_edited_unit_is_shown_and_leaves_the_suggestion(hub: Hub, study: Study) -> None:
    assert isinstance(hub.model, QuickModel)
    offer(hub)
    before = hub.model.looks
    edit(reopen(study), Edit(units={"kd": "s"}))
    hub.refresh()
    assert state(hub)["info"]["units"]["kd"] == "s"
    assert hub.model.looks == before
    assert hub.claim(state(hub)["offer"]["key"]).params == PARAMS


def test_a_suggestion_comes_and_goes(hub: Hub) -> None:
    offer(hub)
    key = state(hub)["offer"]["key"]
    assert state(hub)["model"]["busy"] is False
    found = hub.claim(key)
    hub.gone(found)
    assert state(hub)["offer"] is None
    with pytest.raises(TakenError, match="taken or replaced"):
        hub.claim(key)
    offer(hub)  # said twice by the model: still gone
    assert state(hub)["offer"] is None


def test_the_same_suggestion_keeps_its_key(hub: Hub) -> None:
    offer(hub)
    key = state(hub)["offer"]["key"]
    offer(hub)
    assert hub.claim(key).params == PARAMS


def test_after_a_result_from_this_page_older_suggestions_are_not_taken(hub: Hub) -> None:
    number = hub.desk.start(PARAMS)
    hub.refresh()
    offer(hub, params={"kp": 1.0, "kd": 0.1})
    key = state(hub)["offer"]["key"]
    recording.tell(hub.study, number, 1.0, {"reach": 1.0})
    hub.wrote()
    with pytest.raises(TakenError, match="newer suggestion"):
        hub.claim(key)  # before the storage is read again
    hub.refresh()
    with pytest.raises(TakenError, match="newer suggestion"):
        hub.claim(key)
    assert state(hub)["offer"]["current"] is False
    offer(hub, params={"kp": 1.0, "kd": 0.1})
    assert hub.claim(state(hub)["offer"]["key"]).count == 1


def test_a_write_that_was_read_back_before_it_was_noted_settles_too(hub: Hub) -> None:
    number = hub.desk.start(PARAMS)
    recording.tell(hub.study, number, 1.0, {"reach": 1.0})
    hub.refresh()
    offer(hub)
    hub.wrote()
    hub.refresh()
    assert state(hub)["offer"]["current"] is True


def test_a_model_that_gave_up_is_asked_again(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(hub.model, QuickModel)
    hub.hear({"kind": "failed", "problem": "No memory."})
    assert state(hub)["model"] == {"ready": False, "basis": "", "problem": "No memory.", "busy": False}
    before = hub.model.looks
    hub._encourage()
    assert hub.model.looks == before
    monkeypatch.setattr(hub, "_look_again", 0.0)
    hub._encourage()
    hub._encourage()
    assert hub.model.looks == before + 1
    hub.hear({"kind": "model", "ready": True, "basis": "x", "count": 0, "problem": ""})
    assert state(hub)["model"]["problem"] == ""


def test_trouble_with_the_storage_is_told_and_forgotten(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Any:
        raise StudyError("The database is locked.")

    with monkeypatch.context() as patch:
        patch.setattr(hub._reader, "read", broken)
        hub.refresh()
    assert state(hub)["trouble"] == "The database is locked."
    hub.refresh()
    assert state(hub)["trouble"] == ""


def test_rows_tell_what_became_of_a_trial(study: Study) -> None:
    study.inner.enqueue_trial(PARAMS)
    study.inner.add_trial(recording.make_trial(study, PARAMS, None, {}, "fell"))
    recording.add(study, PARAMS, 1.0, {"reach": 1.0})
    recording.correct(study, 2, status="deleted")
    assert [row["status"] for row in Reader(reopen(study)).read().rows] == ["waiting", "crashed", "deleted"]


def test_reasons_are_sentences() -> None:
    assert why({}) == ""
    assert why({"why": "another try of trial 3"}) == "Another try of trial 3."
    assert why({"mode": "mes", "success_probability": 0.3}).endswith("it may well crash.")
    assert "crash" not in why({"mode": "mes", "success_probability": 0.9})
