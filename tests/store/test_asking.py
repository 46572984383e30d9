"""Asking, alone and among others."""

import os
import socket
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from crashbo import Crash, InputError
from crashbo.store import asking, recording, workers
from crashbo.store.asking import ask
from crashbo.store.patience import patience_of
from crashbo.store.storage import StudyError, find_place, open_storage
from crashbo.store.study import Study, create_study, open_study
from crashbo.store.workers import WORKER, Watch, put_mark, under_way, worker_mark
from tests.processes import wait_until
from tests.store.helpers import make_study


def claim(study: Study, **mark: object) -> int:
    """A running trial without params, as another process has it before its suggestion."""
    trial = optuna.trial.create_trial(state=TrialState.RUNNING, user_attrs={WORKER: worker_mark("run") | mark})
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


def test_an_ask_waits_for_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)
    first = claim(study)
    found: list[object] = []
    looks: list[Study] = []
    monkeypatch.setattr(asking, "under_way", lambda opened: looks.append(opened) or under_way(opened))
    thread = threading.Thread(target=lambda: found.append(ask(open_study(study.place))))
    thread.start()
    wait_until(lambda: len(looks) > 4)
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
    claim(study, machine="elsewhere")
    monkeypatch.setattr(asking, "_PATIENCE", 0.3)
    begin = time.monotonic()
    assert ask(study) is not None
    assert time.monotonic() - begin > 0.3
    assert study.records()[0].status == "ignored"


def test_a_process_here_that_takes_long_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)
    first = claim(study)
    monkeypatch.setattr(asking, "_PATIENCE", 0.05)
    other = open_study(study.place)
    timer = threading.Timer(0.6, lambda: recording.transient(other, first, "done"))
    begin = time.monotonic()
    timer.start()
    assert ask(study) is not None
    assert time.monotonic() - begin > 0.5
    assert study.records()[first].reason == "done"
    claim(study)
    monkeypatch.setattr(asking, "_PATIENCE_HERE", 0.05)  # but not for ever
    assert ask(study) is not None
    assert study.records()[2].reason == "withdrawn before it was suggested"


def test_beats_of_a_process_elsewhere_are_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)
    first = claim(study, machine="elsewhere")
    monkeypatch.setattr(asking, "_PATIENCE", 1.0)
    other, ended = open_study(study.place), threading.Event()

    def beat() -> None:
        for count in range(1, 8):
            put_mark(other, first, worker_mark("run") | {"machine": "elsewhere", "beat": count})
            time.sleep(0.25)  # beats come within the patience, and go on for longer
        recording.transient(other, first, "done")
        ended.set()

    threading.Thread(target=beat).start()
    assert ask(study) is not None
    assert ended.wait(10)
    assert study.records()[first].reason == "done"


def test_whoever_was_given_up_asks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = make_study(tmp_path)
    suggest, seen = asking._suggest, []

    def late(trial: optuna.Trial, *more: Any) -> Any:
        if trial.number < 2:
            recording.transient(open_study(study.place), trial.number, "withdrawn before it was suggested")
        return suggest(trial, *more)

    monkeypatch.setattr(asking, "_suggest", late)
    asked = ask(study, begun=lambda number, worker: seen.append((number, worker["pid"])))
    assert asked is not None
    assert seen == [(number, os.getpid()) for number in range(3)]
    assert [record.status for record in study.records()] == ["ignored", "ignored", "pending"]
    monkeypatch.setattr(asking, "_TRIES", 2)
    monkeypatch.setattr(asking, "_suggest", lambda trial, *more: late_always(study, suggest, trial, *more))
    with pytest.raises(StudyError, match="2 times in a row"):
        ask(study)


def late_always(study: Study, suggest: Any, trial: optuna.Trial, *more: Any) -> Any:
    recording.transient(open_study(study.place), trial.number, "withdrawn before it was suggested")
    return suggest(trial, *more)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The clock of watches: it stands still until `now` is changed."""
    found = SimpleNamespace(now=0.0, monotonic=lambda: found.now)
    monkeypatch.setattr(workers, "time", found)
    return found


def test_a_worker_elsewhere_is_lost_when_its_count_stands_still(tmp_path: Path, clock: SimpleNamespace) -> None:
    study = make_study(tmp_path)
    asked = ask(study, kind="run")
    assert asked is not None
    storage = study.inner._storage
    watch = Watch(still_seconds=0.2)

    def beat(count: int) -> None:
        mark = dict(asked.worker) | {"machine": "elsewhere", "beat": count}
        storage.set_trial_user_attr(study.trial(0)._trial_id, WORKER, mark)

    for count in range(3):
        beat(count)
        assert watch.release(study) == []
        clock.now += 0.15
    clock.now += 0.1
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
    with pytest.raises(InputError, match="must have a trial with parameters; 'arm' has none yet"):
        open_study(place)
    definition = make_study(tmp_path).definition
    assert create_study(place, definition).definition == definition
    assert open_study(place).definition == definition
    with pytest.raises(StudyError, match="There is a study 'arm'"):
        create_study(place, definition)


def test_machines_of_one_name_do_not_release_each_others_trials(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    asked = ask(study, kind="run")
    assert asked is not None
    clone = {"machine": "another boot of a cloned robot", "pid": 2**22 + 1}  # no such process here
    assert asked.worker["host"] == socket.gethostname()
    study.inner._storage.set_trial_user_attr(study.trial(0)._trial_id, WORKER, dict(asked.worker) | clone)
    assert Watch().release(study) == []
    recording.tell(study, 0, 0.5)


def test_a_mark_of_an_older_version_is_given_up_when_it_stands_still(tmp_path: Path, clock: SimpleNamespace) -> None:
    study = make_study(tmp_path)
    old = {"kind": "run", "host": f"{socket.gethostname()} pid:[1]", "pid": 2**22 + 1, "started": 1, "beat": 0}
    claim(study)
    study.inner._storage.set_trial_user_attr(study.trial(0)._trial_id, WORKER, old)
    watch = Watch(still_seconds=0.1)
    assert watch.release(study) == []
    clock.now += 0.15
    assert watch.release(study) == [0]


def test_an_outage_is_no_sign_of_death(tmp_path: Path, clock: SimpleNamespace) -> None:
    study = make_study(tmp_path)
    claim(study, machine="elsewhere")
    watch = Watch(still_seconds=0.1)
    assert watch.release(study) == []
    clock.now += 0.15
    patience_of(study.inner).outages += 1  # nobody could write meanwhile
    assert watch.release(study) == []
    clock.now += 0.15
    assert watch.release(study) == [0]
