"""CrashBO as a generation node of Ax's Client."""

import logging
import math
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import crashbo
from tests.adapters.extras import ROOT, needs, run_page

needs("ax.api.client", "ax")
from ax.api.client import Client  # noqa: E402
from ax.api.configs import ChoiceParameterConfig, DerivedParameterConfig, RangeParameterConfig  # noqa: E402
from ax.core.parameter import ParameterType, RangeParameter  # noqa: E402
from ax.core.parameter_constraint import ParameterConstraint  # noqa: E402
from ax.generation_strategy.generation_strategy import GenerationStrategy  # noqa: E402
from ax.generation_strategy.transition_criterion import MinTrials  # noqa: E402

from crashbo.adapters import ax as adapter  # noqa: E402
from crashbo.adapters.ax import CrashBONode, Settings, best, configure, node_of, thresholds  # noqa: E402

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning:ax.*"),  # pandas and its own
    pytest.mark.filterwarnings("ignore::FutureWarning:ax.*"),
]

FAST = crashbo.Options(initial=3, raw=64, samples=4)
SQUARE = [RangeParameterConfig(name=name, bounds=(0.0, 1.0), parameter_type="float") for name in ("x", "y")]


@pytest.fixture(autouse=True)
def _quiet() -> None:
    logging.getLogger("ax").setLevel(logging.ERROR)
    logging.getLogger("ax.api.client").setLevel(logging.ERROR)


def make_client(
    parameters: Any = None,
    objective: str = "-cost",
    outcome_constraints: Any = None,
    between: Any = None,
    equal: Sequence[str] = (),
    **settings: Any,
) -> Any:
    client = Client()
    client.configure_experiment(parameters=parameters or SQUARE, parameter_constraints=between)
    if equal:
        client._experiment.search_space.set_parameter_constraints([ParameterConstraint(equality=one) for one in equal])
    client.configure_optimization(objective=objective, outcome_constraints=outcome_constraints)
    configure(client, **({"options": FAST} | settings))
    return client


def attach(client: Any, data: dict[str, float] | None = None, **params: Any) -> int:
    """Attach a finished trial, or a running one without data."""
    index = client.attach_trial(params)
    if data is not None:
        client.complete_trial(index, data)
    return int(index)


def told(client: Any) -> Any:
    """The trials as CrashBO sees them."""
    return node_of(client)._current().optimizer.trials


def pending_of(client: Any) -> list[dict[str, Any]]:
    """What was pending when the last trial was suggested, that one included."""
    state = node_of(client)._told
    assert state is not None
    return [dict(one) for one in state.optimizer.pending]


# --- outcomes --------------------------------------------------------------------------------


def test_costs_and_failures_with_their_reasons_are_learned() -> None:
    client = make_client()
    attach(client, {"cost": 0.5}, x=0.1, y=0.2)
    client.mark_trial_failed(attach(client, x=0.8, y=0.9), failed_reason="fell")
    client.mark_trial_abandoned(attach(client, x=0.7, y=0.9))
    trials = told(client)
    assert [trial.objective for trial in trials] == [0.5, None, None]
    assert [trial.reason for trial in trials] == ["", "fell", ""]
    assert trials[1].params == {"x": 0.8, "y": 0.9}


@pytest.mark.parametrize(
    ("crashes", "count"), [([], 0), (["FAILED"], 1), (["ABANDONED"], 1), (["FAILED", "ABANDONED", "EARLY_STOPPED"], 3)]
)
def test_which_failures_count_is_a_choice(crashes: list[str], count: int) -> None:
    client = make_client(crashes=crashes)
    client.mark_trial_failed(attach(client, x=0.8, y=0.9))
    client.mark_trial_abandoned(attach(client, x=0.7, y=0.9))
    index = attach(client, x=0.6, y=0.9)
    client.attach_data(index, {"cost": 3.0})
    client.mark_trial_early_stopped(index)
    trials = told(client)
    assert sum(trial.crashed for trial in trials) == count
    assert [trial.objective for trial in trials if not trial.crashed] == ([] if count == 3 else [3.0])


