"""Everything that is written, and that two people cannot take the same suggestion."""

import threading
from dataclasses import replace
from typing import Any

import optuna
import pytest

from crashbo.console import desk as desk_module
from crashbo.console.desk import Desk, Offer, TakenError
from crashbo.console.forms import Form
from crashbo.console.snapshot import Reader
from crashbo.errors import InputError
from crashbo.store import recording
from crashbo.store.study import Study
from crashbo.store.workers import WORKER, worker_mark
from tests.console.helpers import reopen

PARAMS = {"kp": 2.0, "kd": 0.5}


def offer(study: Study, **changes: Any) -> Offer:
    seen = Reader(study).read()
    beliefs = {"mode": "mes", "why": "mes; success probability 0.75", "success_probability": 0.75}
    made = Offer("key", seen.basis, len(seen.rows), PARAMS, beliefs, {"objective": [1.0, 0.1]})
    return replace(made, **changes)


def form(**body: Any) -> Form:
    return Form(body, tuple(body))


def row(study: Study, number: int) -> Any:
    return Reader(reopen(study)).read().rows[number]


def test_a_taken_suggestion_is_a_running_trial_with_its_reasons(study: Study) -> None:
    number = Desk(study).take(offer(study), "Anna")
    found = row(study, number)
    assert (found["status"], found["params"], found["by"]) == ("pending", PARAMS, "Anna")
    assert found["expected"] == {"objective": [1.0, 0.1]}
    assert found["success_probability"] == 0.75
    assert "best point" in found["why"]


def test_the_same_suggestion_cannot_be_taken_twice(study: Study) -> None:
    one = offer(study)
    desk = Desk(study)
    desk.take(one)
    with pytest.raises(TakenError, match="trial 0"):
        desk.take(one)
    with pytest.raises(TakenError, match="trial 0"):
        Desk(reopen(study)).take(one)
    assert len(study.records()) == 1


def test_of_many_processes_at_once_one_gets_it(study: Study) -> None:
    one, taken, lost = offer(study), [], []
    desks = [Desk(reopen(study)) for _ in range(6)]
    start = threading.Barrier(len(desks))

    def press(desk: Desk) -> None:
        start.wait()
        try:
            taken.append(desk.take(one))
        except TakenError:
            lost.append(desk)

    threads = [threading.Thread(target=press, args=(desk,)) for desk in desks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(taken), len(lost)) == (1, 5)
    states = [found["status"] for found in Reader(reopen(study)).read().rows]
    assert states.count("pending") == 1
    assert set(states) <= {"pending", "skipped"}


