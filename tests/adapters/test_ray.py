"""CrashBO as a search algorithm of Ray Tune, by itself and on a real local cluster."""

import json
import math
import os
import pickle
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import crashbo
from tests.adapters.extras import ROOT, needs, run_page
from tests.examples import small_copy

needs("ray.tune", "ray")
import ray  # noqa: E402
from ray import tune  # noqa: E402
from ray.tune.search import ConcurrencyLimiter  # noqa: E402

from crashbo.adapters.ray import CrashBOSearch, crashing, to_space  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ray.*"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray.*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # sockets and files Ray leaves to its exit
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LINE = {"x": tune.uniform(0.0, 1.0)}
FAST = crashbo.Options(initial=3, raw=64, samples=4)


def make_search(space: Any = None, **settings: Any) -> CrashBOSearch:
    return CrashBOSearch(space or LINE, "cost", "min", **({"options": FAST} | settings))


# --- spaces ----------------------------------------------------------------------------------


def test_search_spaces_are_translated() -> None:
    space = to_space(
        {
            "a": tune.uniform(-1.0, 2.0),
            "b": tune.loguniform(1e-4, 1.0),
            "c": tune.quniform(0.0, 1.0, 0.1),
            "deep": {"d": tune.randint(2, 9), "er": {"e": tune.lograndint(1, 100)}},
            "f": tune.qrandint(3, 17, 5),
            "g": tune.qrandint(3, 17, 1),
            "h": tune.choice(["adam", None, 3]),
            "constant": 7,
        }
    )
    assert space is not None
    assert dict(space) == {
        "a": crashbo.Float(-1.0, 2.0),
        "b": crashbo.Float(1e-4, 1.0, log=True),
        "c": crashbo.Float(0.0, 1.0, step=0.1),
        "deep/d": crashbo.Int(2, 8),
        "deep/er/e": crashbo.Int(1, 99, log=True),
        "f": crashbo.Int(5, 15, step=5),
        "g": crashbo.Int(3, 16),
        "h": crashbo.Categorical(["adam", None, 3]),
    }


@pytest.mark.parametrize(
    ("domain", "message"),
    [
        (tune.grid_search([1, 2]), r"`deep/x` must not be a grid_search; got one\. Use tune\.choice"),
        (tune.randn(0.0, 1.0), r"`deep/x` must be one of tune\.uniform.*got Normal"),
        (tune.qloguniform(0.1, 1.0, 0.1), r"`deep/x` must be one of.*got a quantized LogUniform"),
        (tune.qlograndint(1, 100, 5), r"`deep/x` must be one of.*got a quantized LogUniform"),
        (tune.sample_from(lambda: 3), r"`deep/x` must be one of.*got sample_from"),
        (tune.choice([[64, 64], [128]]), r"`deep/x` must be a choice of plain values.*Name it by a string"),
    ],
)
def test_what_cannot_be_searched_is_refused(domain: Any, message: str) -> None:
    with pytest.raises(crashbo.InputError, match=message):
        to_space({"deep": {"x": domain}})


def test_names_with_slashes_are_refused() -> None:
    with pytest.raises(crashbo.InputError, match=r"names free of '/'; got \('a/b',\)"):
        to_space({"a/b": tune.uniform(0, 1)})


def test_nested_configs_come_back_nested() -> None:
    search = make_search({"model": {"depth": tune.randint(1, 4)}, "rate": tune.loguniform(0.1, 1.0)})
    config = search.suggest("t0")
    assert set(config) == {"model", "rate"}
    assert type(config["model"]["depth"]) is int
    search.on_trial_complete("t0", {"cost": 1.0})
    assert set(search.best().params["model"]) == {"depth"}


def test_a_space_of_crashbo_works_too() -> None:
    search = make_search(crashbo.Space({"x": (0.0, 1.0)}))
    assert 0.0 <= search.suggest("t0")["x"] <= 1.0


