"""Change a study after it has begun, on every kind of storage."""

from dataclasses import replace
from pathlib import Path

import pytest

from crashbo.adapters.optuna.internals import study_id
from crashbo.adapters.optuna.transactions import writer
from crashbo.errors import InputError
from crashbo.problem.parameters import Float, Int
from crashbo.problem.space import Space
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.editing import Edit, edit, edits
from crashbo.store.files import make_definition
from crashbo.store.storage import find_place
from crashbo.store.study import Study, create_study, open_study
from crashbo.store.words import changes, differences


@pytest.fixture(params=["a.db", "a.journal"])
def study(request: pytest.FixtureRequest, tmp_path: Path) -> Study:
    definition = make_definition({"x": [0.0, 1.0]}, options={"initial": 1000}, units={"x": "m"})
    return create_study(find_place(str(tmp_path / request.param)), definition)


def test_what_is_stored_is_what_was_returned(study: Study) -> None:
    recording.add(study, {"x": 0.5}, 1.0)
    changed = edit(study, Edit({"x": Float(0.0, 2.0), "n": Int(1, 3)}, {"n": 2}, {"risk": 0.1}, {"x": ""}), by="Ada")
    again = open_study(study.place)
    assert again.definition == changed.definition
    assert again.definition.defaults == {"n": 2}
    assert again.definition.units == {}
    assert again.records()[0].params == {"n": 2, "x": 0.5}
    entry = edits(again)[0]
    assert entry["by"] == "Ada"
    assert entry["before"]["crashbo:settings"]["options"] == {"initial": 1000}


def test_two_at_once_do_not_undo_each_other(study: Study) -> None:
    other = open_study(study.place)
    edit(study, Edit(options={"risk": 0.1}))
    again = open_study(study.place)
    assert len(edits(again)) == 1
    stale = {"crashbo:edits": []}

    def change(found: object) -> dict[str, object]:
        assert found != stale
        raise InputError("as if somebody had been faster")

    with pytest.raises(InputError, match="as if somebody"):
        writer(other.inner).update(study_id(other.inner), change)
    assert len(edits(open_study(study.place))) == 1


def test_an_edit_of_what_somebody_else_has_changed_is_refused(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("crashbo.store.editing.edits", lambda study: [])
    edit(study, Edit(options={"risk": 0.1}))
    with pytest.raises(InputError, match="edited by somebody else meanwhile"):
        edit(study, Edit(options={"risk": 0.3}))
    assert open_study(study.place).definition.problem.options.risk == 0.1


def test_a_run_with_the_old_definition_goes_on(study: Study) -> None:
    running = open_study(study.place)
    edit(study, Edit({"n": Int(1, 3)}, {"n": 2}))
    asked = ask(running)  # knows nothing of n
    assert asked is not None
    assert set(asked.params) == {"x"}
    recording.tell(running, asked.number, 1.0)
    assert open_study(study.place).records()[0].params["n"] == 2


def test_a_parameter_added_twice_over_has_both_values(study: Study) -> None:
    recording.add(study, {"x": 0.5}, 1.0)
    first = edit(study, Edit({"n": Int(1, 3)}, {"n": 2}))
    recording.add(first, {"x": 0.6, "n": 3}, 1.0)
    second = edit(first, Edit({"m": Float(0, 1)}, {"m": 0.25}))
    assert [one.params for one in second.records()] == [
        {"x": 0.5, "n": 2, "m": 0.25},
        {"x": 0.6, "n": 3, "m": 0.25},
    ]
    assert len(edits(second)) == 2


def test_a_renamed_study_is_the_same(tmp_path: Path) -> None:
    study = create_study(find_place(str(tmp_path / "a.db")), make_definition({"x": [0, 1]}))
    recording.add(study, {"x": 0.5}, 1.0)
    assert writer(study.inner).rename(study_id(study.inner), "other")
    assert len(open_study(find_place(str(tmp_path / "a.db"), "other")).records()) == 1


def test_differences_are_in_words() -> None:
    wanted = make_definition({"x": [0, 1], "k": ["a", "b"]}, constraints={"reach": 2}, units={"x": "m"})
    found = make_definition({"x": [0, 2], "n": {"type": "int", "low": 1, "high": 3}}, direction="maximize")
    assert differences(wanted, found) == [
        "x is 0 to 2, not 0 to 1",
        "n is integers, 1 to 3, which was not said",
        "the direction is maximize, not minimize",
        "k: none here, not one of a, b",
        "the limit of reach: none here, not 2",
        "the unit of x: none here, not m",
    ]
    bounded = replace(wanted.problem, space=Space(dict(wanted.space), ["x < 0.5"]))
    bound = replace(wanted, problem=bounded)
    assert differences(bound, wanted) == ["the constraints between parameters: none here, not x < 0.5"]
    turned = make_definition({"k": ["a", "b"], "x": [0, 1]}, constraints={"reach": 2}, units={"x": "m"})
    assert differences(wanted, turned) == ["the order of parameters is k, x, not x, k"]
    assert differences(wanted, wanted) == changes(wanted, wanted) == []
