"""Asking, alone and among others."""

import threading
import time
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState

from crashbo import Crash, InputError
from crashbo.studies import asking, recording
from crashbo.studies.asking import ask
from crashbo.studies.storage import StudyError, find_place, open_storage
from crashbo.studies.study import Study, create_study, open_study
from crashbo.studies.workers import WORKER, Watch, me
from tests.studies.helpers import make_study


def claim(study: Study, **mark: object) -> int:
    """A running trial without params, as another process has it before its suggestion."""
    trial = optuna.trial.create_trial(state=TrialState.RUNNING, user_attrs={WORKER: me("run") | mark})
    storage = study.inner._storage
    return int(storage.get_trial(storage.create_new_trial(study.inner._study_id, template_trial=trial)).number)


def test_a_new_process_goes_on_where_the_last_one_stopped(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    whole, cut = (make_study(tmp_path / name, options={"initial": 3}) for name in "ab")
    points = []
    for study in (whole, cut):
        found = []
        for _ in range(5):
            study = open_study(study.place) if study.place == cut.place else study
            asked = ask(study)
            assert asked is not None
            recording.tell(study, asked.number, (asked.params["x"] - 0.3) ** 2)
            found.append(asked.params["x"])
        points.append(found)
    assert points[0] == points[1]


def test_an_ask_waits_for_its_turn(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    first = claim(study)
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.append(ask(open_study(study.place))))
    thread.start()
    time.sleep(0.5)
    assert thread.is_alive()
    assert found == []
    recording.transient(study, first, "over")
    thread.join(300)
    assert found


def test_a_dead_process_blocks_nobody(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    first = claim(study, pid=2**22 + 1)  # beyond the largest process number
    asked = ask(study)
    assert asked is not None
    assert asked.number == first + 1
    assert study.records()[first].reason == "its worker was lost"


def test_a_silent_process_elsewhere_blocks_for_a_while_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)
    claim(study, host="elsewhere")
    monkeypatch.setattr(asking, "_PATIENCE", 0.3)
    begin = time.monotonic()
    assert ask(study) is not None
    assert time.monotonic() - begin > 0.3
    assert study.records()[0].status == "ignored"


def test_a_worker_elsewhere_is_lost_when_its_count_stands_still(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    asked = ask(study, kind="run")
    assert asked is not None
    storage = study.inner._storage
    watch = Watch(still_seconds=0.2)

    def beat(count: int) -> None:
        mark = dict(asked.worker) | {"host": "elsewhere", "beat": count}
        storage.set_trial_user_attr(study.trial(0)._trial_id, WORKER, mark)

    for count in range(3):
        beat(count)
        assert watch.release(study) == []
        time.sleep(0.15)
    time.sleep(0.2)
    assert watch.release(study) == [0]
    assert study.records()[0].transient


def test_a_trial_asked_by_hand_is_never_taken_for_lost(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    asked = ask(study)
    assert asked is not None
    mark = dict(asked.worker) | {"pid": 2**22 + 1}  # `crashbo ask` ends long before its trial
    study.inner._storage.set_trial_user_attr(study.trial(0)._trial_id, WORKER, mark)
    assert Watch().release(study) == []
    recording.tell(study, 0, 0.5)


def test_enqueued_trials_come_first(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    study.inner.enqueue_trial({"x": 0.25})
    asked = ask(study)
    assert asked is not None
    assert asked.params == {"x": 0.25}


def test_what_is_not_needed_is_withdrawn(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    assert ask(study, needed=lambda opened, number: False) is None
    [record] = study.records()
    assert (record.status, record.params) == ("ignored", {})


def test_a_failing_suggestion_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)

    def fail(*args: object) -> None:
        raise Crash("no")

    monkeypatch.setattr(asking, "_suggest", fail)
    with pytest.raises(Crash):
        ask(study)
    assert study.records()[0].status == "ignored"


def test_a_study_whose_making_was_cut_short_is_completed(tmp_path: Path) -> None:
    place = find_place(str(tmp_path / "crashbo.db"), "arm")
    optuna.create_study(storage=open_storage(place, create=True), study_name="arm")
    with pytest.raises(InputError, match="has no CrashBO space"):
        open_study(place)
    definition = make_study(tmp_path).definition
    assert create_study(place, definition).definition == definition
    assert open_study(place).definition == definition
    with pytest.raises(StudyError, match="There is a study 'arm'"):
        create_study(place, definition)