def test_an_abandoned_trial_is_never_pending_once_it_counts_and_always_when_it_does_not() -> None:
    for crashes, pending in ((["ABANDONED"], False), (["FAILED"], True)):
        client = make_client(crashes=crashes)
        attach(client, {"cost": 0.5}, x=0.1, y=0.2)
        client.mark_trial_abandoned(attach(client, x=0.7, y=0.9))
        client.get_next_trials(1)
        assert ({"x": 0.7, "y": 0.9} in pending_of(client)) is pending


def test_a_transient_failure_is_not_learned_from_and_suggested_again_once() -> None:
    client = make_client()
    attach(client, {"cost": 0.5}, x=0.1, y=0.2)
    for _ in range(2):
        client.mark_trial_failed(attach(client, x=0.3, y=0.4), failed_reason="Transient: lost connection")
    assert len(told(client)) == 1
    (index,) = suggested = client.get_next_trials(1)
    assert suggested[index] == {"x": 0.3, "y": 0.4}
    assert {"x": 0.3, "y": 0.4} not in client.get_next_trials(1).values()
    client.complete_trial(index, {"cost": 1.0})
    assert {"x": 0.3, "y": 0.4} not in client.get_next_trials(1).values()
    assert [trial.objective for trial in told(client)] == [0.5, 1.0]


def test_a_cost_of_nan_is_a_crash_and_a_missing_one_is_awaited() -> None:
    client = make_client(constraints=[crashbo.Constraint("reach")])
    attach(client, {"cost": math.nan, "reach": 2.0}, x=0.1, y=0.2)
    attach(client, {"reach": 2.0}, x=0.3, y=0.2)
    (trial,) = told(client)
    assert trial.crashed
    assert trial.reason == "cost nan"
    assert trial.constraints == {"reach": 2.0}
    client.get_next_trials(1)
    assert {"x": 0.3, "y": 0.2} in pending_of(client)
    assert {"x": 0.1, "y": 0.2} not in pending_of(client)


def test_level_set_constraints_are_values_violated_or_partly_seen() -> None:
    client = make_client(constraints=["reach"])
    attach(client, {"cost": 0.5, "reach": 1.0}, x=0.1, y=0.2)
    attach(client, {"cost": 0.4, "reach": math.nan}, x=0.2, y=0.2)
    index = attach(client, x=0.3, y=0.2)
    client.attach_data(index, {"reach": 0.7})
    client.mark_trial_failed(index, failed_reason="fell")
    client.mark_trial_failed(attach(client, x=0.4, y=0.2))
    assert [dict(trial.constraints) for trial in told(client)] == [{"reach": 1.0}, {"reach": None}, {"reach": 0.7}, {}]
    assert "reach" in thresholds(client)


def test_a_constraint_left_out_of_a_finished_trial_is_named() -> None:
    client = make_client(constraints=["reach"])
    index = attach(client, {"cost": 0.5}, x=0.1, y=0.2)
    with pytest.raises(crashbo.InputError, match=r"`reach` must be told with the cost of trial 0; got nothing"):
        client.get_next_trials(1)
    client.attach_data(index, {"reach": 1.0})
    assert client.get_next_trials(1)


def test_the_latest_value_of_a_progression_counts() -> None:
    client = make_client()
    index = attach(client, x=0.1, y=0.2)
    for step, cost in enumerate((3.0, 2.0, 1.0)):
        client.attach_data(index, {"cost": cost}, progression=step)
    client.complete_trial(index)
    assert [trial.objective for trial in told(client)] == [1.0]


@pytest.mark.filterwarnings("ignore:.*out-of-design:RuntimeWarning")
def test_trials_outside_the_space_are_left_alone() -> None:
    client = make_client()
    attach(client, {"cost": 0.5}, x=0.1, y=0.2)
    attach(client, {"cost": 0.1}, x=2.0, y=0.2)
    assert len(told(client)) == 1
    assert client.get_next_trials(1)


