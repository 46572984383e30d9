"""One outcome, one transaction: killed between any two writes, and raced by others, on SQLite and PostgreSQL."""

import itertools
import multiprocessing.process
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from optuna.exceptions import UpdateFinishedTrialError

from crashbo.adapters.optuna.internals import study_id, trial_id
from crashbo.adapters.optuna.transactions import CREATED, writer
from crashbo.errors import CrashBOError
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.files import make_definition
from crashbo.store.importing import import_file
from crashbo.store.storage import Place, find_place
from crashbo.store.study import Study, create_study, open_study
from tests.processes import processes
from tests.store.actors import act_and_die
from tests.store.helpers import QUASI_RANDOM
from tests.store.interrupting import meanwhile

DEFINITION = make_definition({"x": [0.0, 1.0]}, constraints=["reach"], options=QUASI_RANDOM)


@pytest.fixture(params=["sqlite", "postgres"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    """A study of one parameter and a constraint, on either database."""
    url = request.getfixturevalue("postgres") if request.param == "postgres" else f"sqlite:///{tmp_path}/study.db"
    return create_study(Place(url, f"atomic-{tmp_path.name}"), DEFINITION)


def engine_of(study: Study) -> Any:
    storage: Any = study.inner._storage
    return storage._backend.engine


def asked(study: Study) -> int:
    found = ask(study)
    assert found is not None
    return found.number


def killed(study: Study, deaths: int, command: str, number: int = 0, **options: Any) -> bool:
    """Whether a process was killed while it wrote."""
    child: multiprocessing.process.BaseProcess = processes().Process(
        target=act_and_die, args=(study.place, deaths, command, number, options)
    )
    child.start()
    child.join(60)
    assert child.exitcode in (0, -9)
    return child.exitcode == -9


def test_a_crash_after_a_killed_does_not_count_is_a_crash(study: Study) -> None:
    for deaths in range(20):
        number = asked(study)
        cut = killed(study, deaths, "transient", number, reason="no link")
        if not cut:
            assert study.records()[number].transient
            break
        assert study.records()[number].status == "pending"  # all or nothing
        recording.crash(study, number, "fell")
        record = open_study(study.place).records()[number]
        assert (record.status, record.transient, record.reason) == ("crashed", False, "fell")
        again = asked(study)
        assert study.records()[again].params != record.params  # a crash is not offered again
    assert 1 < deaths < 19


def test_a_killed_crash_leaves_no_values_behind(study: Study) -> None:
    for deaths in range(20):
        number = asked(study)
        if not killed(study, deaths, "crash", number, reason="fell", constraints={"reach": 99.0}):
            assert study.records()[number].constraints == {"reach": 99.0}
            break
        recording.crash(study, number)
        record = study.records()[number]
        assert (record.status, record.constraints, record.reason) == ("crashed", {}, "")
    assert 1 < deaths < 19


def test_marks_that_an_older_version_left_behind_do_not_count(study: Study) -> None:
    storage: Any = study.inner._storage
    trial = study.trial(asked(study))
    for key, value in {"transient": "cut short", "constraint:reach": 99.0}.items():
        storage.set_trial_user_attr(trial._trial_id, key, value)
    recording.crash(study, 0, "fell")
    [record] = study.records()
    assert (record.status, record.constraints, record.transient) == ("crashed", {}, False)


OUTCOMES: dict[str, Callable[[Study, int], None]] = {
    "finished": lambda study, number: recording.tell(study, number, 0.5, {"reach": 1.0}),
    "crashed": lambda study, number: recording.crash(study, number, "fell", {"reach": 99.0}),
    "transient": lambda study, number: recording.transient(study, number, "no link"),
}
EXPECTED = {
    "finished": (0.5, {"reach": 1.0}, ""),
    "crashed": (None, {"reach": 99.0}, "fell"),
    "transient": (None, {}, "no link"),
}


def acknowledged(kind: str, study: Study, number: int) -> bool:
    try:
        OUTCOMES[kind](study, number)
    except CrashBOError:
        return False
    return True


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(OUTCOMES, 2)))
def test_two_outcomes_at_once_are_not_mixed(study: Study, first: str, second: str) -> None:
    other = open_study(study.place)
    for count in range(20):
        number = asked(study)
        said: list[bool] = []

        def write(kind: str, trial: int, answers: list[bool]) -> None:
            answers.append(acknowledged(kind, other, trial))

        with meanwhile(engine_of(study), count, partial(write, second, number, said)) as done:
            mine = acknowledged(first, study, number)
        if not done[0]:
            break
        assert [mine, *said].count(True) == 1  # one of them has stored it, and only that one says so
        record = open_study(study.place).records()[number]
        assert record.word == (first if mine else second)
        assert (record.objective, record.constraints, record.reason) == EXPECTED[record.word]
    assert 1 < count < 19