# --- outcomes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("result", "objective", "reason"),
    [
        ({"cost": 0.5}, 0.5, ""),
        ({"cost": math.nan}, None, "cost nan"),
        ({"cost": -math.inf}, None, "cost -inf"),
        ({"done": True}, None, "no cost"),
        ({"cost": math.nan, "crash": "fell"}, None, "fell"),
        ({"cost": 3.0, "crash": ""}, None, ""),
        ({"cost": 3.0, "crash": 0}, 3.0, ""),
    ],
)
def test_results_become_costs_or_crashes(result: dict[str, Any], objective: float | None, reason: str) -> None:
    search = make_search()
    search.suggest("t0")
    search.on_trial_complete("t0", result)
    (trial,) = search.optimizer.trials
    assert (trial.objective, trial.reason) == (objective, reason)
    assert not search.optimizer.pending


@pytest.mark.parametrize("label", [math.nan, "violated", crashbo.VIOLATED])
def test_constraints_are_values_violated_or_missing_after_a_crash(label: Any) -> None:
    search = make_search(constraints=[crashbo.Constraint("reach")])
    for number, result in enumerate(
        ({"cost": 1.0, "reach": 2.0}, {"cost": 1.0, "reach": label}, {"cost": math.nan, "reach": 3.0}, {"done": True})
    ):
        search.suggest(f"t{number}")
        search.on_trial_complete(f"t{number}", result)
    seen = [dict(trial.constraints) for trial in search.optimizer.trials]
    assert seen == [{"reach": 2.0}, {"reach": None}, {"reach": 3.0}, {}]


def test_a_result_that_cannot_be_understood_stops_the_run_at_the_next_suggestion() -> None:
    search = make_search(constraints=[crashbo.Constraint("reach")])
    search.suggest("t0")
    with pytest.raises(crashbo.InputError, match="`reach` must be told"):
        search.on_trial_complete("t0", {"cost": 1.0})
    search.on_trial_complete("t0", error=True)  # Ray does so after an error of the searcher
    assert not search.optimizer.trials
    assert not search.optimizer.pending
    with pytest.raises(crashbo.InputError, match=r"Trial t0: `reach` must be told with the objective"):
        search.suggest("t1")
    mended = pickle.loads(pickle.dumps(search))  # as by Tuner.restore
    mended.on_trial_complete("t0", {"cost": 1.0, "reach": 2.0})
    assert len(mended.optimizer.trials) == 1
    assert mended.suggest("t1")


def test_an_errored_trial_is_a_crash_by_default() -> None:
    search = make_search()
    search.suggest("t0")
    search.on_trial_complete("t0", error=True)
    assert [(trial.crashed, trial.reason) for trial in search.optimizer.trials] == [(True, "error")]


def test_a_lost_trial_is_suggested_again_and_a_crash_in_the_end() -> None:
    search = make_search(errors="transient", retries=2)
    lost = search.suggest("t0")
    for number in range(1, 4):
        search.on_trial_complete(f"t{number - 1}", error=True)
        if number < 3:
            assert not search.optimizer.trials
            assert search.suggest(f"t{number}") == lost
    (trial,) = search.optimizer.trials
    assert trial.reason == "worker lost 3 times"
    assert search.suggest("t9") != lost


def test_a_lost_trial_that_ray_resumes_is_told_after_all() -> None:
    search = make_search(errors="transient")
    lost = search.suggest("t0")
    search.on_trial_complete("t0", error=True)
    again = search.suggest("t1")
    assert again == lost
    search.on_trial_complete("t0", {"cost": 1.0})
    search.on_trial_complete("t1", {"cost": 2.0})
    assert [trial.objective for trial in search.optimizer.trials] == [1.0, 2.0]
    assert not search.optimizer.pending


@pytest.mark.parametrize("result", [None, {}, {"time_total_s": 0.0}])
def test_a_trial_stopped_before_it_said_anything_is_forgotten(
    result: dict[str, Any] | None, caplog: pytest.LogCaptureFixture
) -> None:
    search = make_search()
    search.suggest("t0")
    search.on_trial_complete("t0", result)
    assert not search.optimizer.trials
    assert not search.optimizer.pending
    search.on_trial_complete("t0", {"cost": 1.0})
    assert "t0 is not known to be under way" in caplog.text


def test_trials_under_way_are_pending() -> None:
    search = make_search()
    for number in range(4):
        config = search.suggest(f"t{number}")
        search.on_trial_complete(f"t{number}", {"cost": (config["x"] - 0.3) ** 2})
    points = [search.suggest(f"p{number}")["x"] for number in range(3)]
    assert len(set(points)) == 3
    assert [one["x"] for one in search.optimizer.pending] == points


