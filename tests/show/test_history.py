"""Limits, convergence, parallel coordinates and importance say what happened."""

import math

import numpy as np
import pytest

import crashbo
from crashbo import CRASHED, VIOLATED, Categorical, Constraint, InputError, Optimizer, Options
from crashbo.model.recipe import AverageRecipe
from crashbo.show import history, view
from crashbo.show.importance import importance
from tests.show.conftest import FIXED


def test_limits_are_those_of_the_optimizer_after_so_many_trials(two):
    paths = {path.output: path for path in history.thresholds(two, true={"reach": 1.0})}
    reach = paths["reach"]
    assert reach.trials.tolist() == [1, 2, 3, 4, 5]
    for count in (2, 4, 5):
        state = two.to_json()
        past = Optimizer.from_json({**state, "trials": state["trials"][:count], "pending": []})
        known = past.limits.get("reach")
        assert np.isnan(reach.limit[count - 1]) == (known is None)
        if known is not None:
            assert reach.limit[count - 1] == pytest.approx(known.value)
            assert reach.deviation[count - 1] == pytest.approx(known.deviation)
    assert reach.worst.tolist() == [0.3, 0.6, 0.6, 0.6, 0.8]
    assert reach.failures.tolist() == [3]
    assert reach.true == 1.0
    assert np.isfinite(reach.limit[2:]).all()


def test_few_fits_are_spread_evenly_and_the_last_trial_is_one(two):
    (path, *_) = history.thresholds(two, fits=3)
    assert path.trials.tolist() == [1, 3, 5]


def test_looking_back_changes_nothing(two, monkeypatch):
    before = two.limits
    history.thresholds(two)
    monkeypatch.setattr(AverageRecipe, "fit", None)  # what the optimizer has learned is still there
    assert two.limits == before


def test_a_known_limit_is_not_followed():
    options = Options(fixed={"objective": FIXED, "g": FIXED})
    optimizer = Optimizer({"x": (0.0, 1.0)}, constraints=[Constraint("g", threshold=1.0)], options=options)
    optimizer.tell({"x": 0.2}, 1.0, g=0.5)
    optimizer.tell({"x": 0.6}, 0.2, g=1.5)
    assert history.thresholds(optimizer) == ()
    assert history.convergence(optimizer).failed.tolist() == [False, True]
    assert history.convergence(optimizer).best.tolist() == [1.0, 1.0]


def test_convergence_counts_only_trials_that_did_not_fail(two):
    run = history.convergence(two)
    assert run.failed.tolist() == [False, False, True, True, False]
    assert run.best.tolist() == [1.2, 0.4, 0.4, 0.4, 0.1]
    assert math.isnan(run.values[3])
    assert run.texts[2] == "cost -0.3, reach violated"


def test_trials_stand_at_their_numbers_where_these_rise(two):
    assert history.convergence(view(two, numbers=[2, 3, 7, 8, 9])).places.tolist() == [2, 3, 7, 8, 9]
    assert history.convergence(view(two, numbers=[2, 3, 9, 8, 7])).places.tolist() == [0, 1, 2, 3, 4]


def test_convergence_of_a_maximisation_and_of_a_start_without_success():
    optimizer = Optimizer({"x": (0.0, 1.0)}, direction="maximize")
    optimizer.tell({"x": 0.1}, CRASHED)
    optimizer.tell({"x": 0.2}, 1.0)
    optimizer.tell({"x": 0.3}, 3.0)
    optimizer.tell({"x": 0.4}, 2.0)
    best = history.convergence(optimizer).best
    assert math.isnan(best[0])
    assert best[1:].tolist() == [1.0, 3.0, 3.0]


def test_a_band_is_median_and_quartiles_and_nothing_counts_as_worst():
    curves = [[1.0, 1.0], [2.0, 2.0], [3.0, 3.0], [math.nan, 4.0], [math.nan, 5.0]]
    band = history.band("ours", curves, [[True, False]] * 2 + [[False, False]] * 3)
    assert band.middle.tolist() == [3.0, 3.0]
    assert band.low.tolist() == [2.0, 2.0]
    assert band.high.tolist() == [math.inf, 4.0]
    assert band.failed_share.tolist() == [0.4, 0.0]
    assert band.runs == 5


def test_runs_of_different_length_are_compared_over_the_shortest():
    assert len(history.band("ours", [[1.0, 2.0, 3.0], [1.0, 2.0]]).middle) == 2
    with pytest.raises(InputError, match="`curves` must hold at least one run"):
        history.band("ours", [])


