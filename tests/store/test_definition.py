"""What a study is about, as it is stored: today, and by version 0.1."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from crashbo.errors import InputError
from crashbo.problem.options import Options
from crashbo.store import recording
from crashbo.store.asking import ask, use_sampler
from crashbo.store.definition import SETTINGS
from crashbo.store.files import make_definition, to_file
from crashbo.store.storage import find_place
from crashbo.store.study import open_study
from tests.store.helpers import make_study


def test_the_strategy_is_kept(tmp_path: Path) -> None:
    study = make_study(tmp_path, strategy="paper", acquisition="mes")
    definition = open_study(study.place).definition
    assert (definition.problem.strategy, definition.problem.acquisition) == ("paper", "mes")
    assert make_definition(**to_file(definition)) == definition


@pytest.mark.parametrize(
    ("acquisition", "strategy", "today"),
    [("auto", "default", "auto"), ("mes", "paper", "mes"), ("logei", "paper", "auto")],
)
def test_a_study_of_version_0_1_opens(tmp_path: Path, acquisition: str, strategy: str, today: str) -> None:
    study = make_study(tmp_path)
    study.inner.set_user_attr(SETTINGS, {"seed": 4, "acquisition": acquisition, "options": {"initial": 1000}})
    opened = open_study(study.place)
    found = opened.definition.problem
    assert (found.strategy, found.acquisition, found.seed) == (strategy, today, 4)
    if strategy == "default":
        assert ask(opened) is not None


def test_a_study_of_version_0_2_goes_on(tmp_path: Path) -> None:
    """Made by version 0.2: a correction, a violation, a crash, a skipped trial, a transient one and its second try."""
    stored = Path(__file__).parents[1] / "data" / "study-0.2.db.gz"
    (tmp_path / "study.db").write_bytes(gzip.decompress(stored.read_bytes()))
    study = open_study(find_place(str(tmp_path / "study.db")))
    definition, problem = study.definition, study.definition.problem
    assert (problem.seed, problem.strategy, problem.options) == (5, "default", Options(risk=0.1, initial=3))
    assert [(one.name, one.threshold) for one in problem.constraints] == [("reach", None), ("speed", 2.0)]
    assert (definition.units, definition.space.constraints) == ({"x": "V"}, ("x + 0.1 * n <= 1.2",))
    assert make_definition(**to_file(definition)) == definition
    records = study.records()
    assert [one.status for one in records] == ["finished", "crashed", "finished", "ignored", "ignored", "pending"]
    assert (records[0].objective, records[1].reason, records[2].constraints["reach"]) == (0.6, "fell", None)
    recording.tell(study, 5, 0.4, {"reach": 0.3, "speed": 1.0})
    assert ask(study).number == 6
    assert [trial.number for trial in use_sampler(study).optimizer(study.inner).trials] == [0, 1, 2, 5]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"strategy": "best"}, "`strategy` must be 'default', 'paper'"),
        ({"strategy": "default", "acquisition": "mes"}, "`acquisition` must be 'auto' unless `strategy` is 'paper'"),
        ({"options": {"risk": 7}}, "`risk` must lie above 0"),
        ({"options": {"speed": 7}}, "`options` must be those of crashbo.Options"),
        ({"seed": -1}, "`seed` must be an integer >= 0"),
        ({"direction": "down"}, "`direction` must be 'minimize' or 'maximize'"),
    ],
)
def test_bad_settings_are_refused_when_the_study_is_made(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_definition(**{"parameters": {"x": [0.0, 1.0]}} | changes)


def test_how_many_trials_there_will_be_is_passed_on_unless_the_study_says(tmp_path: Path) -> None:
    sampler = use_sampler(make_study(tmp_path), n_trials=12)
    assert sampler._settings.options.n_trials == 12
    (tmp_path / "other").mkdir()
    planned = make_study(tmp_path / "other", options={"n_trials": 30})
    assert use_sampler(planned, n_trials=12)._settings.options.n_trials == 30