def test_points_to_evaluate_come_first_and_evaluated_ones_are_learned() -> None:
    search = make_search({"deep": {"x": tune.uniform(0, 1)}}, points_to_evaluate=[{"deep": {"x": 0.25}}])
    assert search.suggest("t0") == {"deep": {"x": 0.25}}
    search.add_evaluated_point({"deep": {"x": 0.5}, "other": 1}, 2.0)
    search.add_evaluated_point({"deep": {"x": 0.6}}, math.nan)
    search.add_evaluated_point({"deep": {"x": 0.7}}, 1.0, error=True)
    assert [trial.objective for trial in search.optimizer.trials] == [2.0, None, None]


def test_concurrency_limits_hold() -> None:
    limited = ConcurrencyLimiter(make_search(), max_concurrent=2)
    assert limited.suggest("t0")
    assert limited.suggest("t1")
    assert limited.suggest("t2") is None
    limited.on_trial_complete("t0", error=True)
    assert limited.suggest("t2")


# --- set-up ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"metric": ["a", "b"], "mode": ["min", "max"]}, r"`metric` must be one name; got \['a', 'b'\]"),
        ({"mode": "least"}, r"`mode` must be 'min' or 'max'; got 'least'"),
        ({"errors": "ignore"}, r"`errors` must be 'crash' or 'transient'"),
        ({"retries": -1}, r"`retries` must be an integer >= 0"),
        ({"space": LINE, "metric": "cost", "mode": "min", "seed": -1}, r"`seed` must be an integer >= 0"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(crashbo.InputError, match=message):
        CrashBOSearch(**settings)


def test_the_tuner_gives_space_metric_and_mode() -> None:
    search = CrashBOSearch(options=FAST)
    with pytest.raises(crashbo.InputError, match="`param_space` must hold something to search"):
        search.suggest("t0")
    assert search.set_search_properties("gain", "max", LINE)
    assert search.optimizer.direction == "maximize"
    assert search.set_search_properties("gain", "max", {"x": tune.uniform(0.0, 1.0), "constant": 1})
    assert not search.set_search_properties("gain", "max", {"x": tune.uniform(0.0, 2.0)})
    with pytest.raises(crashbo.InputError, match="`metric` must be the same"):
        search.set_search_properties("cost", "max", LINE)
    with pytest.raises(crashbo.InputError, match="`metric` and `mode` must be given"):
        CrashBOSearch(LINE).suggest("t0")


def test_wrapping_needs_a_metric_and_a_trainable() -> None:
    with pytest.raises(crashbo.InputError, match="`metric` must be known to wrap a trainable"):
        CrashBOSearch().crashing(print)
    with pytest.raises(crashbo.InputError, match="`metric` must be the name"):
        crashing(print, "")
    with pytest.raises(crashbo.InputError, match="`trainable` must be a function"):
        crashing("train", "cost")


def test_wrapped_functions_report_crashes_and_pass_transient_errors(capsys: pytest.CaptureFixture[str]) -> None:
    def train(config: dict[str, Any]) -> Any:
        if isinstance(config["raise"], Exception):
            raise config["raise"]
        return {"cost": 1.0}

    def generate(config: dict[str, Any]) -> Iterator[Any]:
        yield {"cost": 5.0}
        yield train(config)

    wrapped = crashing(train, "cost", transient=[ConnectionError])
    assert wrapped({"raise": None}) == {"cost": 1.0}
    crash = wrapped({"raise": crashbo.Crash("fell", reach=1.5, force=crashbo.VIOLATED)})
    assert math.isnan(crash.pop("cost"))
    assert crash == {"crash": "fell", "reach": 1.5, "force": "violated"}
    assert not capsys.readouterr().err
    assert wrapped({"raise": ValueError("bad")})["crash"] == "ValueError: bad"
    assert "Traceback" in capsys.readouterr().err
    with pytest.raises(ConnectionError):
        wrapped({"raise": ConnectionError("lost")})
    results = list(crashing(generate, "cost")({"raise": ValueError("bad")}))
    assert results[0] == {"cost": 5.0}
    assert results[1]["crash"] == "ValueError: bad"


# --- state -----------------------------------------------------------------------------------


def go_on(search: CrashBOSearch, first: int, last: int) -> list[Any]:
    """Trials of which some crash, some get lost and the last stays out."""
    configs = []
    for number in range(first, last):
        configs.append(search.suggest(f"t{number}"))
        x = configs[-1]["x"]
        if number % 4 == 2:
            search.on_trial_complete(f"t{number}", error=True)
        elif number < last - 1:
            search.on_trial_complete(f"t{number}", {"cost": math.nan if x > 0.8 else (x - 0.6) ** 2})
    return configs


def test_a_restored_search_goes_on_as_the_saved_one(tmp_path: Path) -> None:
    search = make_search(errors="transient", seed=4)
    go_on(search, 0, 6)
    path = str(tmp_path / "state.json")
    search.save(path)
    restored = CrashBOSearch()
    restored.restore(path)
    pickled = pickle.loads(pickle.dumps(search))
    for other in (restored, pickled):
        assert other.to_json() == search.to_json()
    assert go_on(search, 6, 10) == go_on(restored, 6, 10) == go_on(pickled, 6, 10)
    restored.on_trial_complete("t5", {"cost": 1.0})
    assert len(restored.optimizer.pending) == 1


def test_a_broken_state_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    path.write_text("no")
    with pytest.raises(crashbo.InputError, match="is not JSON"):
        CrashBOSearch().restore(str(path))
    path.write_text(json.dumps({"format": 99}))
    with pytest.raises(crashbo.InputError, match="must be a saved search of format 1; got 99"):
        CrashBOSearch().restore(str(path))


# --- on a cluster ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    os.environ.setdefault("RAY_agent_register_timeout_ms", "120000")  # busy machines start slowly
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=200 * 2**20,
        log_to_driver=False,
        logging_level="critical",
    )
    yield
    ray.shutdown()


