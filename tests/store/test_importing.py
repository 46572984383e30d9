"""Trials from files, and the names of columns."""

import json
import math
from pathlib import Path
from typing import Any

import pytest

from crashbo.errors import InputError
from crashbo.store import recording
from crashbo.store.importing import import_file
from crashbo.store.study import Study
from crashbo.store.transfer import export_csv, export_json
from tests.store.helpers import make_study


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def outcomes(study: Study) -> list[tuple[Any, ...]]:
    return [(one.params, one.status, one.objective, one.constraints, one.reason) for one in study.records()]


def filled(folder: Path) -> Study:
    study = make_study(folder, parameters={"x": [0.0, 1.0], "kind": ["a", "b"]}, constraints={"reach": None})
    recording.add(study, {"x": 0.1, "kind": "a"}, 1.5, {"reach": 2.0})
    recording.add(study, {"x": 0.2, "kind": "b"}, None, {"reach": 3.0}, "fell")
    recording.add(study, {"x": 0.3, "kind": "b"}, 0.5, {"reach": 1.0})
    recording.correct(study, 2, status="finished", objective=0.7)
    recording.add(study, {"x": 0.4, "kind": "b"}, 0.5, {"reach": 1.0})
    recording.correct(study, 3, status="deleted")
    return study


@pytest.mark.parametrize("suffix", ["json", "csv"])
def test_an_export_is_imported_as_it_stands(tmp_path: Path, suffix: str) -> None:
    first = filled(tmp_path)
    content = export_json(first) if suffix == "json" else export_csv(first)
    (tmp_path / "other").mkdir()
    second = make_study(
        tmp_path / "other", parameters={"x": [0.0, 1.0], "kind": ["a", "b"]}, constraints={"reach": None}
    )
    path = write(tmp_path, f"all.{suffix}", content)
    done = import_file(second, path)
    assert (done.numbers, done.known, done.skipped, done.ignored) == ((0, 1, 2), 0, 1, ())
    assert outcomes(second) == outcomes(first)[:3]
    again = import_file(second, path)
    assert (again.numbers, again.known) == ((), 3)


def test_a_violated_limit_comes_back_from_json(tmp_path: Path, study: Study) -> None:
    trial = {"params": {"x": 0.5}, "objective": 1.0, "constraints": {"reach": "violated", "temp": 90}}
    assert import_file(study, write(tmp_path, "a.json", {"trials": [trial]})).numbers == (0,)
    assert study.records()[0].constraints == {"reach": None, "temp": 90.0}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("nan", "cost nan"),
        ("NaN", "cost nan"),
        ("inf", "cost inf"),
        ("-inf", "cost -inf"),
        ("1e200", "cost beyond 1e100"),
        ("", ""),
    ],
)
def test_a_cost_that_is_none_is_a_crash(tmp_path: Path, value: str, reason: str) -> None:
    study = make_study(tmp_path)
    import_file(study, write(tmp_path, "a.csv", f"x,objective\n0.5,{value}\n0.6,1\n"))
    crashed, finished = study.records()
    assert (crashed.status, finished.status) == ("crashed", "finished")
    assert crashed.reason == reason


@pytest.mark.parametrize("value", [math.nan, math.inf, None, 1e200])
def test_so_it_is_in_json(tmp_path: Path, value: Any) -> None:
    study = make_study(tmp_path)
    import_file(study, write(tmp_path, "a.json", [{"params": {"x": 0.5}, "objective": value}]))
    assert study.records()[0].status == "crashed"


def test_other_columns_are_ignored_by_name(tmp_path: Path) -> None:
    study = make_study(tmp_path)
    done = import_file(study, write(tmp_path, "a.csv", "date,x,objective,who,who\nMonday,0.5,1,Ada,Bob\n"))
    assert done.numbers == (0,)
    assert done.ignored == ("date", "who", "who")
    trial = {"params": {"x": 0.6, "y": 2}, "objective": 1, "constraints": {"heat": 3}, "weather": "fine"}
    assert import_file(study, write(tmp_path, "a.json", [trial])).ignored == ("y", "heat")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{", r"must be JSON; line 1"),
        ("a.json", {"parameters": {}}, "has no list of trials"),
        ("a.json", [{"params": {"x": 0.5}}], "Trial 0: `params` and `objective` must be there"),
        (
            "a.json",
            [{"number": 7, "params": {"x": 5}, "objective": 1}],
            r"Trial 7: `x` must lie in .* Nothing was imported",
        ),
        ("a.json", [{"params": {"x": 0.5}, "objective": "much"}], "Trial 0: `objective` must be a number"),
        ("a.json", [{"params": {"x": 0.5}, "objective": True}], "Trial 0: `objective` must be a number"),
        ("a.csv", "x\n1\n", "lacks \\['objective'\\]"),
        ("a.csv", "x,x,objective\n1,1,1\n", "has 'x' twice"),
        ("a.csv", "x,objective\n0.5,much\n", "Line 2: `objective` must be a number; got 'much'. Leave it empty"),
    ],
)
def test_a_wrong_file_adds_nothing(tmp_path: Path, name: str, content: Any, message: str) -> None:
    study = make_study(tmp_path)
    with pytest.raises(InputError, match=message):
        import_file(study, write(tmp_path, name, content))
    assert study.records() == []


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="which is a folder"):
        import_file(make_study(tmp_path), tmp_path)


def test_parameters_called_like_columns_are_exported_and_come_back(tmp_path: Path) -> None:
    names = {"number": [0.0, 9.0], "status": [0.0, 9.0], "reason": ["a", "b"], "x": [0.0, 1.0]}
    study = make_study(tmp_path, parameters=names, constraints={"number_": None})
    params = {"number": 7.0, "status": 3.0, "reason": "b", "x": 0.5}
    recording.add(study, params, None, {"number_": 1.0}, "fell")
    recording.add(study, params, 2.0, {"number_": 1.0})
    text = export_csv(study)
    assert text.splitlines()[:2] == [
        "number,status,param:number,param:status,param:reason,x,objective,number_,reason",
        "0,crashed,7.0,3.0,b,0.5,,1.0,fell",
    ]
    (tmp_path / "other").mkdir()
    other = make_study(tmp_path / "other", parameters=names, constraints={"number_": None})
    import_file(other, write(tmp_path, "all.csv", text))
    assert outcomes(other) == outcomes(study)


def test_constraints_called_like_columns_too(tmp_path: Path) -> None:
    study = make_study(tmp_path, constraints={"status": None, "number": None})
    recording.add(study, {"x": 0.5}, 2.0, {"status": 1.0, "number": 4.0})
    assert export_csv(study).splitlines()[0] == "number,status,x,objective,constraint:status,constraint:number,reason"
    path = write(tmp_path, "all.csv", export_csv(study))
    assert import_file(study, path).known == 1