# --- objectives and known limits -------------------------------------------------------------


@pytest.mark.parametrize(
    ("objective", "direction", "value"),
    [("-cost", "minimize", 2.0), ("cost", "maximize", 2.0), ("3 * gain - cost", "maximize", 13.0)],
)
def test_objectives_in_their_direction(objective: str, direction: str, value: float) -> None:
    client = make_client(objective=objective)
    attach(client, {"cost": 2.0, "gain": 5.0}, x=0.1, y=0.2)
    optimizer = node_of(client)._current().optimizer
    assert optimizer.direction == direction
    assert optimizer.trials[0].objective == value


def test_outcome_constraints_become_known_limits() -> None:
    client = make_client(outcome_constraints=["force <= 20", "speed >= 3", "speed <= 9", "2 * torque <= 50"])
    attach(client, {"cost": 1.0, "force": 4.0, "speed": 5.0, "torque": 8.0}, x=0.1, y=0.2)
    optimizer = node_of(client)._current().optimizer
    limits = {one.name: one.threshold for one in optimizer.constraints}
    assert limits == {"force": 20.0, "speed": -3.0, "speed_2": 9.0, "torque": 25.0}
    assert optimizer.trials[0].constraints == {"force": 4.0, "speed": -5.0, "speed_2": 5.0, "torque": 8.0}
    known = {name: value for name, value in thresholds(client).items() if name != "objective"}
    assert known == pytest.approx({"force": 20.0, "speed": 3.0, "speed_2": 9.0, "torque": 25.0})


def test_a_known_limit_keeps_suggestions_inside() -> None:
    client = make_client(outcome_constraints=["total <= 0.8"], seed=3)
    sums = []
    for _ in range(12):
        for index, params in client.get_next_trials(1).items():
            sums.append(params["x"] + params["y"])
            client.complete_trial(index, {"cost": -sums[-1], "total": sums[-1]})
    found = best(client)
    assert found.feasible
    assert 0.7 < found.params["x"] + found.params["y"] < 0.82


# --- refusals --------------------------------------------------------------------------------


def _with_logit(client: Any) -> None:
    client._experiment.search_space._parameters["x"] = RangeParameter(
        name="x", parameter_type=ParameterType.FLOAT, lower=0.1, upper=0.9, logit_scale=True
    )


def _with_fidelity(client: Any) -> None:
    client._experiment.search_space._parameters["x"] = RangeParameter(
        name="x", parameter_type=ParameterType.FLOAT, lower=0.0, upper=1.0, is_fidelity=True, target_value=1.0
    )


@pytest.mark.parametrize(
    ("objective", "outcome", "between", "change", "message"),
    [
        ("-cost, gain", None, None, None, r"`objective` must be one expression; got '-cost, gain'"),
        ("-cost", ["force <= 0.9 * baseline"], None, None, r"must not be relative to a baseline"),
        (
            "-cost",
            ["2 * a + b <= 3"],
            None,
            None,
            r"must bound one metric each; got '2 \* a \+ b <= 3', of",
        ),
        ("-cost", ["reach <= 3"], None, None, r"`constraints` must hold metrics without a known limit; got 'reach'"),
        ("-cost", None, ["x + y <= -1"], None, r"`constraints` must leave some point of the space; none satisfies"),
        ("-cost", None, None, _with_logit, r"`x` must be a plain parameter; got one with logit_scale"),
        ("-cost", None, None, _with_fidelity, r"`x` must be a plain parameter; got one with is_fidelity"),
    ],
)
def test_what_crashbo_cannot_do_is_refused_at_once(
    objective: str, outcome: Any, between: Any, change: Callable[[Any], None] | None, message: str
) -> None:
    client = Client()
    client.configure_experiment(parameters=SQUARE, parameter_constraints=between)
    client.configure_optimization(objective=objective, outcome_constraints=outcome)
    if change is not None:
        change(client)
    with pytest.raises(crashbo.InputError, match=message):
        configure(client, constraints=["reach"])


