"""What the model says to the page is what the optimizer says."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from crashbo.console.desk import Desk, Offer
from crashbo.console.snapshot import Reader
from crashbo.console.thinking import CELLS, Thinker
from crashbo.errors import InputError, NumericalError
from crashbo.problem.parameters import Float
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.editing import Edit, edit
from crashbo.store.model import look
from crashbo.store.study import Study
from tests.console.helpers import make_study, reopen

QUICK = {"raw": 64, "samples": 4}


@pytest.fixture
def study(tmp_path: Path) -> Study:
    """An empty study whose search is coarse."""
    return make_study(tmp_path, options=QUICK)


def told(study: Study, count: int = 5) -> Study:
    """The study after some trials; kp above 7 crashes."""
    for params in study.definition.space.sobol(count, 3):
        cost = (params["kp"] - 5) ** 2 / 10 + params["kd"]
        crashed = params["kp"] > 7
        recording.add(study, params, None if crashed else cost, {} if crashed else {"reach": params["kp"]}, "fell")
    return study


def thinker(study: Study) -> Thinker:
    fresh = reopen(study)
    return Thinker(fresh, Reader(fresh))


def said(found: Thinker, kind: str) -> Any:
    return next(one for one in found.look() if one["kind"] == kind)


def test_all_is_as_on_the_command_line(study: Study) -> None:
    steps = list(thinker(told(study)).look())
    assert [one["kind"] for one in steps] == ["model", "offer", "best"]
    outlook = look(reopen(study))
    assert steps[2]["best"]["params"] == outlook.best.params
    assert steps[2]["best"]["objective"] == [outlook.best.mean, outlook.best.std]
    limits = {name: [one.value, one.deviation, *one.interval] for name, one in outlook.limits.items()}
    assert steps[2]["limits"] == limits
    assert steps[2]["relation"] == outlook.crash_relation
    asked = ask(reopen(study))
    assert asked is not None
    offer = steps[1]["offer"]
    assert offer["params"] == asked.params
    assert offer["beliefs"]["why"] == asked.why
    assert offer["beliefs"]["success_probability"] == asked.success_probability
    assert offer["beliefs"].get("thresholds", {}) == asked.thresholds
    assert offer["beliefs"].get("deviations", {}) == asked.deviations
    assert offer["beliefs"]["relation"] == asked.relation


def test_an_empty_study_has_a_suggestion_but_no_model(study: Study) -> None:
    found = thinker(study)
    steps = list(found.look())
    assert [(one["kind"], one.get("ready")) for one in steps] == [("model", False), ("offer", None)]
    assert steps[1]["offer"]["expected"] == {}
    with pytest.raises(InputError, match="needs a first result"):
        found.predict({"kp": 1.0, "kd": 0.5})


def test_predictions_are_in_the_studys_own_direction(tmp_path: Path) -> None:
    study = make_study(tmp_path, direction="maximize", constraints=[], options=QUICK)
    for params in study.definition.space.sobol(5, 3):
        recording.add(study, params, 100 + params["kp"])
    found = thinker(study)
    said(found, "model")
    mean, std = found.predict({"kp": 5.0, "kd": 0.5})["objective"]
    assert abs(mean - 105) < 1
    assert 0 < std < 2
    picture = found.picture("kp", None, {"kp": 5.0, "kd": 0.5})
    assert np.isclose(picture["layers"]["mean"][50], mean, rtol=1e-4)


def test_only_crashes_give_chances_but_no_cost(study: Study) -> None:
    recording.add(study, {"kp": 5.0, "kd": 0.5}, None)
    found = thinker(study)
    said(found, "model")
    there, away = found.predict({"kp": 5.0, "kd": 0.5}), found.predict({"kp": 0.0, "kd": 0.0})
    assert there["objective"] is None
    assert there["success_probability"] < away["success_probability"]
    assert set(found.picture("kp", "kd", {"kp": 5.0, "kd": 0.5})["layers"]) == {"success"}
    assert said(found, "best")["best"]["objective"] is None


def test_the_suggestion_is_where_the_map_says_to_try_next(study: Study) -> None:
    found = thinker(told(study, 7))
    offer = said(found, "offer")["offer"]
    assert offer["beliefs"]["mode"] == "gain"
    assert "acquisition" not in found.picture("kp", "kd", offer["params"])["layers"]
    map_ = found.picture("kp", "kd", offer["params"], acquisition=True)
    values = np.array(map_["layers"]["acquisition"]).reshape(CELLS, CELLS)
    assert values.min() >= 0
    assert values.max() <= 1
    space = study.definition.space
    row, column = (int(CELLS * space[name].locate(offer["params"][name])) for name in ("kd", "kp"))
    # The point may lie on the border of what is likely enough to succeed, where the map falls within one cell.
    around = values[max(row - 1, 0) : row + 2, max(column - 1, 0) : column + 2]
    assert around.max() > 0.8 * values.max()
    line = found.picture("kp", None, offer["params"], acquisition=True)["layers"]["acquisition"]
    place = round(100 * space["kp"].locate(offer["params"]["kp"]))
    assert max(line[max(place - 1, 0) : place + 2]) > 0.8 * max(line)


def test_a_skipped_suggestion_makes_its_place_less_promising(study: Study) -> None:
    found = thinker(told(study, 7))
    offer = said(found, "offer")["offer"]
    before = found.picture("kp", "kd", offer["params"], acquisition=True)["layers"]["acquisition"]
    seen = Reader(study).read()
    Desk(study).skip(Offer("key", seen.basis, len(seen.rows), offer["params"]))
    said(found, "offer")
    after = found.picture("kp", "kd", offer["params"], acquisition=True)["layers"]["acquisition"]
    place = int(np.argmax(before))
    assert after[place] < 0.5 * before[place]


def test_a_search_that_fails_leaves_the_other_layers(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    found = thinker(told(study))
    said(found, "model")

    def fail(self: object, *args: object) -> None:
        raise NumericalError("no")

    monkeypatch.setattr("crashbo.show.views.View.acquisition", fail)
    layers = found.picture("kp", "kd", {"kp": 5.0, "kd": 0.5}, acquisition=True)["layers"]
    assert "mean" in layers
    assert "acquisition" not in layers


def test_a_map_shows_what_is_predicted(tmp_path: Path) -> None:
    parameters = {"kp": {"low": 0.01, "high": 10, "log": True}, "order": {"low": 1, "high": 4, "type": "int"}}
    study = make_study(
        tmp_path, parameters={**parameters, "filter": ["none", "butter"]}, constraints=["reach"], options=QUICK
    )
    for params in study.definition.space.sobol(5, 3):
        recording.add(study, params, params["kp"] + params["order"], {"reach": params["kp"]})
    found = thinker(study)
    said(found, "model")
    at = {"kp": 1.0, "order": 2, "filter": "none"}
    picture = found.picture("kp", "filter", at)
    assert (picture["columns"], picture["rows"]) == (CELLS, CELLS)
    space = study.definition.space
    for column, row in ((0, 0), (7, 40), (40, 12)):
        point = at | {"kp": space["kp"].at((column + 0.5) / CELLS), "filter": space["filter"].at((row + 0.5) / CELLS)}
        expected = found.predict(point)
        place = row * CELLS + column
        for layer, value in (
            ("mean", expected["objective"][0]),
            ("std", expected["objective"][1]),
            ("success", expected["success_probability"]),
            ("constraint:reach", expected["constraints"]["reach"][0]),
        ):
            assert math.isclose(picture["layers"][layer][place], value, rel_tol=1e-4), layer


def test_a_skipped_suggestion_does_not_come_back(study: Study) -> None:
    found = thinker(told(study))
    first = said(found, "offer")
    offer = Offer("", first["basis"], first["count"], first["offer"]["params"])
    Desk(study).skip(offer)
    second = said(thinker(study), "offer")["offer"]
    space = study.definition.space
    apart = np.abs(space.encode(second["params"]) - space.encode(offer.params)).max()
    assert apart > 0.03


def test_what_did_not_count_is_offered_again(study: Study) -> None:
    desk = Desk(study)
    number = desk.start({"kp": 2.0, "kd": 0.5})
    recording.transient(study, number, "no connection")
    found = thinker(study)
    step = said(found, "offer")
    assert (step["offer"]["params"], step["offer"]["retry_of"]) == ({"kp": 2.0, "kd": 0.5}, number)
    desk.take(Offer("", step["basis"], step["count"], step["offer"]["params"], retry_of=number))
    assert said(found, "offer")["offer"].get("retry_of") is None
    assert reopen(study).records()[1].retry_of == number


def test_the_queue_comes_first(study: Study) -> None:
    study.inner.enqueue_trial({"kp": 3.0})  # the model chooses the rest
    study.inner.enqueue_trial({"kp": 3.0, "kd": 99.0})  # outside the space, as the user wants it
    study.inner.enqueue_trial({"kp": 3.0, "kd": 0.25})
    for number, params in enumerate([{"kp": 3.0}, {"kp": 3.0, "kd": 99.0}, {"kp": 3.0, "kd": 0.25}]):
        step = said(thinker(study), "offer")
        offer = step["offer"]
        assert offer["waiting"] == number
        assert params.items() <= offer["params"].items()
        assert Desk(study).take(Offer("key", step["basis"], step["count"], **offer)) == number
        assert study.trial(number).params == offer["params"]


def test_without_new_results_nothing_is_fitted_again(study: Study) -> None:
    found = thinker(told(study))
    said(found, "model")
    models = found.optimizer.surrogate().objective if found.optimizer else None
    Desk(study).start({"kp": 2.0, "kd": 0.5})
    said(found, "model")
    assert found.optimizer is not None
    assert found.optimizer.surrogate().objective is models
    assert len(found.optimizer.pending) == 1
    recording.add(study, {"kp": 1.0, "kd": 0.1}, 2.0, {"reach": 1.0})
    said(found, "model")
    assert found.optimizer.surrogate().objective is not models


def test_a_corrected_reason_changes_the_models(study: Study) -> None:
    """Named reasons may have margins of their own, so what they are called is part of what models are fitted to."""
    found = thinker(told(study, 7))
    first = said(found, "model")
    crashed = [record.number for record in study.records() if record.status == "crashed"]
    models = found.optimizer.surrogate().objective if found.optimizer else None
    recording.correct(study, crashed[0], status="crashed", reason="battery")
    second = said(found, "model")
    assert second["basis"] != first["basis"]
    assert found.optimizer is not None
    assert "battery" in [trial.reason for trial in found.optimizer.trials]
    assert found.optimizer.surrogate().objective is not models


def test_an_edited_study_is_followed(study: Study) -> None:
    found = thinker(told(study))
    first = said(found, "model")
    models = found.optimizer.surrogate().objective if found.optimizer else None
    edited = edit(reopen(study), Edit(options={"risk": 0.02}, parameters={"kp": Float(0.0, 20.0)}))
    steps = list(found.look())
    assert steps[0]["basis"] != first["basis"]
    assert found.optimizer is not None
    assert found.optimizer.options.risk == 0.02
    assert dict(found.optimizer.space) == dict(edited.definition.space)
    assert found.optimizer.surrogate().objective is not models
    asked = ask(reopen(study))
    assert asked is not None
    assert steps[1]["offer"]["params"] == asked.params


def test_a_model_that_fails_still_suggests(study: Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> Any:
        raise NumericalError("no Cholesky factor")

    monkeypatch.setattr("crashbo.optimizer.Optimizer.surrogate", broken)
    steps = list(thinker(told(study)).look())
    assert [one["kind"] for one in steps] == ["model", "offer"]
    assert "cannot be fitted" in steps[0]["problem"]
    assert set(steps[1]["offer"]["params"]) == {"kp", "kd"}