def test_corrections_at_once_are_all_kept(study: Study) -> None:
    other = open_study(study.place)
    for count in range(20):
        number = recording.add(study, {"x": 0.5}, 1.0, {"reach": 1.0})

        def correct(cost: float, where: Study, trial: int) -> None:
            recording.correct(where, trial, status="finished", objective=cost)

        with meanwhile(engine_of(study), count, partial(correct, 3.0, other, number)) as done:
            correct(2.0, study, number)
        if not done[0]:
            break
        history = recording.history(study, number)
        assert sorted(entry["objective"] for entry in history) == [2.0, 3.0]
        assert study.records()[number].objective == history[-1]["objective"]
    assert 1 < count < 19


def test_a_killed_correction_is_there_or_not(study: Study) -> None:
    for deaths in range(20):
        number = recording.add(study, {"x": 0.5}, 1.0, {"reach": 1.0})
        cut = killed(study, deaths, "correct", number, status="finished", objective=2.0)
        recording.correct(study, number, status="finished", objective=3.0)
        told = [entry["objective"] for entry in recording.history(study, number)]
        assert told == ([3.0] if cut else [2.0, 3.0])
        if not cut:
            break
    assert 1 < deaths < 19


# --- keys ----------------------------------------------------------------------------------------------


def test_the_same_key_stores_once(study: Study) -> None:
    ask(study)
    for _ in range(2):
        recording.tell(study, 0, 0.5, {"reach": 1.0}, key="mine")
    with pytest.raises(CrashBOError, match="which is finished"):
        recording.tell(study, 0, 0.5, {"reach": 1.0}, key="other")
    with pytest.raises(CrashBOError, match="has another one with it"):
        recording.tell(study, 0, 0.6, {"reach": 1.0}, key="mine")
    first = recording.add(study, {"x": 0.5}, 1.0, {"reach": 1.0}, key="made")
    assert recording.add(study, {"x": 0.5}, 1.0, {"reach": 1.0}, key="made") == first
    assert recording.add(study, {"x": 0.5}, 1.0, {"reach": 1.0}, key="more") == first + 1
    with pytest.raises(CrashBOError, match="has it and other params"):
        recording.add(study, {"x": 0.6}, 1.0, {"reach": 1.0}, key="made")
    for _ in range(2):
        recording.correct(study, 0, status="crashed", key="again")
    assert len(recording.history(study, 0)) == 1


def test_a_correction_of_an_old_version_is_refused(study: Study) -> None:
    recording.add(study, {"x": 0.5}, 1.0, {"reach": 1.0})
    recording.correct(study, 0, status="finished", objective=2.0, version=0)
    with pytest.raises(CrashBOError, match="corrected by somebody else meanwhile"):
        recording.correct(study, 0, status="finished", objective=3.0, version=0)
    assert recording.correct(study, 0, status="finished", objective=3.0, version=1).objective == 3.0


def test_an_outcome_says_who(study: Study) -> None:
    ask(study)
    recording.crash(study, 0, "fell", by="Ada")
    assert recording.correct(study, 0, status="finished", objective=1.0, constraints={"reach": 1.0}, by="Bob")
    assert study.trial(0).user_attrs["crashbo:told_by"] == "Ada"
    assert recording.history(study, 0)[0]["by"] == "Bob"


def test_a_queued_trial_begins_with_its_worker(study: Study) -> None:
    begun = False
    for deaths in range(20):
        number = len(study.records())
        study.inner.enqueue_trial({"x": 0.25})
        assert killed(study, deaths, "ask")
        found = study.trial(number)
        begun = found.state.name == "RUNNING"
        assert begun == ("crashbo:worker" in found.user_attrs)  # otherwise nobody could tell that it is lost
        if begun:
            break
        recording.crash(study, asked(study))
        assert study.records()[number].params == {"x": 0.25}
    assert begun


# --- many at once ----------------------------------------------------------------------------------------


def table(path: Path, count: int) -> Path:
    lines = [f"{nth / 1000},{'' if nth % 3 == 2 else nth},{'' if nth % 3 == 2 else 1}" for nth in range(count)]
    path.write_text("\n".join(["x,objective,reach", *lines]))
    return path


