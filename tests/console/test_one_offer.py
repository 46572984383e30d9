"""What comes next is the same for a sampler in a script, for `crashbo ask`, and for the console."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import optuna
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from optuna.trial import FrozenTrial, TrialState, create_trial

from crashbo.adapters.optuna import CrashBOSampler
from crashbo.adapters.optuna.codec import RETRY_OF
from crashbo.console.desk import Desk, Offer
from crashbo.console.snapshot import Reader
from crashbo.console.thinking import Thinker
from crashbo.store import recording
from crashbo.store.asking import ask
from crashbo.store.storage import find_place
from crashbo.store.study import Study, open_study
from tests.console.helpers import make_study

KINDS = ("finished", "crashed", "transient", "skipped", "running", "queued", "queued in part", "empty in the queue")
MODELS: dict[str, Any] = {"initial": 3, "raw": 32, "samples": 3}


def store(study: Study, kind: str, index: int) -> None:
    """Add one trial of a kind to a study."""
    params = study.definition.space.sobol(index + 1, 5)[index]
    if kind in ("finished", "crashed"):
        cost = None if kind == "crashed" else params["kp"] + params["kd"]
        recording.add(study, params, cost, {} if cost is None else {"reach": params["kp"]}, "fell")
    elif kind.startswith(("queued", "empty")):
        given = {"queued": params, "queued in part": {"kp": params["kp"]}}.get(kind, {})
        recording.store(study, create_trial(state=TrialState.WAITING, system_attrs={"fixed_params": given}))
    else:
        distributions = dict(study.translation.distributions)
        running = create_trial(state=TrialState.RUNNING, params=params, distributions=distributions)
        number = recording.store(study, running)
        if kind == "transient":
            recording.transient(study, number, "no power")
        elif kind == "skipped":
            recording.skip(study, number)


def about(trial: FrozenTrial, params: dict[str, Any]) -> dict[str, Any]:
    mode = trial.user_attrs.get("crashbo:mode", "given")  # Optuna does not call a sampler for what is all given
    return {"number": trial.number, "params": params, "mode": mode, "retry_of": trial.system_attrs.get(RETRY_OF)}


def of_sampler(study: Study) -> dict[str, Any]:
    inner = optuna.load_study(storage=study.place.url, study_name=study.place.study)
    inner.sampler = CrashBOSampler.from_study(inner)
    trial = inner.ask()
    params = {"kp": trial.suggest_float("kp", 0, 10), "kd": trial.suggest_float("kd", 0, 1)}
    return about(inner.trials[trial.number], params)


def of_command(study: Study) -> dict[str, Any]:
    asked = ask(study)
    assert asked is not None
    return about(study.trial(asked.number), asked.params)


def of_console(study: Study) -> dict[str, Any]:
    said = next(one for one in Thinker(study, Reader(study)).look() if one["kind"] == "offer")["offer"]
    number = said.get("waiting", len(study.inner.get_trials(deepcopy=False)))
    mode = said["beliefs"]["mode"]
    return {"number": number, "params": said["params"], "mode": mode, "retry_of": said.get("retry_of")}


def copies(study: Study, folder: str) -> list[Study]:
    """The same study in three files, so that what one of them writes stays unknown to the others."""
    assert study.place.file is not None
    places = [find_place(str(Path(folder) / f"{nth}.db"), study.place.study) for nth in range(3)]
    for place in places:
        shutil.copy(study.place.file, str(place.file))
    return [open_study(place, quick=True) for place in places]


@settings(
    max_examples=30,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate],  # an example takes half a second: nothing is shrunk
)
@given(kinds=st.lists(st.sampled_from(KINDS), max_size=9), options=st.sampled_from([{"initial": 1000}, MODELS]))
def test_all_three_offer_the_same(kinds: list[str], options: dict[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        study = make_study(Path(folder), options=options)
        for index, kind in enumerate(kinds):
            store(study, kind, index)
        scripts, command, page = copies(study, folder)
        found = of_command(command)
        assert of_sampler(scripts) == found
        assert of_console(page) == found


@pytest.mark.parametrize(
    ("kinds", "mode", "number", "retry_of"),
    [
        (["transient", "queued in part", "queued"], "initial", 1, None),
        (["transient", "queued"], "given", 1, None),
        (["transient", "empty in the queue"], "retry", 1, 0),
        (["finished", "transient"], "retry", 2, 1),
        (["finished"], "initial", 1, None),
    ],
)
def test_the_queue_comes_first_then_a_transient_failure(
    tmp_path: Path, kinds: list[str], mode: str, number: int, retry_of: int | None
) -> None:
    study = make_study(tmp_path, options={"initial": 1000})
    for index, kind in enumerate(kinds):
        store(study, kind, index)
    found = of_console(study)
    assert (found["mode"], found["number"], found["retry_of"]) == (mode, number, retry_of)


def test_a_transient_failure_that_a_queued_trial_repeats_is_repeated_once(tmp_path: Path) -> None:
    study = make_study(tmp_path, options={"initial": 1000})
    store(study, "transient", 0)
    store(study, "empty in the queue", 1)
    said = next(one for one in Thinker(study, Reader(study)).look() if one["kind"] == "offer")
    offer = Offer("key", said["basis"], said["count"], **said["offer"])
    assert Desk(study).take(offer) == 1
    assert study.records()[1].retry_of == 0
    assert of_console(study)["mode"] == "initial"


def test_a_queued_value_outside_its_range_is_offered_as_it_is(tmp_path: Path) -> None:
    study = make_study(tmp_path, options={"initial": 1000})
    recording.store(study, create_trial(state=TrialState.WAITING, system_attrs={"fixed_params": {"kp": 11.0}}))
    with tempfile.TemporaryDirectory() as folder:
        scripts, command, page = copies(study, folder)
        with pytest.warns(UserWarning, match="out of range"):
            found = of_command(command)
        with pytest.warns(UserWarning, match="out of range"):
            assert of_sampler(scripts) == found
        assert of_console(page) == found
        assert found["params"]["kp"] == 11.0
