"""An outcome means the same through every interface."""

import json
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import optuna
import pytest

import crashbo
from crashbo import VIOLATED, Constraint, Crash, Optimizer, Options
from crashbo.adapters.optuna import CrashBOSampler, crashing, report
from crashbo.adapters.optuna.records import read
from crashbo.search.price import budget_left
from crashbo.show.planes import maps
from crashbo.show.views import view
from crashbo.store.study import Study, counts
from tests.adapters.extras import needs
from tests.store.helpers import make_study

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:(ax|ray).*"),
    pytest.mark.filterwarnings("ignore::FutureWarning:(ax|ray).*"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

LINE = {"x": (0.0, 1.0)}
LIMITS = [Constraint("reach"), Constraint("heat", 80.0)]
QUICK = Options(initial=50)
Told = tuple[float | None, Mapping[str, float | None], str]


def minimize(values: Mapping[str, Any], folder: Path) -> Told:
    trial = crashbo.minimize(lambda _: values, LINE, n_trials=1, constraints=LIMITS, options=QUICK).trials[0]
    return trial.objective, trial.constraints, trial.reason


def optimizer(values: Mapping[str, Any], folder: Path) -> Told:
    given = dict(values)
    trial = Optimizer(LINE, constraints=LIMITS).tell({"x": 0.5}, given.pop("objective"), **given)
    return trial.objective, trial.constraints, trial.reason


def optuna_study(values: Mapping[str, Any], folder: Path) -> Told:
    study = optuna.create_study(sampler=CrashBOSampler(constraints=LIMITS, options=QUICK))

    def objective(trial: optuna.Trial) -> Any:
        trial.suggest_float("x", 0.0, 1.0)
        report(trial, **{name: value for name, value in values.items() if name != "objective"})
        return values["objective"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        study.optimize(objective, n_trials=1)
    record = read(study)[0]
    assert record.status == ("crashed" if record.objective is None else "finished")
    return record.objective, record.constraints, record.reason


def of_study(study: Study) -> Told:
    record = study.records()[0]
    assert record.status == ("crashed" if record.objective is None else "finished")
    return record.objective, record.constraints, record.reason


def study_in(folder: Path) -> Study:
    return make_study(folder, constraints={"reach": None, "heat": 80})


def written(value: Any) -> str:
    return "violated" if value is VIOLATED or value is None else repr(float(value))


def command_line(values: Mapping[str, Any], folder: Path) -> Told:
    from typer.testing import CliRunner

    from crashbo.cli import app

    study = study_in(folder)
    cost = values["objective"]
    words = [f"{name}={written(value)}" for name, value in values.items() if name != "objective"]
    verb = ["crash"] if cost is None else ["tell", written(cost)]
    run = [verb[0], "--params", "x=0.5", *verb[1:], *words, "--storage", str(folder / "crashbo.db")]
    ran = CliRunner().invoke(app, run)
    assert ran.exit_code == 0, ran.output
    return of_study(study)


def program(values: Mapping[str, Any], folder: Path) -> Told:
    from crashbo.store.programs import Program
    from crashbo.store.running import Runner

    study = study_in(folder)
    line = json.dumps({name: "violated" if value is VIOLATED else value for name, value in values.items()})
    Runner(study, Program((sys.executable, "-c", f"print({line!r})")), trials=1).run()
    return of_study(study)


def console(values: Mapping[str, Any], folder: Path) -> Told:
    from crashbo.console.desk import Desk
    from crashbo.console.forms import Form

    study = study_in(folder)
    desk = Desk(study)
    number = desk.start({"x": 0.5})
    seen = {name: written(value) for name, value in values.items() if name != "objective"}
    body: dict[str, Any] = {"number": number, "constraints": seen}
    if values["objective"] is None:
        desk.crash(Form(body, ["number", "constraints"]))
    else:
        body["objective"] = written(values["objective"])
        for _ in range(2):  # pressed twice
            desk.tell(Form(body, ["number", "constraints", "objective"]))
    return of_study(study)


def table(values: Mapping[str, Any], folder: Path) -> Told:
    from crashbo.store.importing import import_file

    study = study_in(folder)
    cost = values["objective"]
    cells = ["0.5", "" if cost is None else written(cost), *(written(values[one.name]) for one in LIMITS)]
    (folder / "trials.csv").write_text("x,objective,reach,heat\n" + ",".join(cells) + "\n")
    assert import_file(study, folder / "trials.csv").numbers == (0,)
    return of_study(study)


def ray(values: Mapping[str, Any], folder: Path) -> Told:
    needs("ray.tune", "ray")
    from crashbo.adapters.ray import CrashBOSearch

    search = CrashBOSearch(crashbo.Space(LINE), "objective", "min", constraints=LIMITS, options=QUICK)
    search.suggest("t0")
    search.on_trial_complete("t0", dict(values))
    trial = search.optimizer.trials[0]
    return trial.objective, trial.constraints, trial.reason


def ax(values: Mapping[str, Any], folder: Path) -> Told:
    needs("ax.api.client", "ax")
    if values["objective"] is None:
        pytest.skip("Ax has no None: a trial without a cost is not finished there")
    from ax.api.client import Client
    from ax.api.configs import RangeParameterConfig

    from crashbo.adapters.ax import configure, node_of

    client = Client()
    parameter = RangeParameterConfig(name="x", bounds=(0.0, 1.0), parameter_type="float")
    client.configure_experiment(parameters=[parameter])
    client.configure_optimization(objective="-objective", outcome_constraints=["heat <= 80"])
    configure(client, constraints=[Constraint("reach")], options=QUICK)
    index = client.attach_trial({"x": 0.5})
    client.complete_trial(index, {name: math.nan if one is VIOLATED else one for name, one in values.items()})
    trial = node_of(client)._current().optimizer.trials[0]
    return trial.objective, trial.constraints, trial.reason


INTERFACES: list[Callable[[Mapping[str, Any], Path], Told]] = [
    minimize,
    optimizer,
    optuna_study,
    command_line,
    program,
    console,
    table,
    ray,
    ax,
]
SEEN = {"reach": 2.0, "heat": 20.0}
# What is told, and: cost, constraints, reason (interfaces that have no cost at all to show have no reason either).
OUTCOMES: dict[str, tuple[dict[str, Any], Told]] = {
    "a cost": ({"objective": 0.5, **SEEN}, (0.5, SEEN, "")),
    "an enormous cost": ({"objective": -1e100, **SEEN}, (-1e100, SEEN, "")),
    "NaN": ({"objective": math.nan, **SEEN}, (None, SEEN, "cost nan")),
    "None": ({"objective": None, **SEEN}, (None, SEEN, "no cost")),
    "infinity": ({"objective": math.inf, **SEEN}, (None, SEEN, "cost inf")),
    "minus infinity": ({"objective": -math.inf, **SEEN}, (None, SEEN, "cost -inf")),
    "diverged": ({"objective": 1e120, **SEEN}, (None, SEEN, "cost beyond 1e100")),
    "violated": ({"objective": 0.5, "reach": VIOLATED, "heat": 20.0}, (0.5, {"reach": None, "heat": 20.0}, "")),
    "NaN constraint": ({"objective": 0.5, "reach": math.nan, "heat": 20.0}, (0.5, {"reach": None, "heat": 20.0}, "")),
    "diverged constraint": (
        {"objective": 0.5, "reach": 1e101, "heat": math.inf},
        (0.5, {"reach": None, "heat": None}, ""),
    ),
    "beyond a known limit": ({"objective": 0.5, "reach": 2.0, "heat": 90.0}, (0.5, {"reach": 2.0, "heat": 90.0}, "")),
}


@pytest.mark.parametrize("interface", INTERFACES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", OUTCOMES)
def test_an_outcome_means_the_same_everywhere(
    interface: Callable[[Mapping[str, Any], Path], Told], name: str, tmp_path: Path
) -> None:
    values, (cost, constraints, reason) = OUTCOMES[name]
    found = interface(values, tmp_path)
    assert found[:2] == (cost, constraints)
    nothing_to_show = name in ("None", "NaN") and interface is optuna_study
    assert found[2] == reason or ((name == "None" or nothing_to_show) and found[2] == "")


def raises(error: BaseException) -> Callable[..., Any]:
    def function(*_: Any) -> Any:
        raise error

    return function


def test_crash_carries_its_reason_and_values_everywhere() -> None:
    crash = Crash("fell", reach=2.0)
    trial = crashbo.minimize(raises(crash), LINE, n_trials=1, constraints=LIMITS, options=QUICK).trials[0]
    assert (trial.objective, trial.constraints, trial.reason) == (None, {"reach": 2.0}, "fell")
    study = optuna.create_study(sampler=CrashBOSampler(constraints=LIMITS, options=QUICK))

    def objective(trial: optuna.Trial) -> float:
        trial.suggest_float("x", 0.0, 1.0)
        raise crash

    study.optimize(crashing(objective), n_trials=1, catch=(Crash,))
    record = read(study)[0]
    assert (record.status, record.constraints, record.reason) == ("crashed", {"reach": 2.0}, "fell")


# --- a known limit that is broken is a failure everywhere ----------------------------------------


def broken() -> Optimizer:
    """Two trials of three broke a known limit; none crashed."""
    options = Options(initial=3, crash_budget=5)
    found = Optimizer({**LINE, "y": (0.0, 1.0)}, constraints=[Constraint("heat", 80.0)], options=options)
    for x, heat in ((0.2, 20.0), (0.6, 90.0), (0.9, 100.0)):
        found.tell({"x": x, "y": x}, x, heat=heat)
    return found


def test_a_broken_known_limit_is_a_failure_for_risk_and_budget() -> None:
    found = broken()
    failed = found.history.failed.tolist()
    assert failed == [False, True, True]
    assert budget_left(failed, found.options) == 3
    score: Any = found.score()
    assert score.price > 0
    assert not score.fresh(found.history.points[1:]).any()
    surrogate = found.surrogate()
    success = surrogate.success(found.history.points)
    assert success[0] > 0.9
    assert (success[1:] < 0.1).all()
    assert found.best().params["x"] < 0.6


def test_a_broken_known_limit_is_a_failure_in_views_maps_and_counts(tmp_path: Path) -> None:
    seen = view(broken())
    assert [seen.failed(one) for one in seen.trials] == [False, True, True]
    drawn = maps(seen, points=5, quantities=("mean", "success"))
    assert drawn.marks_of(drawn.layer("success")).failed.tolist() == [False, True, True]
    assert drawn.marks_of(drawn.layer("mean", "heat")).failed.tolist() == [False, True, True]
    study = make_study(tmp_path, constraints={"heat": 80})
    from crashbo.store import recording

    for x, heat in ((0.2, 20.0), (0.6, 90.0)):
        recording.add(study, {"x": x}, x, {"heat": heat})
    assert counts(study.definition, study.records())["failed"] == 1