def test_an_import_stores_what_single_trials_would_be(study: Study, tmp_path: Path) -> None:
    ask(study)  # numbers go on from there
    assert import_file(study, table(tmp_path / "trials.csv", 5)).numbers == (1, 2, 3, 4, 5)
    for nth in range(5):
        crashed = nth % 3 == 2
        recording.add(study, {"x": nth / 1000}, None if crashed else nth, {} if crashed else {"reach": 1.0})
    trials = study.inner.get_trials()[1:]
    assert [one.number for one in trials] == list(range(1, 11))
    for one, other in zip(trials[:5], trials[5:], strict=True):
        marks = [{key: value for key, value in x.user_attrs.items() if key != CREATED} for x in (one, other)]
        assert marks[0] == marks[1]
        assert (one.state, one.values, one.params, one.distributions) == (
            other.state,
            other.values,
            other.params,
            other.distributions,
        )
        assert one.datetime_start is not None
        assert one.datetime_complete is not None


def test_a_killed_import_stores_all_or_nothing(study: Study, tmp_path: Path) -> None:
    path = table(tmp_path / "trials.csv", 3)
    for deaths in range(30):
        if not killed(study, deaths, "import", path=path):
            break
        assert len(study.records()) in (0, 3)
        if study.records():  # killed after it was stored, before it could say so: nothing is stored twice
            assert import_file(study, path).known == 3
            break
    assert 2 < deaths < 29
    assert len(study.records()) == 3


def test_many_at_once_are_stored_once_by_a_key(study: Study) -> None:
    trials = [recording.make_trial(study, {"x": x}, 1.0, {"reach": 1.0}) for x in (0.1, 0.2)]
    to, at = writer(study.inner), study_id(study.inner)
    assert to.create_all(at, trials, "one") == to.create_all(at, trials, "one") == [0, 1]
    assert to.create_all(at, trials, "two") == [2, 3]
    assert to.create_all(at, [], "none") == []
    assert len(study.records()) == 4


def test_many_at_once_into_a_journal_file(tmp_path: Path) -> None:
    study = create_study(find_place(str(tmp_path / "study.journal")), DEFINITION)
    assert import_file(study, table(tmp_path / "trials.csv", 4)).numbers == (0, 1, 2, 3)
    assert import_file(study, table(tmp_path / "more.csv", 6)).numbers == (4, 5)
    trials = [recording.make_trial(study, {"x": x}, 1.0, {"reach": 1.0}) for x in (0.1, 0.2)]
    to, at = writer(study.inner), study_id(study.inner)
    assert to.create_all(at, trials[:1], "cut") == [6]  # as if it had been cut short
    assert to.create_all(at, trials, "cut") == [6, 7]


def test_marks_are_written_together_and_over_older_ones(study: Study) -> None:
    number = asked(study)
    trial, to = study.trial(number), writer(study.inner)
    to.mark(trial_id(trial), {"crashbo:mode": "other", "new": [1]})
    to.mark(trial_id(trial), {})
    assert study.trial(number).user_attrs == {**trial.user_attrs, "crashbo:mode": "other", "new": [1]}
    recording.tell(study, number, 1.0, {"reach": 1.0})
    before = study.trial(number).user_attrs
    with pytest.raises(UpdateFinishedTrialError, match="already finished"):
        to.mark(trial_id(trial), {"new": 2})
    assert study.trial(number).user_attrs == before


def test_two_imports_at_once_number_their_trials_one_by_one(study: Study, tmp_path: Path) -> None:
    path = table(tmp_path / "trials.csv", 5)
    with meanwhile(engine_of(study), 0, partial(import_file, open_study(study.place), path)) as done:
        import_file(study, path, again=True)
    assert done[0]
    assert [one.number for one in open_study(study.place).records()] == list(range(10))


# --- a journal file ------------------------------------------------------------------------------------


def test_a_journal_file_keeps_outcomes_together(tmp_path: Path) -> None:
    study = create_study(find_place(str(tmp_path / "study.journal")), DEFINITION)
    other = open_study(study.place)
    ask(study)
    storage: Any = study.inner._storage
    storage.set_trial_user_attr(0, "transient", "cut short")
    storage.set_trial_user_attr(0, "constraint:reach", 99.0)
    recording.crash(other, 0, "fell", key="mine")
    recording.crash(other, 0, "fell", key="mine")
    with pytest.raises(CrashBOError, match="finished"):
        recording.tell(study, 0, 1.0, {"reach": 1.0})
    [record] = study.records()
    assert (record.status, record.constraints, record.reason) == ("crashed", {}, "fell")
    recording.correct(study, 0, status="finished", objective=1.0, constraints={"reach": 2.0})
    recording.correct(other, 0, status="crashed", version=1)
    assert [entry["status"] for entry in recording.history(study, 0)] == ["finished", "crashed"]
    study.inner.enqueue_trial({"x": 0.25})
    asked = ask(other)
    assert asked is not None
    assert asked.params == {"x": 0.25}
    lines = (tmp_path / "study.journal").read_text().splitlines()
    assert all(line.startswith("{") for line in lines)