def test_bands_of_optimizers_keep_the_direction():
    runs = []
    for values in ((1.0, 3.0), (2.0, 1.0), (3.0, 5.0)):
        optimizer = Optimizer({"x": (0.0, 1.0)}, direction="maximize")
        for x, value in zip((0.2, 0.6), values, strict=True):
            optimizer.tell({"x": x}, value)
        runs.append(optimizer)
    band = history.band_of("ours", runs)
    assert band.middle.tolist() == [2.0, 3.0]
    with pytest.raises(InputError, match="all minimise or all maximise"):
        history.band_of("ours", [runs[0], Optimizer({"x": (0.0, 1.0)})])


def test_what_cannot_be_drawn_on_a_log_axis_lies_at_the_bottom():
    band = history.band("ours", [[1.0, 0.01, -0.5]])
    ((low, middle, _),), log = history.drawable([band], True)
    assert log
    assert middle.tolist() == low.tolist() == [1.0, 0.01, 0.01]
    assert not history.logarithmic(np.array([1.0, 50.0]), None)
    assert history.logarithmic(np.array([1.0, 500.0]), None)


def test_parallel_coordinates_lie_where_the_space_puts_them(mixed):
    lines = history.parallel(view(mixed, units={"kp": "N/m"}))
    assert lines.names == ("kp [N/m]", "kd", "order", "filter")
    trial = mixed.trials[3]
    located = [mixed.space[name].locate(trial.params[name]) for name in ("kp", "kd", "order", "filter")]
    assert lines.positions[3].tolist() == pytest.approx(located)
    assert list(lines.ticks[3].values()) == ["none", "butter", "bessel"]
    assert lines.ticks[1][0.0] == "0.01"
    heights, low, high = history.parallel_heights(lines)
    assert (heights[lines.failed] == 1.0).all()
    assert heights[~lines.failed].max() == pytest.approx(history.TOP)
    assert (low, high) == (np.nanmin(lines.values), np.nanmax(lines.values))


def linear(space: dict, cost, trials: int = 40) -> Optimizer:
    fixed = crashbo.FixedModel(lengthscale=2.0, variance=100.0, noise_std=0.01, kernel="rbf")
    optimizer = Optimizer(space, options=Options(fixed={"objective": fixed}))
    for params in optimizer.space.sobol(trials, 0):
        optimizer.tell(params, cost(params))
    return optimizer


def test_importance_is_the_share_of_variance_of_an_additive_cost():
    # Var of a x for x uniform on [0, 1] is a^2 / 12: shares of 9 : 1, with one lengthscale for both.
    found = importance(linear({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)}, lambda p: 3 * p["a"] + p["b"]))
    assert found.cost.tolist() == pytest.approx([0.9, 0.1, 0.0], abs=0.01)
    assert found.cost_change[0] == pytest.approx(3 / math.sqrt(12), rel=0.02)
    assert found.success.sum() == pytest.approx(1.0) or not found.success.any()


def test_importance_of_a_choice_counts_like_any_other():
    # A fair choice between 0 and 1 has variance 1/4, three times that of a number on [0, 1].
    space = {"a": (0.0, 1.0), "b": Categorical(["low", "high"])}
    found = importance(linear(space, lambda p: p["a"] + (p["b"] == "high"), 60))
    assert found.cost.tolist() == pytest.approx([0.25, 0.75], abs=0.02)


def test_importance_for_success_has_its_own_measure():
    optimizer = linear({"a": (0.0, 1.0), "b": (0.0, 1.0)}, lambda p: CRASHED if p["a"] > 0.6 else p["a"], 30)
    found = importance(optimizer)
    assert found.success[0] > 0.95  # only a makes it crash
    assert found.success.sum() == pytest.approx(1.0)


def test_without_a_cost_only_success_is_measured():
    optimizer = Optimizer({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    optimizer.tell({"a": 0.2, "b": 0.5}, CRASHED)
    found = importance(optimizer)
    assert found.cost.tolist() == [0.0, 0.0]
    assert found.success.sum() == pytest.approx(1.0)


def test_violations_alone_give_a_limit_to_follow():
    optimizer = Optimizer(
        {"x": (0.0, 1.0)}, constraints=[Constraint("g")], options=Options(fixed={"objective": FIXED, "g": FIXED})
    )
    optimizer.tell({"x": 0.2}, 1.0, g=0.5)
    optimizer.tell({"x": 0.8}, 0.5, g=VIOLATED)
    (path,) = history.thresholds(optimizer)
    assert path.output == "g"