def test_hierarchical_choices_are_refused() -> None:
    choice = ChoiceParameterConfig(
        name="kind",
        values=["a", "b"],
        parameter_type="str",
        is_ordered=True,
        dependent_parameters={"a": ["x"], "b": ["y"]},
    )
    with pytest.raises(crashbo.InputError, match=r"`kind` must be a plain parameter; got one with is_hierarchical"):
        make_client(parameters=[choice, *SQUARE])


PARTS = [
    *SQUARE,
    RangeParameterConfig(name="n", bounds=(1, 9), parameter_type="int"),
    RangeParameterConfig(name="net.depth", bounds=(1, 9), parameter_type="int"),
    ChoiceParameterConfig(name="width", values=[16, 64, 90], parameter_type="int", is_ordered=True),
]


def test_constraints_between_parameters_hold_for_every_suggestion(tmp_path: Path) -> None:
    between = ["x + y <= 0.5", "x >= 2 * y", "n + width <= 70", "net.depth - n <= 0"]

    def allowed(p: dict[str, Any]) -> bool:
        near = p["x"] + p["y"] <= 0.5 and p["x"] >= 2 * p["y"]
        return near and p["n"] + p["width"] <= 70 and p["net.depth"] <= p["n"]

    client = make_client(PARTS, between=between)
    for number in range(8):
        if number == 4:  # saved and loaded, they still hold
            client.save_to_json_file(str(tmp_path / "client.json"))
            client = Client.load_from_json_file(str(tmp_path / "client.json"))
        for index, params in client.get_next_trials(2).items():
            assert allowed(params), params
            client.complete_trial(index, {"cost": -params["x"] - params["y"] - params["n"] - params["width"]})
    assert allowed(dict(best(client).params))
    assert best(client).params["width"] == 64  # the best one that is allowed


def test_a_trial_outside_of_a_constraint_between_parameters_still_teaches() -> None:
    client = make_client(between=["x + y <= 0.5"])
    with pytest.raises(Exception, match="constraint"):  # Ax's own check
        attach(client, {"cost": 1.0}, x=0.9, y=0.9)
    attach(client, {"cost": 1.0}, x=0.1, y=0.1)
    assert [dict(one.params) for one in told(client)] == [{"x": 0.1, "y": 0.1}]


def test_an_equation_between_integers_holds_and_one_between_floats_is_refused() -> None:
    whole = [RangeParameterConfig(name=name, bounds=(0, 9), parameter_type="int") for name in ("a", "b")]
    client = make_client(whole, equal=["a + b == 7"])
    assert all(one["a"] + one["b"] == 7 for one in client.get_next_trials(3).values())
    with pytest.raises(
        crashbo.InputError, match=r"must be inequalities .* '1.0 \* x \+ 1.0 \* y == 1.0'. Make `x` a derived"
    ):
        make_client(equal=["x + y == 1"])


def test_fixed_parameters_of_a_call_are_refused() -> None:
    with pytest.raises(crashbo.InputError, match=r"`fixed_parameters` must be left out; got \{'x': 0.5\}"):
        make_client().get_next_trials(1, fixed_parameters={"x": 0.5})


def test_options_must_name_outputs_of_the_experiment() -> None:
    options = crashbo.Options(fixed={"wrong": crashbo.FixedModel(lengthscale=0.3, variance=1.0)})
    with pytest.raises(crashbo.InputError, match=r"`options.fixed` must name outputs; got \['wrong'\]"):
        make_client(options=options)


