"""Optuna studies that another program made."""

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from crashbo.console.desk import Desk, Offer
from crashbo.console.snapshot import Reader
from crashbo.console.thinking import Thinker
from crashbo.errors import InputError
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.model import fitted, look
from crashbo.store.storage import find_place
from crashbo.store.study import Study, best_seen, counts, open_study
from tests.cli.conftest import Call, call  # noqa: F401 (a fixture)

X, N = FloatDistribution(0.0, 1.0), IntDistribution(1, 8)


def make(folder: Path, *trials: Any, **settings: Any) -> Study:
    url = f"sqlite:///{folder / 'plain.db'}"
    inner = optuna.create_study(storage=url, study_name="theirs", **settings)
    inner.add_trials(list(trials))
    return open_study(find_place(str(folder / "plain.db")))


def done(value: float | None, state: TrialState | None = None, heat: float | None = None, **params: Any) -> Any:
    known = {"x": X, "n": N, "kind": CategoricalDistribution(["a", "b"]), "y": X, "z": X}
    state = state or (TrialState.FAIL if value is None else TrialState.COMPLETE)
    marks = {} if heat is None else {"constraints:heat": heat}
    trial = create_trial(state=state, value=value, params=params, distributions={one: known[one] for one in params})
    trial.system_attrs.update(marks)
    return trial


PAST = [done(0.3, x=0.1, n=1), done(0.1, x=0.4, n=3), done(None, x=0.9, n=8), done(0.2, x=0.6, n=4)]


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return make(tmp_path, *PAST)


def test_what_it_is_about_is_told_by_its_trials(study: Study) -> None:
    assert study.definition.plain
    assert list(study.definition.space) == ["n", "x"]
    assert study.definition.direction == "minimize"
    assert counts(study.definition, study.records()) == {
        "finished": 3,
        "crashed": 1,
        "pending": 0,
        "pruned": 0,
        "ignored": 0,
        "failed": 1,
    }


def test_there_is_a_best_guess_and_a_best_trial(study: Study) -> None:
    guess = look(study).best
    assert 0.2 < guess.params["x"] < 0.7
    best = best_seen(study.definition, study.records())
    assert best is not None
    assert best.number == 1
    assert fitted(study)[1] == [0, 1, 2, 3]


def test_numbers_are_those_of_the_trials_that_the_model_knows(tmp_path: Path) -> None:
    study = make(tmp_path, done(0.3, x=0.1, n=1), done(None, TrialState.FAIL), *PAST[1:])
    assert fitted(study)[1] == [0, 2, 3, 4]


def test_optunas_constraints_are_known_limits(tmp_path: Path) -> None:
    study = make(tmp_path, done(0.3, heat=-1.0, x=0.1), done(0.1, heat=0.5, x=0.4))
    assert [(one.name, one.threshold) for one in study.definition.constraints] == [("heat", 0.0)]
    assert [one.constraints for one in study.records()] == [{"heat": -1.0}, {"heat": 0.5}]
    best = best_seen(study.definition, study.records())
    assert best is not None
    assert best.number == 0


def test_trials_are_asked_for_and_told(study: Study) -> None:
    asked = ask(study)
    assert asked is not None
    assert set(asked.params) == {"x", "n"}
    recording.tell(study, asked.number, 0.05)
    recording.add(study, {"x": 0.5, "n": 2}, 0.04)
    recording.correct(study, 0, status="crashed", reason="seen on the video")
    assert [one.status for one in study.records()] == ["crashed", "finished", "crashed", *["finished"] * 3]


def test_trials_of_others_that_are_being_made_are_left_alone(study: Study) -> None:
    theirs = study.inner.ask()  # has no params yet, and takes its time
    asked = ask(study)
    assert asked is not None
    assert study.trial(theirs.number).state == TrialState.RUNNING


class TestConditional:
    @pytest.fixture
    def study(self, tmp_path: Path) -> Study:
        past = [done(0.3, kind="a", y=0.1), done(0.1, kind="b", z=0.4), done(0.5, kind="a", y=0.7)]
        return make(tmp_path, *past)

    def test_the_shared_parameters_are_modelled_and_all_are_shown(self, study: Study) -> None:
        assert list(study.definition.space) == ["kind"]
        assert look(study).best.params == {"kind": "b"}
        assert study.records()[0].params == {"kind": "a", "y": 0.1}

    def test_only_its_own_program_begins_trials(self, study: Study) -> None:
        with pytest.raises(InputError, match="`study` must have the same parameters in all trials; those of 'theirs'"):
            ask(study)
        with pytest.raises(InputError, match="must have the same parameters in all trials"):
            recording.add(study, {"kind": "a"}, 1.0)
        assert len(study.records()) == 3

    def test_without_a_shared_one_the_largest_group_is_modelled(self, tmp_path: Path) -> None:
        (tmp_path / "b").mkdir()
        study = make(tmp_path / "b", done(0.3, y=0.1), done(0.1, z=0.4), done(0.5, y=0.7))
        assert list(study.definition.space) == ["y"]
        assert fitted(study)[1] == [0, 2]