def run(
    search: Any, trainable: Any, space: Any, path: Path, num_samples: int, at_once: int = 2, **run_config: Any
) -> Any:
    return tune.Tuner(
        trainable,
        param_space=space,
        tune_config=tune.TuneConfig(search_alg=search, num_samples=num_samples, max_concurrent_trials=at_once),
        run_config=tune.RunConfig(name="run", storage_path=str(path), verbose=0, **run_config),
    ).fit()


@pytest.mark.usefixtures("cluster")
def test_what_happens_in_a_trial_becomes_what_it_is(tmp_path: Path) -> None:
    kinds = ["killed", "exits", "unreachable", "cost", "crash", "exception", "nan", "silent"]
    seen = tmp_path / "seen"
    seen.mkdir()

    def train(config: dict[str, Any]) -> Any:
        kind = config["kind"]
        first = not (seen / kind).exists()
        (seen / kind).touch()
        if kind == "crash":
            tune.report({"cost": 5.0, "reach": 1.0})
            raise crashbo.Crash("fell", reach=11.2)
        if kind == "exception":
            raise ValueError("bad")
        if kind == "nan":
            tune.report({"cost": math.nan, "reach": 2.0})
        if kind == "killed" and first:
            os.kill(os.getpid(), signal.SIGKILL)
        if kind == "exits" and first:
            os._exit(1)
        if kind == "unreachable" and first:
            raise ConnectionError("lost")
        return None if kind in ("nan", "silent") else {"cost": 0.5, "reach": "violated"}

    search = CrashBOSearch(
        metric="cost",
        mode="min",
        constraints=[crashbo.Constraint("reach")],
        points_to_evaluate=[{"kind": kind} for kind in kinds],
        options=FAST,
    )
    trainable = search.crashing(train, transient=[ConnectionError])
    results = run(search, trainable, {"kind": tune.choice(kinds)}, tmp_path, len(kinds) + 3)
    outcomes = {trial.params["kind"]: trial for trial in search.optimizer.trials}
    assert len(search.optimizer.trials) == len(kinds)
    assert not search.optimizer.pending
    found = {kind: (one.objective, dict(one.constraints), one.reason) for kind, one in outcomes.items()}
    finished = (0.5, {"reach": None}, "")
    assert found == {
        "cost": finished,
        "crash": (None, {"reach": 11.2}, "fell"),
        "exception": (None, {}, "ValueError: bad"),
        "nan": (None, {"reach": 2.0}, "cost nan"),
        "silent": (None, {}, "no cost"),
        "killed": finished,
        "exits": finished,
        "unreachable": finished,
    }
    assert results.num_errors == 3  # the lost ones, before they were suggested again
    assert results.num_terminated == len(kinds)


