"""Ask, tell and best: the documented calls, repeatability, restored state, bad input, odd histories."""

import itertools
import json
import math
import threading
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import crashbo
from crashbo import CRASHED, VIOLATED, Constraint, InputError, Optimizer, Options
from crashbo.model.surrogate import Limit, Place, Relation
from crashbo.model.words import describe_limit, describe_places, describe_relation
from crashbo.problem.arrays import Array
from crashbo.problem.history import History
from crashbo.problem.suggestion import Suggestion
from crashbo.search.default import DefaultStrategy
from crashbo.search.design import quasi_random

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
        MIXED, constraints=[Constraint("reach")], direction="minimize", strategy="default", seed=0, options=QUICK
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
    assert optimizer.thresholds == {name: limit.value for name, limit in optimizer.limits.items()}
    assert set(optimizer.thresholds) <= {"objective", "reach"}
    assert optimizer.limits["reach"].deviation > 0
    assert [trial.objective for trial in optimizer.trials] == [0.73, None, None, 0.70]
    assert [dict(trial.constraints) for trial in optimizer.trials] == [
        {"reach": 11.2},
        {},
        {"reach": 11.4},
        {"reach": None},
    ]
    assert [trial.failed for trial in optimizer.trials] == [False, True, True, True]


def test_learned_thresholds_separate_what_was_seen_from_what_was_not():
    optimizer = Optimizer(LINE, options=Options(initial=12, crashes="absorb"))
    for params in optimizer.ask(12):
        optimizer.tell(params, CRASHED if params["x"] > 0.7 else params["x"])
    highest = max(trial.objective for trial in optimizer.trials if not trial.crashed)
    limit = optimizer.limits["objective"]
    assert highest - 0.05 < limit.value < 0.9
    assert 0 < limit.deviation < 0.3


def test_a_suggestion_gives_the_thresholds_in_the_users_units():
    options = replace(QUICK, crashes="absorb")
    low, high = Optimizer(LINE, options=options), Optimizer(LINE, direction="maximize", options=options)
    run(low, 4)
    run(high, 4, sign=-1.0)
    limit = low.limits["objective"]
    reasons = low.ask().why, high.ask().why
    assert reasons[0].thresholds["objective"] == -reasons[1].thresholds["objective"] == limit.value
    assert reasons[0].deviations["objective"] == reasons[1].deviations["objective"] == limit.deviation


@pytest.mark.parametrize("label", [VIOLATED, 0.9])
def test_a_known_limit_is_reported_as_it_is(label):
    optimizer = Optimizer(LINE, constraints=[Constraint("g", 0.5)], options=QUICK)
    for x in (0.1, 0.4, 0.6, 0.9):
        optimizer.tell({"x": x}, cost({"x": x}), g=x if x <= 0.5 else label)
    assert optimizer.limits == {"g": Limit(0.5)}


def test_the_best_guess_finds_the_minimum():
    optimizer = Optimizer(LINE, seed=3)
    run(optimizer, 10)
    best = optimizer.best()
    assert best.params["x"] == pytest.approx(0.3, abs=0.02)
    assert best.mean == pytest.approx(0.0, abs=0.005)
    assert best.feasible
    assert best.success_probability >= 0.95
    assert f"x = {best.params['x']:.5g}" in str(best)


def test_while_all_crash_all_points_are_of_the_design():
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)}, seed=3)
    points = []
    for _ in range(18):
        suggestion = optimizer.ask()
        points.append(tuple(suggestion.values()))
        assert suggestion.why.mode == "initial"
        optimizer.tell(suggestion, CRASHED)
    assert len(set(points)) == 18
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
    assert why.mode == "gain"
    assert math.isfinite(why.value)
    assert 0 <= why.success_probability <= 1
    assert why.thresholds == optimizer.thresholds
    assert why.relation == asdict(optimizer.relation)
    assert why.seconds > 0
    assert str(why).startswith(("most likely place of an improvement: ", "uncertain enough to be an improvement: "))
    assert f"best so far {optimizer.best_trial.objective:.4g}; {why.success_probability:.0%}"[:-1] in str(why)
    assert str(why).endswith(" % likely to succeed")


