"""What may be told to an optimizer, and what is refused."""

import json
import math

import numpy as np
import pytest

import crashbo
from crashbo import CRASHED, Constraint, InputError, Optimizer, Options
from tests.test_optimizer import FIXED, LINE, QUICK, SQUARE, cost

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
    "boolean cost": (({"x": 0.5, "y": 0.0}, True), {"g": 1.0}, "`objective` must be a number"),
    "unknown constraint": (({"x": 0.5, "y": 0.0}, 1.0), {"g": 1.0, "k": 1.0}, "`k` must be a declared constraint"),
    "missing constraint": (({"x": 0.5, "y": 0.0}, 1.0), {}, "`g` must be told with the objective"),
    "crashed constraint": (({"x": 0.5, "y": 0.0}, 1.0), {"g": CRASHED}, "`g` must be a number"),
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
        ({"strategy": "ei"}, "`strategy` must be 'default', 'paper' or an object with suggest, guess"),
        ({"strategy": 3}, "`strategy` must be 'default', 'paper' or an object with suggest, guess"),
        ({"strategy": "paper", "acquisition": "ei"}, "`acquisition` must be one of 'auto', 'mes', 'mesco'; got 'ei'"),
        ({"acquisition": "mes"}, "`acquisition` must be 'auto' unless `strategy` is 'paper'; got 'mes'"),
        ({"seed": -1}, "`seed` must be an integer >= 0, or None for a new one; got -1"),
        ({"seed": 1.5}, "`seed` must be an integer >= 0, or None for a new one; got 1.5"),
        ({"seed": True}, "`seed` must be an integer >= 0, or None for a new one; got True"),
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
