"""Ask, tell and best: the documented calls, repeatability, restored state, bad input, odd histories."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import crashbo
from crashbo import CRASHED, VIOLATED, Constraint, InputError, Optimizer, Options
from crashbo.optimizer import describe_relation
from crashbo.search import Caution

LINE = {"x": (0.0, 1.0)}
SQUARE = {"x": (0.0, 1.0), "y": (-2.0, 2.0)}
MIXED = crashbo.Space(
    {
        "kp": (0.0, 10.0),
        "kd": crashbo.Float(1e-3, 1.0, log=True),
        "order": crashbo.Int(1, 8),
        "filter": crashbo.Categorical(["none", "butter"]),
    }
)
QUICK = Options(initial=3, raw=64, samples=4)
FIXED = {"objective": crashbo.FixedModel(0.2, 1.0), "g": crashbo.FixedModel(0.3, 2.0, threshold_prior=None)}


def cost(params) -> float:
    return (params["x"] - 0.3) ** 2


def run(optimizer: Optimizer, n: int, sign: float = 1.0) -> list[dict]:
    """Trials on a bowl that crashes right of 0.7."""
    points = []
    for _ in range(n):
        params = optimizer.ask()
        points.append(dict(params))
        optimizer.tell(params, CRASHED if params["x"] > 0.7 else sign * cost(params))
    return points


def constrained(**named) -> Optimizer:
    """An optimizer with a constraint, six trials told and one suggestion out."""
    optimizer = Optimizer(SQUARE, constraints=[Constraint("g")], options=QUICK, **named)
    for x, y in [(0.1, 0.0), (0.4, 1.0), (0.6, -1.0), (0.9, 0.5), (0.2, -1.9), (0.5, 1.8)]:
        label = VIOLATED if y > 1.5 else y
        optimizer.tell({"x": x, "y": y}, CRASHED if x > 0.7 else cost({"x": x}), g=label)
    optimizer.ask()
    return optimizer


# --- the documented calls --------------------------------------------------------------------


def test_the_documented_calls_work():
    optimizer = Optimizer(
        MIXED, constraints=[Constraint("reach")], direction="minimize", acquisition="auto", seed=0, options=QUICK
    )
    optimizer.tell(optimizer.ask(), 0.73, reach=11.2)
    optimizer.tell(optimizer.ask(), CRASHED)
    optimizer.tell(optimizer.ask(), CRASHED, reach=11.4)
    optimizer.tell(optimizer.ask(), 0.70, reach=VIOLATED)
    batch = optimizer.ask(4)
    assert len(batch) == 4
    assert all(one != other for one, other in itertools.combinations(batch, 2))
    assert all(MIXED.validate(one) == one for one in batch)
    best = optimizer.best()
    assert MIXED.validate(best.params) == best.params
    assert math.isfinite(best.mean)
    assert best.std > 0
    assert 0 < best.success_probability < 1
    assert set(optimizer.thresholds) == {"objective", "reach"}
    assert [trial.objective for trial in optimizer.trials] == [0.73, None, None, 0.70]
    assert [dict(trial.constraints) for trial in optimizer.trials] == [
        {"reach": 11.2},
        {},
        {"reach": 11.4},
        {"reach": None},
    ]
    assert [trial.failed for trial in optimizer.trials] == [False, True, True, True]


def test_learned_thresholds_separate_what_was_seen_from_what_was_not():
    optimizer = Optimizer(LINE, options=Options(initial=12))
    for params in optimizer.ask(12):
        optimizer.tell(params, CRASHED if params["x"] > 0.7 else params["x"])
    highest = max(trial.objective for trial in optimizer.trials if not trial.crashed)
    assert highest - 0.05 < optimizer.thresholds["objective"] < 0.9


def test_a_suggestion_gives_the_thresholds_in_the_users_units():
    low, high = Optimizer(LINE, options=QUICK), Optimizer(LINE, direction="maximize", options=QUICK)
    run(low, 4)
    run(high, 4, sign=-1.0)
    reasons = low.ask().why, high.ask().why
    assert reasons[0].thresholds["objective"] == -reasons[1].thresholds["objective"]
    assert reasons[0].thresholds["objective"] == low.surrogates().thresholds["objective"]


@pytest.mark.parametrize("label", [VIOLATED, 0.9])
def test_a_known_limit_is_reported_as_it_is(label):
    optimizer = Optimizer(LINE, constraints=[Constraint("g", 0.5)], options=QUICK)
    for x in (0.1, 0.4, 0.6, 0.9):
        optimizer.tell({"x": x}, cost({"x": x}), g=x if x <= 0.5 else label)
    assert optimizer.thresholds == {"g": pytest.approx(0.5)}


def test_the_best_guess_finds_the_minimum():
    optimizer = Optimizer(LINE, seed=3)
    run(optimizer, 10)
    best = optimizer.best()
    assert best.params["x"] == pytest.approx(0.3, abs=0.02)
    assert best.mean == pytest.approx(0.0, abs=0.005)
    assert best.feasible
    assert best.success_probability >= 0.95
    assert f"x = {best.params['x']:.5g}" in str(best)


def test_after_many_crashes_all_points_are_of_the_design_until_one_succeeds():
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=3)
    modes = []
    for _ in range(18):
        suggestion = optimizer.ask()
        modes.append(suggestion.why.mode)
        optimizer.tell(suggestion, CRASHED)
    assert modes == ["initial"] * 4 + ["success"] * 8 + ["initial"] * 6
    optimizer.tell(optimizer.ask(), 1.0)
    assert optimizer.ask().why.mode != "initial"


def test_points_planned_together_keep_their_distance():
    optimizer = Optimizer(LINE, options=QUICK)
    run(optimizer, 5)
    points = [one["x"] for one in optimizer.ask(4)]
    assert min(abs(a - b) for a, b in itertools.combinations(points, 2)) > 1e-3


def test_reasons_say_why():
    given_first = Optimizer(LINE, initial_points=[{"x": 0.25}], options=QUICK)
    first = given_first.ask()
    assert (first.number, first.why.mode, str(first.why)) == (0, "given", "a point you gave")
    second = given_first.ask()
    assert (second.number, second.why.mode, second.why.value) == (1, "initial", None)
    assert str(second.why) == "an initial point"
    optimizer = Optimizer(LINE, options=QUICK)
    run(optimizer, 4)
    why = optimizer.ask().why
    assert why.mode == "mes"
    assert math.isfinite(why.value)
    assert 0 <= why.success_probability <= 1
    assert why.thresholds == optimizer.surrogates().thresholds
    assert why.seconds > 0
    assert str(why).startswith("mes; success probability")


@pytest.mark.parametrize(
    ("correlation", "words"),
    [(None, "not known yet"), (0.9, "look like high"), (0.5, "go with high"), (0.0, "unrelated"), (-0.9, "is low")],
)
def test_the_relation_of_crashes_is_put_in_words(correlation, words):
    assert words in describe_relation(correlation)


def test_random_crashes_keep_nobody_away():
    optimizer = Optimizer(SQUARE, options=QUICK)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform([0, -2], [1, 2], size=(40, 2)).tolist():
        optimizer.tell({"x": x, "y": y}, CRASHED if rng.random() < 0.25 else cost({"x": x}) + 0.1 * y**2)
    crashes = sum(trial.crashed for trial in optimizer.trials)
    assert optimizer.crash_relation.startswith("Crashes look random: they strike about")
    best, suggestion = optimizer.best(), optimizer.ask()
    assert best.feasible
    assert best.params["x"] == pytest.approx(0.3, abs=0.02)
    assert best.success_probability == suggestion.why.success_probability == pytest.approx(1 - crashes / 40, abs=0.05)
    assert optimizer.search().caution == Caution(settled=0.9)
    assert "objective" not in optimizer.thresholds


def test_while_all_crash_it_looks_for_success():
    optimizer = Optimizer(LINE, options=QUICK)
    for _ in range(4):
        optimizer.tell(optimizer.ask(), CRASHED)
    suggestion = optimizer.ask()
    assert suggestion.why.mode == "success"
    assert "most likely to succeed" in str(suggestion.why)
    assert min(abs(suggestion["x"] - trial.params["x"]) for trial in optimizer.trials) > 0.05
    best = optimizer.best()
    assert not best.feasible
    assert math.isnan(best.mean)
    assert math.isnan(best.std)
    assert "No point is safe enough" in str(best)


def test_initial_points_come_first_and_in_order():
    points = [{"x": 0.9}, {"x": 0.1}, {"x": 0.5}, {"x": 0.2}]
    optimizer = Optimizer(LINE, initial_points=points, options=QUICK)
    assert [dict(one) for one in optimizer.ask(4)] == points


@pytest.mark.parametrize("random_start", [False, True])
def test_initial_trials_do_not_depend_on_outcomes(random_start):
    options = Options(initial=6, random_start=random_start)
    told, asked = Optimizer(SQUARE, seed=5, options=options), Optimizer(SQUARE, seed=5, options=options)
    assert run(told, 6) == [dict(one) for one in asked.ask(6)]


# --- names, samplers, spaces -----------------------------------------------------------------


@pytest.mark.parametrize("acquisition", ["auto", "mes", "mesco", "logei"])
@pytest.mark.parametrize("with_constraint", [False, True])
def test_every_acquisition_works(acquisition, with_constraint):
    constraints = [Constraint("g")] if with_constraint else []
    optimizer = Optimizer(SQUARE, constraints=constraints, acquisition=acquisition, options=QUICK)
    for _ in range(5):
        params = optimizer.ask()
        values = {"g": params["y"] if params["y"] < 1.5 else VIOLATED} if with_constraint else {}
        optimizer.tell(params, CRASHED if params["x"] > 0.8 else cost(params), **values)
    suggestion = optimizer.ask()
    names = {"auto": "mesco" if with_constraint else "mes"}
    assert suggestion.why.mode == names.get(acquisition, acquisition)
    assert optimizer.space.validate(suggestion) == suggestion


@pytest.mark.parametrize("fixed", [{}, FIXED], ids=["learned", "fixed"])
def test_the_virtual_sampler_works(fixed):
    options = Options(initial=3, raw=64, samples=2, sampler="virtual", fixed=fixed)
    optimizer = Optimizer(SQUARE, constraints=[Constraint("g")], options=options)
    for _ in range(4):
        params = optimizer.ask()
        optimizer.tell(params, cost(params), g=params["y"] if params["y"] < 1 else VIOLATED)
    assert optimizer.space.validate(optimizer.ask())


def test_integers_and_choices_are_valid_and_in_bounds():
    optimizer = Optimizer(MIXED, options=QUICK)
    for _ in range(8):
        params = optimizer.ask()
        assert MIXED.validate(params) == params
        assert type(params["order"]) is int
        crashed = params["filter"] == "none" and params["order"] > 4
        optimizer.tell(params, CRASHED if crashed else abs(params["kp"] - 4) + params["kd"])
    assert MIXED.validate(optimizer.best().params)


@pytest.mark.parametrize("crash", [False, True])
def test_a_finite_space_may_be_exhausted(crash):
    space = {"order": crashbo.Int(1, 3), "filter": crashbo.Categorical(["none", "butter"])}
    optimizer = Optimizer(space, options=QUICK)
    for _ in range(9):
        params = optimizer.ask()
        assert optimizer.space.validate(params) == params
        optimizer.tell(params, CRASHED if crash or params["order"] == 2 else params["order"])
    best = optimizer.best()
    if not crash:
        assert best.params["order"] == 1


def test_a_space_of_constants_has_one_answer():
    optimizer = Optimizer({"filter": crashbo.Categorical(["none"])})
    for _ in range(3):
        optimizer.tell(optimizer.ask(), 1.0)
    assert optimizer.ask() == {"filter": "none"}
    assert optimizer.best().params == {"filter": "none"}


# --- repeatability ---------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_suggestions():
    points = [run(Optimizer(SQUARE, seed=seed, options=QUICK), 6) for seed in (4, 4, 5)]
    assert points[0] == points[1]
    assert points[0] != points[2]


def test_maximising_mirrors_minimising():
    minimiser = Optimizer(SQUARE, seed=2, options=QUICK)
    maximiser = Optimizer(SQUARE, seed=2, direction="maximize", options=QUICK)
    assert run(minimiser, 7) == run(maximiser, 7, sign=-1.0)
    low, high = minimiser.best(), maximiser.best()
    assert low.params == high.params
    assert low.mean == -high.mean
    assert low.std == high.std
    assert low.success_probability == high.success_probability
    assert minimiser.thresholds["objective"] == -maximiser.thresholds["objective"]


def test_maximising_leaves_constraints_alone():
    minimiser, maximiser = (
        constrained(),
        Optimizer(SQUARE, constraints=[Constraint("g")], direction="maximize", options=QUICK),
    )
    for trial in minimiser.trials:
        values = {"g": VIOLATED if trial.constraints["g"] is None else trial.constraints["g"]}
        maximiser.tell(trial.params, CRASHED if trial.crashed else -trial.objective, **values)
    assert dict(maximiser.ask()) == dict(minimiser.pending[0])
    assert maximiser.thresholds["g"] == minimiser.thresholds["g"]


def test_a_restored_optimizer_is_the_same_bit_for_bit(tmp_path):
    options = Options(initial=3, raw=64, samples=4, delta=0.1, fixed=FIXED)
    optimizer = Optimizer(
        SQUARE,
        constraints=[Constraint("g", 1.3), "h"],
        seed=7,
        acquisition="mesco",
        initial_points=[{"x": 0.1, "y": 1 / 3}],
        options=options,
    )
    for _ in range(4):
        params = optimizer.ask()
        optimizer.tell(params, cost(params), g=params["y"], h=VIOLATED if params["y"] > 1 else 0.1)
    optimizer.tell({"x": 0.95, "y": 0.1}, CRASHED, reason="fell", g=1e-300)
    out = optimizer.ask()
    optimizer.save(tmp_path / "state.json")
    restored = Optimizer.load(tmp_path / "state.json")
    assert json.dumps(restored.to_json()) == json.dumps(optimizer.to_json())
    assert restored.options == optimizer.options
    assert restored.trials == optimizer.trials
    assert restored.pending == optimizer.pending
    assert restored.pending[0].why == out.why
    assert restored.best() == optimizer.best()
    assert restored.thresholds == optimizer.thresholds
    assert restored.ask() == optimizer.ask()
    restored.tell(out, 1.0, g=0.0, h=0.0)
    assert len(restored.pending) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["state.json"]


def test_a_state_must_be_one(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("not json")
    with pytest.raises(InputError, match=r"`path` must be a file written by `save`; .* is not JSON"):
        Optimizer.load(path)
    with pytest.raises(InputError, match="`state` must be a saved optimizer of format 1; got format 99"):
        Optimizer.from_json({"format": 99})


@pytest.mark.parametrize("text", ["[]", '{"format": 1}', "3"])
def test_json_that_is_no_state_is_refused(tmp_path, text):
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(InputError, match="must"):
        Optimizer.load(path)


# --- tell ------------------------------------------------------------------------------------


def test_trials_may_be_told_in_any_order():
    forward, backward = Optimizer(LINE, options=QUICK), Optimizer(LINE, options=QUICK)
    for params in forward.ask(3):
        forward.tell(params, cost(params))
    for params in reversed(backward.ask(3)):
        backward.tell(params, cost(params))
    assert forward.pending == backward.pending == ()
    assert [trial.params for trial in forward.trials] == [trial.params for trial in reversed(backward.trials)]
    assert forward.best().params["x"] == pytest.approx(backward.best().params["x"], abs=0.02)


def test_points_never_asked_for_may_be_told():
    optimizer = Optimizer(LINE, options=QUICK)
    trial = optimizer.tell({"x": np.float64(0.25)}, np.float32(0.5), reason="by hand")
    assert (trial.number, trial.params, trial.objective, trial.reason) == (0, {"x": 0.25}, 0.5, "by hand")
    assert type(trial.params["x"]) is float
    assert optimizer.pending == ()
    assert optimizer.ask()["x"] != 0.25


def test_telling_ends_what_is_pending():
    optimizer = Optimizer(LINE, options=QUICK)
    first, second, third = optimizer.ask(3)
    optimizer.tell(second, 1.0)
    assert optimizer.pending == (first, third)
    optimizer.tell(dict(first), 1.0)
    assert optimizer.pending == (third,)
    optimizer.forget(third)
    assert optimizer.pending == ()
    with pytest.raises(InputError, match="`params` must be a suggestion that is still out; got"):
        optimizer.forget(third)


def test_a_suggestion_is_told_once():
    optimizer = Optimizer(LINE, options=QUICK)
    params = optimizer.ask()
    optimizer.tell(params, 1.0)
    before = optimizer.to_json()
    with pytest.raises(InputError, match="`params` must be a suggestion that is still out; got number 0, told already"):
        optimizer.tell(params, 2.0)
    assert optimizer.to_json() == before


TELLS = {
    "missing parameter": (({"x": 0.5}, 1.0), {"g": 1.0}, r"`params` must have exactly the names .* Add \['y'\]"),
    "unknown parameter": (
        ({"x": 0.5, "y": 0.0, "z": 1.0}, 1.0),
        {"g": 1.0},
        r"`params` must have exactly the names .* Remove \['z'\]",
    ),
    "below": (({"x": -0.1, "y": 0.0}, 1.0), {"g": 1.0}, "`x` must"),
    "above": (({"x": 0.5, "y": 2.1}, 1.0), {"g": 1.0}, "`y` must"),
    "NaN parameter": (({"x": math.nan, "y": 0.0}, 1.0), {"g": 1.0}, "`x` must"),
    "text parameter": (({"x": "0.5", "y": 0.0}, 1.0), {"g": 1.0}, "`x` must"),
    "no mapping": ((0.5, 1.0), {"g": 1.0}, "`params` must map parameter names to values"),
    "NaN cost": (
        ({"x": 0.5, "y": 0.0}, math.nan),
        {"g": 1.0},
        "`objective` must be a finite number or crashbo.CRASHED",
    ),
    "infinite cost": (({"x": 0.5, "y": 0.0}, -math.inf), {"g": 1.0}, "`objective` must be a finite number"),
    "boolean cost": (({"x": 0.5, "y": 0.0}, True), {"g": 1.0}, "`objective` must be a finite number"),
    "no cost": (({"x": 0.5, "y": 0.0}, None), {"g": 1.0}, "`objective` must be a finite number"),
    "unknown constraint": (({"x": 0.5, "y": 0.0}, 1.0), {"g": 1.0, "k": 1.0}, "`k` must be a declared constraint"),
    "missing constraint": (({"x": 0.5, "y": 0.0}, 1.0), {}, "`g` must be told with the objective"),
    "NaN constraint": (({"x": 0.5, "y": 0.0}, 1.0), {"g": math.nan}, "`g` must be a finite number or crashbo.VIOLATED"),
    "crashed constraint": (({"x": 0.5, "y": 0.0}, 1.0), {"g": CRASHED}, "`g` must be a finite number"),
}


@pytest.mark.parametrize("name", TELLS)
def test_bad_tells_are_refused_and_change_nothing(name):
    positional, named, message = TELLS[name]
    optimizer = Optimizer(SQUARE, constraints=["g"], options=QUICK)
    optimizer.tell({"x": 0.5, "y": 0.0}, 1.0, g=0.5)
    optimizer.ask()
    before = json.dumps(optimizer.to_json())
    with pytest.raises(InputError, match=message):
        optimizer.tell(*positional, **named)
    assert json.dumps(optimizer.to_json()) == before


@pytest.mark.parametrize("n", [0, -1, True, 1.0, "2"])
def test_a_bad_number_of_suggestions_is_refused(n):
    optimizer = Optimizer(LINE)
    before = optimizer.to_json()
    with pytest.raises(InputError, match="`n` must be an integer >= 1; got"):
        optimizer.ask(n)
    assert optimizer.to_json() == before


def test_there_is_no_best_guess_before_the_first_trial():
    optimizer = Optimizer(LINE)
    assert optimizer.thresholds == {}
    with pytest.raises(InputError, match="`trials` must hold at least one trial before there is a model; got none"):
        optimizer.best()


# --- bad settings ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"direction": "down"}, "`direction` must be 'minimize' or 'maximize'; got 'down'"),
        ({"direction": None}, "`direction` must be 'minimize' or 'maximize'; got None"),
        ({"acquisition": "ei"}, "`acquisition` must be one of 'auto', 'cmes', 'mes', 'mesco', 'logei'; got 'ei'"),
        ({"seed": -1}, "`seed` must be an integer >= 0; got -1"),
        ({"seed": 1.5}, "`seed` must be an integer >= 0; got 1.5"),
        ({"seed": None}, "`seed` must be an integer >= 0; got None"),
        ({"seed": True}, "`seed` must be an integer >= 0; got True"),
        ({"constraints": ["g", Constraint("g")]}, "`constraints` must have different names"),
        ({"constraints": [3]}, "`constraints` must hold crashbo.Constraint objects or names; got 3"),
        ({"constraints": "reach"}, "`constraints` must"),
        ({"initial_points": [{"x": 2.0}]}, "`x` must"),
        ({"initial_points": [{"z": 2.0}]}, "`params` must have exactly the names"),
        ({"initial_points": {"x": 0.5}}, "`params` must map parameter names to values"),
        ({"options": Options(fixed={"g": FIXED["g"]})}, r"`options.fixed` must name outputs; got \['g'\]"),
        ({"options": {"initial": 3}}, "`options` must"),
    ],
)
def test_bad_settings_are_refused(named, message):
    with pytest.raises(InputError, match=message):
        Optimizer(LINE, **named)


def test_a_bad_space_is_refused():
    with pytest.raises(InputError, match="`parameters` must be a dict of at least one parameter"):
        Optimizer({})


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"initial": 0}, "`initial` must be an integer >= 1 or None; got 0"),
        ({"initial": 2.5}, "`initial` must be an integer >= 1 or None; got 2.5"),
        ({"initial": True}, "`initial` must be an integer >= 1 or None; got True"),
        ({"delta": 0.0}, "`delta` must lie between 0 and 1; got 0.0"),
        ({"delta": 1.0}, "`delta` must lie between 0 and 1; got 1.0"),
        ({"delta": math.nan}, "`delta` must lie between 0 and 1; got nan"),
        ({"delta": "small"}, "`delta` must lie between 0 and 1; got 'small'"),
        ({"samples": 0}, "`samples` must be an integer >= 1; got 0"),
        ({"samples": True}, "`samples` must be an integer >= 1; got True"),
        ({"sampler": "exact"}, r"`sampler` must be one of \['pathwise', 'virtual'\]; got 'exact'"),
        ({"raw": 0}, "`raw` must"),
        ({"raw": -5}, "`raw` must"),
    ],
)
def test_bad_options_are_refused(named, message):
    with pytest.raises(InputError, match=message):
        Options(**named)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ({"lengthscale": 0.0}, "`lengthscale` must be a finite number > 0; got 0.0"),
        ({"variance": -1.0}, "`variance` must be a finite number > 0; got -1.0"),
        ({"noise_std": math.inf}, "`noise_std` must be a finite number > 0; got inf"),
    ],
)
def test_bad_fixed_hyperparameters_are_refused(named, message):
    with pytest.raises(InputError, match=message):
        crashbo.FixedModel(**({"lengthscale": 0.2, "variance": 1.0} | named))


# --- odd histories ---------------------------------------------------------------------------


def follow(optimizer: Optimizer, outcomes: list) -> None:
    """Ask and tell; nothing may fail, leave the space, or be tried again after it crashed."""
    crashed = []
    for outcome in outcomes:
        params = optimizer.ask()
        assert optimizer.space.validate(params) == params
        assert dict(params) not in crashed
        if outcome is CRASHED:
            crashed.append(dict(params))
        optimizer.tell(params, outcome)
    assert optimizer.space.validate(optimizer.best().params)
    assert all(math.isfinite(value) for value in optimizer.thresholds.values())


COSTS = st.one_of(
    st.just(CRASHED),
    st.just(0.0),
    st.floats(-10, 10),
    st.sampled_from([1e100, -1e100, 1e-100, 1e-300, 1e12, -1e12, 1.0, 1.0 + 1e-12]),
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(COSTS, min_size=1, max_size=6), st.integers(0, 1000))
def test_any_sequence_of_outcomes_is_survived(outcomes, seed):
    follow(Optimizer(SQUARE, seed=seed, options=Options(initial=2, raw=32, samples=2)), outcomes)


@pytest.mark.parametrize(
    "outcomes",
    [
        [CRASHED] * 8,
        [CRASHED] * 4 + [1.0] + [CRASHED] * 3,
        [5.0] * 7,
        [0.0] * 6,
        [0.0, CRASHED] * 4,
        [1e100, -1e100, CRASHED, 1e-100, 0.0, 1e100],
        [1e-300, 2e-300, CRASHED, 1e-300, 3e-300],
        [1.0, 1.0 + 1e-12, CRASHED, 1.0 - 1e-12, 1.0],
        [1e-3, 1e12, 1e-3, CRASHED, 1e12],
    ],
    ids=["crashes", "one success", "constant", "zeros", "zeros and crashes", "huge", "tiny", "nearly equal", "wide"],
)
def test_odd_histories_are_survived(outcomes):
    follow(Optimizer(SQUARE, options=Options(initial=2, raw=64, samples=3)), outcomes)


@pytest.mark.parametrize("constraint", [Constraint("g"), Constraint("g", 0.5)])
@pytest.mark.parametrize("told", [[VIOLATED] * 5, [0.1] * 5, [0.1, VIOLATED, 0.1, VIOLATED, VIOLATED], [3.0, 0.1] * 2])
def test_odd_constraints_are_survived(constraint, told):
    optimizer = Optimizer(LINE, constraints=[constraint], options=Options(initial=2, raw=64, samples=3))
    for number, value in enumerate(told):
        params = optimizer.ask()
        optimizer.tell(params, CRASHED if number == 2 else 1.0, g=value)
    assert optimizer.space.validate(optimizer.ask())
    assert optimizer.space.validate(optimizer.best().params)


def test_contradicting_repeats_are_survived():
    optimizer = Optimizer(LINE, options=Options(initial=2, raw=64, samples=3))
    for outcome in [1.0, CRASHED, 2.0, CRASHED, -3.0, CRASHED, 1e6]:
        optimizer.tell({"x": 0.4}, outcome)
    optimizer.tell({"x": 0.4 + 1e-12}, CRASHED)
    suggestion = optimizer.ask()
    assert abs(suggestion["x"] - 0.4) > 1e-6
    assert math.isfinite(optimizer.best().mean)


def test_points_that_crashed_are_not_tried_again_in_a_finite_space():
    optimizer = Optimizer({"order": crashbo.Int(1, 12)}, options=Options(initial=1, raw=64, samples=3))
    tried = []
    for _ in range(8):
        params = optimizer.ask()
        tried.append(params["order"])
        optimizer.tell(params, CRASHED)
    assert len(set(tried)) == len(tried)


@pytest.mark.parametrize("choices", [1, 2])
def test_initial_trials_of_a_finite_space_do_not_repeat_a_crash(choices):
    space = {"order": crashbo.Int(1, 5), "filter": crashbo.Categorical(["none", "butter"][:choices])}
    for seed in range(10):
        optimizer = Optimizer(space, seed=seed, options=Options(initial=4))
        tried = []
        for _ in range(4):
            params = optimizer.ask()
            assert dict(params) not in tried
            tried.append(dict(params))
            optimizer.tell(params, CRASHED)


def test_a_second_ask_in_between_does_not_count_points_twice(monkeypatch):
    optimizer = Optimizer({"x": (0.0, 1.0)}, seed=0)
    for x in (0.1, 0.5, 0.9):
        optimizer.tell({"x": x}, x)
    encode, others = crashbo.Space.encode, []

    def interrupted(space, params):
        if not others:  # as another thread would
            others.append(None)
            others[0] = optimizer._tried()
        return encode(space, params)

    monkeypatch.setattr(crashbo.Space, "encode", interrupted)
    for found in (optimizer._tried(), others[0], optimizer._tried()):
        assert found.squeeze(-1).tolist() == pytest.approx([0.1, 0.5, 0.9])