@pytest.mark.parametrize(
    ("relation", "direction", "words"),
    [
        (None, "minimize", "not known yet"),
        (
            Relation(0.11, 0.85, 0.04),
            "minimize",
            "of unclear cause, perhaps unrelated to the objective (85%) or high values of the objective (11%).",
        ),
        (Relation(0.0, 0.993, 0.007), "minimize", "unrelated to the objective: 99%; where the objective is low: 1%."),
        (Relation(1.0, 0.0, 0.0), "maximize", "Crashes are low values of the objective: 100%."),
        (Relation(1.0, 0.0, 0.0, rarer=3), "minimize", "Crashes are high values of the objective: 100%."),
        (Relation(1.0, 0.0, 0.0, rarer=2), "minimize", "Crashes are of unclear cause, perhaps high values of the obj"),
        (Relation(0.0, 0.0, 0.0, 1.0, 0.25), "minimize", "Crashes are random, striking about 25% of trials: 100%"),
    ],
)
def test_the_relation_of_crashes_is_put_in_words(relation, direction, words):
    assert words in describe_relation(relation, direction)


def test_a_named_reason_with_a_place_is_put_in_words():
    class Models:
        def places(self):
            return [Place("fell", 5, Relation(0.1, 0.9, 0.0), np.array([0.25, 0.5]), 0.93)]

    (words,) = describe_places(Models(), crashbo.Space(SQUARE))
    assert words == (
        "'fell' (5 crashes) has a place of its own, most likely around x = 0.25, y = 0 (probability 93% there). Such "
        "crashes are of unclear cause, perhaps unrelated to the objective (90%) or high values of the objective (10%)."
    )
    assert describe_places(object(), crashbo.Space(SQUARE)) == []


def test_a_limit_is_put_in_words():
    assert describe_limit(Limit(12.3456, 0.789)) == "12.35 ± 0.79"
    assert describe_limit(Limit(80.0)) == "80"
    assert describe_limit(Limit(8.937, 0.16, (7.94, 12.2))) == "8.937 ± 0.16 (95 %: 7.94 to 12.2)"


def test_the_likely_range_of_a_limit():
    assert Limit(2.0, 0.5).interval == (1.0, 3.0)
    assert Limit(2.0, 0.5, (1.8, 4.0)).interval == (1.8, 4.0)
    assert Limit(2.0, 0.5, (1.8, 4.0)).times(-1.0) == Limit(-2.0, 0.5, (-4.0, -1.8))
    assert Limit(2.0, 0.5).times(-1.0) == Limit(-2.0, 0.5)


def test_random_crashes_keep_nobody_away():
    optimizer = Optimizer(SQUARE, options=QUICK)
    rng = np.random.default_rng(0)
    for x, y in rng.uniform([0, -2], [1, 2], size=(40, 2)).tolist():
        optimizer.tell({"x": x, "y": y}, CRASHED if rng.random() < 0.25 else cost({"x": x}) + 0.1 * y**2)
    assert optimizer.relation.random > 0.1
    best = optimizer.best()
    assert best.feasible
    assert best.params["x"] == pytest.approx(0.3, abs=0.05)
    assert best.success_probability < 0.95
    assert "objective" not in optimizer.thresholds


def test_while_all_crash_the_best_guess_is_the_most_likely_to_succeed():
    optimizer = Optimizer(LINE, options=QUICK)
    for _ in range(4):
        optimizer.tell(optimizer.ask(), CRASHED)
    suggestion = optimizer.ask()
    assert min(abs(suggestion["x"] - trial.params["x"]) for trial in optimizer.trials) > 0.05
    best = optimizer.best()
    assert not best.feasible
    assert math.isnan(best.mean)
    assert math.isnan(best.std)
    assert "No point is safe enough" in str(best)
    assert "no cost seen yet" in str(best)


def test_initial_points_come_first_and_in_order():
    points = [{"x": 0.9}, {"x": 0.1}, {"x": 0.5}, {"x": 0.2}]
    optimizer = Optimizer(LINE, initial_points=points, options=QUICK)
    assert [dict(one) for one in optimizer.ask(4)] == points


@pytest.mark.parametrize("random_start", [False, True])
def test_initial_trials_do_not_depend_on_outcomes(random_start):
    options = Options(initial=6, random_start=random_start)
    told, asked = Optimizer(SQUARE, seed=5, options=options), Optimizer(SQUARE, seed=5, options=options)
    assert run(told, 6) == [dict(one) for one in asked.ask(6)]


