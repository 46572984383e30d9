"""Definitions as people write them."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crashbo import Categorical, Float, InputError, Int
from crashbo.store.files import make_definition, read_definition, to_file


def write(folder: Path, text: str, name: str = "space.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_yaml_means_what_it_says(tmp_path: Path) -> None:
    text = """
parameters:
  kp: [0, 10]
  kd: {low: 1e-3, high: 1, log: true, unit: s}
  order: {type: int, low: 1, high: 8, step: 2}
  filter: [none, yes, no, on, off]
  flag: {choices: [true, false, null, 3, 1.5]}
constraints: {reach: , temp: {threshold: 8e1, unit: K}}
seed: 5
units: {objective: m}
"""
    found = make_definition(**read_definition(write(tmp_path, text)))
    assert found.space["kp"] == Float(0, 10)
    assert found.space["kd"] == Float(1e-3, 1, log=True)
    assert found.space["order"] == Int(1, 7, step=2)  # the range ends on the grid
    assert found.space["filter"] == Categorical(["none", "yes", "no", "on", "off"])
    assert found.space["flag"] == Categorical([True, False, None, 3, 1.5])
    assert [(one.name, one.threshold) for one in found.constraints] == [("reach", None), ("temp", 80.0)]
    assert (found.direction, found.problem.seed) == ("minimize", 5)
    assert found.units == {"kd": "s", "temp": "K", "objective": "m"}
    assert make_definition(**json.loads(json.dumps(to_file(found)))) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("parameters: [a, b]", "must have `parameters:`"),
        ("kp: [0, 1]", "must have `parameters:`"),
        ("parameters: {kp: [0, 1]}\ncolour: red", "got ['colour']"),
        ("parameters: {kp: [0, 1], kp: [0, 2]}", "`kp` is there twice"),
        ("parameters: {kp: [0, 1]", "must be YAML; line"),
        ("parameters: {kp: [0, 1, 2]}", "Write choices as {choices: [...]}"),
        ("parameters: {kp: 3}", "`kp` must be [low, high], a list of choices"),
        ("parameters: {kp: {low: 0}}", "`kp` must have low, high, log and step; got low"),
        ("parameters: {kp: {low: 0, high: 1, lgo: true}}", "`kp` must have low, high, log and step"),
        ("parameters: {kp: {type: real, low: 0, high: 1}}", "`kp` must be of type float, int, categorical"),
        ("parameters: {kp: {low: a, high: 1}}", "`kp` must be a valid parameter. `low` must be a finite number"),
        ("parameters: {kp: {low: .inf, high: 1}}", "`low` must be a finite number"),
        ("parameters: {kp: [0, 1]}\nconstraints: {g: high}", "`g` must have a number as its limit"),
        ("parameters: {kp: [0, 1]}\nconstraints: {g: {limit: 3}}", "`g` must have a threshold and a unit at most"),
        ("parameters: {kp: [0, 1]}\nconstraints: [g, kp]", "`kp` must name either a parameter or a constraint"),
        ("parameters: {kp: [0, 1]}\ndirection: up", "`direction` must be"),
        ("parameters: {kp: [0, 1]}\nseed: -1", "`seed` must be an integer"),
        ("parameters: {kp: [0, 1]}\nacquisition: ei", "`acquisition` must be one of"),
        ("parameters: {kp: !!python/object/apply:os.getcwd []}", "must be YAML"),
    ],
)
def test_what_a_file_gets_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError) as found:
        make_definition(**read_definition(write(tmp_path, text)))
    assert words in str(found.value)


def test_broken_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="must be JSON; line 1"):
        read_definition(write(tmp_path, "{", "space.json"))
    (tmp_path / "space.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="must be a text file"):
        read_definition(tmp_path / "space.yaml")
    with pytest.raises(InputError, match="which does not exist"):
        read_definition(tmp_path / "nowhere.yaml")


NAMES = st.text("abcdefgh", min_size=1, max_size=4)
NUMBERS = st.floats(-1e6, 1e6, allow_nan=False)
ENTRIES: st.SearchStrategy[dict[str, Any]] = st.one_of(
    st.tuples(NUMBERS, NUMBERS).map(lambda pair: {"low": min(pair), "high": max(pair)}),
    st.tuples(st.integers(1, 99), st.integers(1, 99)).map(
        lambda pair: {"type": "int", "low": min(pair), "high": max(pair), "log": pair[0] % 2 == 0}
    ),
    st.lists(st.one_of(st.text(max_size=5), st.booleans(), st.none()), min_size=1, max_size=4, unique_by=repr).map(
        lambda choices: {"choices": choices}
    ),
)


@given(st.dictionaries(NAMES, ENTRIES, min_size=1, max_size=5), st.integers(0, 99))
def test_a_definition_survives_its_file(parameters: dict[str, Any], seed: int) -> None:
    found = make_definition(parameters, seed=seed, direction="maximize", constraints={"reach": 2.5, "wind": None})
    assert make_definition(**json.loads(json.dumps(to_file(found)))) == found