def test_one_that_lost_the_race_in_the_storage_is_withdrawn(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process writes between the first check and our own trial."""
    one, desk, other = offer(study), Desk(study), Desk(reopen(study))
    store = recording.store

    def late(given: Study, trial: Any, key: str | None) -> int:
        monkeypatch.setattr(recording, "store", store)
        other.take(one)
        return store(given, trial, key)

    monkeypatch.setattr(recording, "store", late)
    with pytest.raises(TakenError, match="trial 0"):
        desk.take(one)
    assert [found["status"] for found in Reader(reopen(study)).read().rows] == ["pending", "skipped"]
    assert row(study, 1)["reason"] == "taken by someone else"


def starting(study: Study, **changes: Any) -> optuna.trial.FrozenTrial:
    """A trial of `crashbo ask` that has no params yet."""
    worker = {**worker_mark("ask"), **changes}
    return optuna.trial.create_trial(state=optuna.trial.TrialState.RUNNING, user_attrs={WORKER: worker})


def test_nothing_is_taken_while_another_process_is_being_given_a_suggestion(study: Study) -> None:
    """It will be given the same one: it has the lower number and waits for nobody."""
    one = offer(study)
    recording.store(reopen(study), starting(study))
    with pytest.raises(TakenError, match="Trial 0 is just being given a suggestion"):
        Desk(study).take(one)
    with pytest.raises(TakenError, match="Trial 0 is just being given a suggestion"):
        Desk(study).take(replace(one, count=1))  # computed while that one had no params
    assert len(study.records()) == 1


def test_one_that_began_between_check_and_storing_is_seen_too(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    one, store = offer(study), recording.store

    def late(given: Study, trial: Any, key: str | None) -> int:
        store(reopen(study), starting(study))
        return store(given, trial, key)

    monkeypatch.setattr(recording, "store", late)
    with pytest.raises(TakenError, match="Trial 0 is just being given a suggestion"):
        Desk(study).take(one)
    assert row(study, 1)["status"] == "skipped"


def test_an_experiment_under_way_is_not_taken_again_though_the_offer_is_newer(study: Study) -> None:
    Desk(reopen(study)).take(offer(study))
    with pytest.raises(TakenError, match="trial 0"):
        Desk(study).take(offer(study))


@pytest.mark.parametrize("worker", [{"pid": 2**22 + 1}, {"machine": "another"}])
def test_a_trial_whose_process_has_ended_blocks_nobody(
    study: Study, worker: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    recording.store(study, starting(study, **worker))
    if "machine" in worker:  # there is no telling but by time
        monkeypatch.setattr(desk_module, "_ASKING", -1.0)
    assert Desk(study).take(offer(study)) == 1


def test_a_skipped_suggestion_is_kept_but_teaches_nothing(study: Study) -> None:
    number = Desk(study).skip(offer(study), "Ben")
    assert (row(study, number)["status"], row(study, number)["by"]) == ("skipped", "Ben")
    assert study.records()[number].status == "ignored"
    assert not study.records()[number].transient


def test_a_skipped_trial_that_was_run_after_all_is_skipped_no_more(study: Study) -> None:
    number = Desk(study).skip(offer(study))
    Desk(study).correct(form(number=number, status="crashed", reason="fell"))
    found = row(study, number)
    assert (found["status"], found["reason"]) == ("crashed", "fell")
    assert [one["status"] for one in found["history"]] == ["skipped", "crashed"]


def test_own_values_may_repeat_a_trial_under_way(study: Study) -> None:
    desk = Desk(study)
    assert [desk.start(PARAMS), desk.start(PARAMS)] == [0, 1]
    assert row(study, 1)["why"] == "Values that a person chose."
    with pytest.raises(InputError, match="kp"):
        desk.start({"kp": 11.0, "kd": 0.5})


def test_a_queued_trial_is_taken_once(study: Study) -> None:
    study.inner.enqueue_trial(PARAMS)
    one = offer(study, waiting=0)
    assert Desk(study).take(one, "Anna") == 0
    assert (row(study, 0)["status"], row(study, 0)["params"]) == ("pending", PARAMS)
    with pytest.raises(TakenError):
        Desk(reopen(study)).take(one)
    recording.tell(study, 0, 1.0, {"reach": 2.0})
    assert study.records()[0].objective == 1.0


def test_a_queued_trial_can_be_skipped(study: Study) -> None:
    study.inner.enqueue_trial(PARAMS)
    one = offer(study, waiting=0)
    Desk(study).skip(one)
    assert row(study, 0)["status"] == "skipped"
    with pytest.raises(TakenError):
        Desk(study).skip(one)


def test_a_result_is_stored_with_its_constraints(study: Study) -> None:
    desk = Desk(study)
    number = desk.start(PARAMS)
    desk.tell(form(number=number, objective="0.73", constraints={"reach": "violated"}))
    found = row(study, number)
    assert (found["status"], found["objective"], found["constraints"]) == ("finished", 0.73, {"reach": "violated"})


def test_a_crash_keeps_its_reason_and_partial_values(study: Study) -> None:
    desk = Desk(study)
    number = desk.start(PARAMS)
    desk.crash(form(number=number, reason=" fell ", constraints={"reach": "3.5"}))
    found = row(study, number)
    assert (found["status"], found["reason"], found["constraints"]) == ("crashed", "fell", {"reach": 3.5})


def test_pressing_twice_after_a_lost_answer_is_fine(study: Study) -> None:
    desk = Desk(study)
    number = desk.start(PARAMS)
    for _ in range(2):
        desk.crash(form(number=number, reason="fell"))
    with pytest.raises(TakenError, match=r"result already.* in the table"):
        desk.crash(form(number=number, reason="another"))
    with pytest.raises(TakenError, match="has a result already"):
        desk.tell(form(number=number, objective=1, constraints={"reach": 1}))
    assert row(study, number)["reason"] == "fell"
    assert row(study, number)["history"] == []


def test_what_does_not_count_is_transient(study: Study) -> None:
    desk = Desk(study)
    number = desk.start(PARAMS)
    desk.transient(form(number=number, reason="no connection"))
    assert (row(study, number)["status"], row(study, number)["reason"]) == ("transient", "no connection")


def test_a_trial_that_is_not_there_is_refused(study: Study) -> None:
    with pytest.raises(InputError, match="7"):
        Desk(study).crash(form(number=7, reason=""))


def test_corrections_keep_the_history(study: Study) -> None:
    desk = Desk(study)
    number = desk.start(PARAMS)
    desk.crash(form(number=number, reason="fell", constraints={"reach": 3.5}))
    desk.correct(form(number=number, status="finished", objective="1.5", constraints={"reach": "2"}, reason="misread"))
    found = row(study, number)
    assert (found["status"], found["objective"], found["constraints"]) == ("finished", 1.5, {"reach": 2.0})
    assert [entry["status"] for entry in found["history"]] == ["crashed", "finished"]
    assert (found["history"][0]["reason"], found["history"][0]["constraints"]) == ("fell", {"reach": 3.5})
    desk.correct(form(number=number, status="deleted", reason=""))
    assert row(study, number)["status"] == "deleted"
    desk.correct(form(number=number, status="restored", reason=""))
    found = row(study, number)
    assert (found["status"], len(found["history"])) == ("finished", 4)


def test_a_correction_can_take_a_partial_value_back(study: Study) -> None:
    desk = Desk(study)
    number = desk.start(PARAMS)
    desk.crash(form(number=number, reason="", constraints={"reach": 3.5}))
    desk.correct(form(number=number, status="crashed", reason="fell", constraints={}))
    assert (row(study, number)["constraints"], row(study, number)["reason"]) == ({}, "fell")


def test_only_finished_trials_are_corrected(study: Study) -> None:
    desk = Desk(study)
    number = desk.start(PARAMS)
    for status in ("crashed", "deleted"):
        with pytest.raises(InputError, match="finished trial"):
            desk.correct(form(number=number, status=status, reason=""))