# --- spaces ----------------------------------------------------------------------------------


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
    mirrored = {name: one.times(-1.0) for name, one in maximiser.limits.items()}
    assert minimiser.limits == mirrored


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
    with pytest.raises(InputError, match="`state` must be a saved optimizer of format 2; got format 99"):
        Optimizer.from_json({"format": 99})


@pytest.mark.parametrize("text", ["[]", '{"format": 1}', "3"])
def test_json_that_is_no_state_is_refused(tmp_path, text):
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(InputError, match="must"):
        Optimizer.load(path)


def test_a_state_of_version_0_1_goes_on():
    old = Optimizer.load(Path(__file__).parent / "data" / "state-0.1.json")
    assert (len(old.trials), old.problem.strategy, old.options.risk) == (6, "default", 0.1)
    assert old.pending[0].why.mode == "mesco"
    assert old.space.validate(old.ask())
    assert Optimizer.from_json(old.to_json()).trials == old.trials


def test_a_state_of_version_0_2_goes_on() -> None:
    """Written by version 0.2: constraints of every kind, a point given, one that ended in an error, one under way."""
    old = Optimizer.load(Path(__file__).parent / "data" / "state-0.2.json")
    assert (len(old.trials), len(old.pending), len(old.errors)) == (7, 2, 1)
    assert (old.direction, old.seed, old.options.risk, old.options.n_trials) == ("maximize", 4, 0.1, 12)
    assert old.constraints == (Constraint("g"), Constraint("h", 2.0))
    assert old.space.constraints == ("x + 0.1 * n <= 1.2",)
    assert old.initial_points == (old.trials[0].params,)
    assert {trial.status for trial in old.trials} == {"finished", "crashed"}
    numbers = [trial.number for trial in old.trials] + [one.number for one in old.pending]
    assert len(set(numbers)) == 9
    told = old.tell(old.pending[1], 0.5, g=0.1, h=1.0)
    assert told.number == max(numbers)
    assert old.ask().number == max(numbers) + 1
    again = Optimizer.from_json(old.to_json())
    assert (again.problem, again.trials, again.pending) == (old.problem, old.trials, old.pending)


def test_a_trial_has_the_number_of_its_suggestion() -> None:
    """Told in another order than asked, corrected by the number that the suggestion had."""
    optimizer = Optimizer(SQUARE, seed=1)
    suggestions = optimizer.ask(4)
    assert [one.number for one in suggestions] == [0, 1, 2, 3]
    for number in (2, 0, 3, 1):
        optimizer.tell(suggestions[number], float(number))
    assert [trial.number for trial in optimizer.trials] == [2, 0, 3, 1]
    corrected = optimizer.correct(3, 7.0)
    assert corrected.params == dict(suggestions[3])
    assert [trial.objective for trial in optimizer.trials] == [2.0, 0.0, 7.0, 1.0]


def test_no_number_is_given_twice() -> None:
    optimizer = Optimizer(SQUARE, seed=1)
    first = optimizer.ask()
    own = optimizer.tell({"x": 0.1, "y": 0.2}, 1.0)
    assert (first.number, own.number) == (0, 1)
    optimizer.remove(1)
    optimizer.forget(first)
    assert optimizer.ask().number == 2
    restored = Optimizer.from_json(optimizer.to_json())
    assert restored.ask().number == optimizer.ask().number == 3


def test_what_is_told_while_a_suggestion_is_made_is_recorded_at_once() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def waiting(history: History) -> Array | None:
        begun.set()
        assert go_on.wait(30)
        return quasi_random(history)

    optimizer = Optimizer(SQUARE, seed=1, strategy=DefaultStrategy(design=waiting))
    found: list[Suggestion] = []
    asking = threading.Thread(target=lambda: found.append(optimizer.ask()))
    asking.start()
    assert begun.wait(30)
    told = optimizer.tell({"x": 0.1, "y": 0.2}, 1.0)  # returns although the suggestion is not made yet
    optimizer.correct(told.number, 2.0)
    assert not found
    go_on.set()
    asking.join(30)
    assert [trial.objective for trial in optimizer.trials] == [2.0]
    assert [one.number for one in optimizer.pending] == [found[0].number] == [1]