@pytest.mark.usefixtures("cluster")
def test_ray_retries_lost_workers_in_place_and_class_trainables_crash_anywhere(tmp_path: Path) -> None:
    kinds = ["fine", "setup", "step", "killed"]
    seen = tmp_path / "seen"

    class Train(tune.Trainable):
        def setup(self, config: dict[str, Any]) -> None:
            if config["kind"] == "setup":
                raise crashbo.Crash("no power")

        def step(self) -> dict[str, Any]:
            kind = self.config["kind"]
            if kind == "step" and self.iteration == 1:
                raise ValueError("diverged")
            if kind == "killed" and not seen.exists():
                seen.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return {"cost": 1.0 - 0.1 * self.iteration, "done": self.iteration == 2}

        def save_checkpoint(self, checkpoint_dir: str) -> None:
            pass

        def load_checkpoint(self, checkpoint: Any) -> None:
            pass

    search = CrashBOSearch(
        metric="cost", mode="min", points_to_evaluate=[{"kind": kind} for kind in kinds], options=FAST
    )
    failures = tune.FailureConfig(max_failures=1)
    run(search, search.crashing(Train), {"kind": tune.choice(kinds)}, tmp_path, 4, failure_config=failures)
    found = {trial.params["kind"]: (trial.objective, trial.reason) for trial in search.optimizer.trials}
    assert found == {
        "fine": (0.8, ""),
        "setup": (None, "no power"),
        "step": (None, "ValueError: diverged"),
        "killed": (0.8, ""),
    }


@pytest.mark.usefixtures("cluster")
def test_a_stopped_run_is_restored(tmp_path: Path) -> None:
    stopped = tmp_path / "stopped"

    class Stop(tune.Callback):
        def on_step_begin(self, iteration: int, trials: list[Any], **info: Any) -> None:
            if sum(trial.is_finished() for trial in trials) >= 2 and not stopped.exists():
                stopped.touch()
                raise KeyError("stopped by the test")

    def train(config: dict[str, Any]) -> Any:
        if config["x"] > 0.8:
            raise ValueError("too far")
        return {"cost": (config["x"] - 0.6) ** 2}

    search = CrashBOSearch(metric="cost", mode="min", options=FAST, seed=1)
    with pytest.raises(Exception, match="stopped by the test"):
        run(search, search.crashing(train), LINE, tmp_path, 5, callbacks=[Stop()])
    results = tune.Tuner.restore(str(tmp_path / "run"), trainable=crashing(train, "cost")).fit()
    restored = CrashBOSearch()
    restored.restore_from_dir(results.experiment_path)
    assert restored.errors == "transient"
    assert sorted(trial.params["x"] for trial in restored.optimizer.trials) == sorted(
        result.config["x"] for result in results
    )
    assert len(restored.optimizer.trials) == 5
    assert not restored.optimizer.pending


@pytest.mark.usefixtures("cluster")
def test_without_the_wrapper_errors_are_crashes_and_bad_results_stop_the_run(tmp_path: Path) -> None:
    def train(config: dict[str, Any]) -> Any:
        if config["x"] == 0.25:
            raise ValueError("bad")
        return {"cost": 1.0}

    points = [{"x": 0.25}, {"x": 0.5}]
    search = CrashBOSearch(metric="cost", mode="min", points_to_evaluate=points, constraints=["reach"], options=FAST)
    with pytest.raises(Exception, match=r"`reach` must be told with the objective; got nothing"):
        run(search, train, LINE, tmp_path, 6, at_once=1)
    (trial,) = search.optimizer.trials
    assert trial.params == points[0]
    assert trial.reason == "error"


@pytest.mark.usefixtures("cluster")
def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("docs/ray.md", {"__name__": "__main__"})
    assert "success" in capsys.readouterr().out


@pytest.mark.usefixtures("cluster")
def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/ray_tune.py"), run_name="__main__")
    assert "Best guess: kp" in capsys.readouterr().out


def test_the_tutorial_runs(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="needs the extra examples")
    example = small_copy("ray_workers.py", tmp_path)
    done = subprocess.run([sys.executable, str(example)], capture_output=True, text=True, cwd=tmp_path, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "Best guess: C" in done.stdout