def test_an_experiment_needs_its_objective_first() -> None:
    client = Client()
    client.configure_experiment(parameters=SQUARE)
    with pytest.raises(crashbo.InputError, match=r"`client` must have an objective; got none"):
        configure(client)
    with pytest.raises(crashbo.InputError, match=r"`client` must be set up by `configure`"):
        best(client)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"crashes": ["COMPLETED"]}, r"`crashes` must hold names out of FAILED, ABANDONED, EARLY_STOPPED"),
        ({"crashes": "FAILED"}, r"`crashes` must be a list; got 'FAILED'"),
        ({"constraints": "reach"}, r"`constraints` must be a list"),
        ({"transient": ""}, r"`transient` must be the first word"),
        ({"seed": -1}, r"`seed` must be an integer >= 0"),
        ({"acquisition": "ei"}, r"`acquisition` must be"),
        ({"options": {"raw": 3}}, r"`options` must be crashbo.Options"),
    ],
)
def test_bad_settings_are_refused_at_once(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(crashbo.InputError, match=message):
        Settings(**settings)


# --- parameters ------------------------------------------------------------------------------


def test_all_kinds_of_parameters() -> None:
    client = make_client(
        parameters=[
            RangeParameterConfig(name="x", bounds=(1e-3, 1.0), parameter_type="float", scaling="log"),
            RangeParameterConfig(name="n", bounds=(1, 8), parameter_type="int"),
            RangeParameterConfig(name="m", bounds=(1, 1000), parameter_type="int", scaling="log"),
            RangeParameterConfig(name="s", bounds=(0.0, 0.5), parameter_type="float", step_size=0.1),
            ChoiceParameterConfig(name="c", values=["a", "b", "c"], parameter_type="str", is_ordered=False),
            ChoiceParameterConfig(name="o", values=[1, 10, 100], parameter_type="int", is_ordered=True),
            ChoiceParameterConfig(name="b", values=[True, False], parameter_type="bool", is_ordered=True),
            ChoiceParameterConfig(name="f", values=[3], parameter_type="int"),
            DerivedParameterConfig(name="d", expression_str="2 * x", parameter_type="float"),
        ]
    )
    space = client._experiment.search_space
    for number in range(7):
        for index, params in client.get_next_trials(1).items():
            assert space.check_membership(params, raise_error=True)
            assert params["f"] == 3
            assert params["d"] == pytest.approx(2 * params["x"])
            assert [type(params[name]) for name in ("x", "n", "o", "b", "c")] == [float, int, int, bool, str]
            if number % 3:
                client.complete_trial(index, {"cost": params["x"] + params["n"]})
            else:
                client.mark_trial_failed(index)
    assert len(told(client)) == 7
    assert list(best(client).params) == ["x", "n", "m", "s", "c", "o", "b", "f", "d"]
    ordered = node_of(client)._current().asked.codec
    assert ordered.encode({**params, "o": 100})["o"] == 2
    assert ordered.encode({**params, "o": 50}) is None


# --- suggestions -----------------------------------------------------------------------------


def test_trials_under_way_are_pending() -> None:
    client = make_client(seed=2)
    for x in (0.1, 0.5, 0.9):
        attach(client, {"cost": (x - 0.4) ** 2}, x=x, y=0.5)
    running = client.get_next_trials(2)
    more = client.get_next_trials(2)
    points = [tuple(params.values()) for params in (*running.values(), *more.values())]
    assert len(set(points)) == 4
    assert [tuple(one.values()) for one in pending_of(client)] == points


def test_failed_points_are_not_suggested_again() -> None:
    values = [ChoiceParameterConfig(name="k", values=[1, 2, 3, 4, 5], parameter_type="int", is_ordered=True)]
    client = make_client(parameters=values)
    seen = []
    for _ in range(4):
        for index, params in client.get_next_trials(1).items():
            seen.append(params["k"])
            client.mark_trial_failed(index)
    assert len(set(seen)) == 4


def test_it_says_why() -> None:
    client = make_client()
    for x in (0.1, 0.5, 0.9):
        attach(client, {"cost": (x - 0.4) ** 2}, x=x, y=0.5)
    (index,) = client.get_next_trials(1)
    (why,) = client._experiment.trials[index].generator_runs[0].gen_metadata["crashbo"]
    assert why["mode"] == "gain"
    assert 0.0 <= why["success_probability"] <= 1.0
    assert why["why"].endswith("% likely to succeed")


def test_the_node_asks_for_an_experiment_first() -> None:
    with pytest.raises(crashbo.InputError, match=r"`update_generator_state` must come before"):
        CrashBONode().get_next_candidate([])


# --- save and load ---------------------------------------------------------------------------


def experiment(params: dict[str, Any]) -> dict[str, float] | None:
    if params["x"] + params["y"] > 1.2:
        return None
    return {"cost": (params["x"] - 0.7) ** 2 / 3 + 1e-11 * params["y"], "reach": params["y"] / 7, "h": params["y"]}


def go_on(client: Any, rounds: int) -> list[Any]:
    """Trials, two at a time, of which one stays out for a round."""
    suggested = []
    for _ in range(rounds):
        for index, params in client.get_next_trials(2).items():
            suggested.append(params)
            data = experiment(params)
            if data is None:
                client.mark_trial_failed(index, failed_reason="fell")
            elif index % 4:
                client.complete_trial(index, data)
    return suggested


def test_a_loaded_client_goes_on_exactly_as_the_saved_one(tmp_path: Path) -> None:
    fixed = {"reach": crashbo.FixedModel(lengthscale=0.3, variance=1.0)}
    options = crashbo.Options(initial=3, raw=64, samples=4, fixed=fixed)
    client = make_client(
        outcome_constraints=["2 * h <= 1.5"], constraints=["reach"], seed=5, options=options, crashes=["FAILED"]
    )
    go_on(client, 3)
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    loaded = Client.load_from_json_file(path)
    assert node_of(loaded).settings == node_of(client).settings
    assert told(loaded) == told(client)  # to the last digit, though Ax rounds
    assert go_on(loaded, 2) == go_on(client, 2)
    loaded.save_to_json_file(path)
    again = Client.load_from_json_file(path)
    assert told(again) == told(client)
    assert again.get_next_trials(1) == client.get_next_trials(1)


def test_data_changed_after_loading_wins(tmp_path: Path) -> None:
    client = make_client()
    index = attach(client, {"cost": 1.0 / 3.0}, x=0.1, y=0.2)
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    loaded = Client.load_from_json_file(path)
    assert told(loaded)[0].objective == 1.0 / 3.0
    loaded.attach_data(index, {"cost": 0.5})
    assert told(loaded)[0].objective == 0.5


def test_within_a_larger_strategy_saved_and_loaded(tmp_path: Path) -> None:
    first = CrashBONode(
        Settings(options=FAST, seed=1),
        name="first",
        transition_criteria=[MinTrials(threshold=2, transition_to="second", use_all_trials_in_exp=True)],
    )
    client = make_client()
    client.set_generation_strategy(
        GenerationStrategy(nodes=[first, CrashBONode(Settings(options=FAST), name="second")])
    )
    go_on(client, 1)
    path = str(tmp_path / "client.json")
    client.save_to_json_file(path)
    loaded = Client.load_from_json_file(path)
    assert go_on(loaded, 1) == go_on(client, 1)
    nodes = [trial.generator_runs[0]._generation_node_name for trial in loaded._experiment.trials.values()]
    assert nodes == ["first", "first", "second", "second"]


def test_registering_twice_is_harmless(tmp_path: Path) -> None:
    adapter.register()
    client = make_client()
    client.save_to_json_file(str(tmp_path / "client.json"))
    assert Client.load_from_json_file(str(tmp_path / "client.json")).get_next_trials(1) == client.get_next_trials(1)


# --- docs ------------------------------------------------------------------------------------


def test_it_finds_the_optimum_beside_the_crashes() -> None:
    client = make_client(seed=1)
    go_on(client, 10)
    found = best(client)
    assert abs(found.params["x"] - 0.7) < 0.15
    assert found.params["x"] + found.params["y"] < 1.25
    crashes = sum(trial.crashed for trial in told(client))
    assert 1 <= crashes <= 8


def test_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    run_page("docs/ax.md", {})
    assert "success" in capsys.readouterr().out


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(ROOT / "examples/ax_client.py"), run_name="__main__")
    assert "Best guess: kp" in capsys.readouterr().out