def test_choices_of_any_kind_are_shown_as_texts(tmp_path: Path) -> None:
    layers = CategoricalDistribution(["one", None, 3, True])
    trial = create_trial(value=1.0, params={"layers": None}, distributions={"layers": layers})
    study = make(tmp_path, trial)
    assert look(study).best.params["layers"] in ("one", None, 3, True)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"directions": ["minimize", "maximize"]}, "`study` must have one objective; 'theirs' has 2. Combine them"),
        ({}, "`study` must have a trial with parameters; 'theirs' has none yet."),
    ],
)
def test_what_cannot_be_opened_says_why(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        make(tmp_path, **settings)
    assert message in str(caught.value)


def test_the_console_reads_it(study: Study) -> None:
    rows = Reader(study).read().rows
    assert [row["status"] for row in rows] == ["finished", "finished", "crashed", "finished"]
    assert rows[1]["params"] == {"x": 0.4, "n": 3}


@pytest.mark.parametrize("conditional", [False, True])
def test_the_console_thinks_about_it(tmp_path: Path, conditional: bool) -> None:
    more = [done(0.7, kind="a", y=0.3), done(None, kind="b", z=0.3)] if conditional else []
    past = [done(0.3, kind="a"), done(0.2, kind="b")] if conditional else PAST
    study = make(tmp_path, *past, *more)
    steps = {one["kind"]: one for one in Thinker(study, Reader(study)).look()}
    assert set(steps["offer"]["offer"]["params"]) == set(study.definition.space)
    assert steps["best"]["best"]["params"] == look(study).best.params
    offer = Offer("k", "b", 99, steps["offer"]["offer"]["params"])
    if conditional:
        with pytest.raises(InputError, match="must have the same parameters in all trials"):
            Desk(study).take(offer)
    else:
        number = Desk(study).take(offer, "Ada")
        assert study.records()[number].status == "pending"


def test_every_command_opens_it(tmp_path: Path, call: Call) -> None:  # noqa: F811
    pruned = create_trial(
        state=TrialState.PRUNED, params={"x": 0.8, "n": 2}, distributions={"x": X, "n": N}, intermediate_values={3: 0.9}
    )
    make(tmp_path, *PAST, pruned)
    words = call("status", "--storage", "plain.db").out
    assert "Study 'theirs' in plain.db: 3 finished, 1 crashed, 0 under way, 1 pruned" in words
    assert "pruned at step 3, value 0.9" in words
    assert "Best trial: 1, 0.1" in words
    assert call("best", "--storage", "plain.db", "--json").json["best_trial"]["number"] == 1
    assert call("export", "--storage", "plain.db").out.splitlines()[0] == "number,status,n,x,objective,reason"
    assert call("list", "--storage", "plain.db").out.endswith(", made by another program\n")
    assert (
        "`study` must be made by `crashbo new` to be edited" in call("edit", "--risk", 0.1, "--storage", "plain.db").err
    )


def test_pictures_and_a_report_of_any_study(tmp_path: Path) -> None:
    from crashbo.show.report import write_report
    from crashbo.show.views import view

    stopped = create_trial(
        state=TrialState.PRUNED, params={"x": 0.8, "n": 2}, distributions={"x": X, "n": N}, intermediate_values={3: 0.9}
    )
    unknown = done(None, TrialState.FAIL)  # before any parameter
    seen = view(make(tmp_path, unknown, *PAST, stopped).inner)
    assert [seen.number(index) for index in range(len(seen.trials))] == [1, 2, 3, 4, 5]
    assert seen.space.names == ("n", "x")
    text = write_report(seen, tmp_path / "report.html").read_text()
    assert "5 trials: 3 succeeded, 1 crashed and 1 pruned." in text
    assert "The best trial was number 2, with a cost of 0.1." in text
    assert "pruned at step 3, value 0.9" in text
