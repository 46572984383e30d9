"""The numbers of the pictures are the model's own."""

import math

import numpy as np
import pytest

import crashbo
from crashbo import CRASHED, Constraint, InputError, Optimizer, Options
from crashbo.research.problems import SYNTHETIC
from crashbo.show import data, planes, view
from tests.show.conftest import FIXED


def unit(optimizer: Optimizer, params: dict) -> np.ndarray:
    return optimizer.space.encode(params)[None]


def test_a_line_holds_mean_deviation_limit_and_success_of_the_model(one):
    line = data.line(one, points=21)
    (curve,) = line.curves
    assert line.axis.values.tolist() == pytest.approx(np.linspace(0, 2, 21).tolist())
    models = one.surrogate()
    for index in (0, 7, 20):
        point = unit(one, {"gain": line.axis.values[index]})
        mean, std = models.moments(point)
        assert curve.mean[index] == pytest.approx(float(mean[0]))
        assert curve.std[index] == pytest.approx(float(std[0]))
        assert line.success[index] == pytest.approx(float(models.success(point)[0]))
    assert curve.limit == one.limits["objective"]
    assert curve.label_level == curve.limit.value
    assert curve.limit.deviation > 0


def test_a_line_marks_every_trial_and_says_what_happened(one):
    marks = data.line(one, points=5).curves[0].marks
    assert marks.x.tolist() == [0.2, 0.6, 1.0, 1.4, 1.8]
    assert marks.failed.tolist() == [False, False, False, True, True]
    assert marks.y[:3].tolist() == [0.5, 2.0, 1.0]
    assert np.isnan(marks.y[3:]).all()
    assert marks.texts == ("cost 0.5", "cost 2", "cost 1", "crashed: fell", "crashed: fell")
    assert marks.near.tolist() == [1.0] * 5


def test_best_and_next_lie_where_the_optimizer_says_and_drawing_changes_nothing(one):
    before = one.to_json()
    line = data.line(one, points=11)
    assert line.best == one.best().params["gain"]
    copy = Optimizer.from_json(before)
    assert line.next == copy.ask()["gain"]
    assert one.to_json() == before


def test_the_acquisition_is_what_the_search_maximises(one):
    line = data.line(one, points=401)
    # The maximiser may lie between grid points: next to the next point the picture must be at its top.
    nearest = np.abs(line.axis.values - line.next).argmin()
    assert line.acquisition.min() >= 0.0
    assert line.acquisition.max() <= 1.0
    assert line.acquisition[nearest] > 0.98
    assert line.mode == "expected gain"
    score = one.score()
    at = unit(one, {"gain": line.next})
    best = max(score(at)[0], score(np.array([unit(one, {"gain": x})[0] for x in line.axis.values])).max())
    expected = np.exp(score(unit(one, {"gain": line.axis.values[7]}))[0] - best)
    assert line.acquisition[7] == pytest.approx(expected)


def test_costs_of_a_maximisation_keep_their_sign():
    options = Options(initial=1, fixed={"objective": FIXED})
    up = Optimizer({"x": (0.0, 1.0)}, direction="maximize", options=options)
    down = Optimizer({"x": (0.0, 1.0)}, options=options)
    for x, cost in ((0.1, 0.5), (0.5, 1.0)):
        up.tell({"x": x}, -cost)
        down.tell({"x": x}, cost)
    for one in (up, down):
        one.tell({"x": 0.9}, CRASHED)
    above, below = data.line(up, points=9).curves[0], data.line(down, points=9).curves[0]
    assert above.mean.tolist() == pytest.approx((-below.mean).tolist())
    assert (above.limit is None) == (below.limit is None)
    if above.limit is not None:
        assert above.limit.value == pytest.approx(-below.limit.value)
    assert above.marks.y[:2].tolist() == [-0.5, -1.0]


def test_constraints_have_curves_of_their_own(two):
    line = data.line(two, "kd", at={"kp": 4.0}, points=9)
    assert [curve.output for curve in line.curves] == ["objective", "reach"]
    reach = line.curves[1]
    models = two.surrogate()
    point = unit(two, {"kp": 4.0, "kd": line.axis.values[4]})
    assert reach.mean[4] == pytest.approx(float(models.moments(point, "reach")[0][0]))
    assert reach.limit == models.limits["reach"]
    assert reach.success[4] == pytest.approx(float(models.success(point, "reach")[0]))
    assert reach.marks.numbers == (0, 1, 2, 4)  # the crashed trial said nothing about it
    assert reach.marks.failed.tolist() == [False, False, True, False]
    assert line.unconstrained is not None
    assert line.next is None  # it lies elsewhere
    assert line.held == {"kp": 4.0}


def test_trials_far_from_a_slice_are_faint(two):
    near = data.line(two, "kd", at={"kp": 4.0}, points=3).curves[0].marks.near
    assert near[4] == 1.0
    assert near[1] == pytest.approx(0.8)  # a tenth of the range away
    assert near[3] == pytest.approx(0.2)


def test_maps_hold_the_model_on_the_grid(two):
    maps = planes.maps(two, points=6)
    models = two.surrogate()
    for row, column in ((0, 0), (2, 4), (5, 5)):
        point = unit(two, {"kp": maps.x.values[column], "kd": maps.y.values[row]})
        mean, std = models.moments(point)
        assert maps.layer("mean").values[row, column] == pytest.approx(float(mean[0]))
        assert maps.layer("std").values[row, column] == pytest.approx(float(std[0]))
        assert maps.layer("success").values[row, column] == pytest.approx(float(models.success(point)[0]))
        alone = float(models.success(point, "reach")[0])
        assert maps.layer("success", "reach").values[row, column] == pytest.approx(alone)
    assert maps.best == (two.best().params["kp"], two.best().params["kd"])
    suggestion = Optimizer.from_json(two.to_json()).ask()
    assert maps.next == (suggestion["kp"], suggestion["kd"])
    assert maps.marks.failed.tolist() == [False, False, True, True, False]
    assert maps.marks_of(maps.layer("success")) is maps.marks
    assert maps.marks_of(maps.layer("mean")).failed.tolist() == [False, False, False, True, False]  # it crashed
    assert maps.marks_of(maps.layer("mean", "reach")).failed.tolist() == [False, False, True, False]
    assert maps.safe_level == 0.95
    assert {layer.quantity for layer in maps.layers if layer.output == "reach"} == {"mean", "std", "success"}


def test_pending_suggestions_are_shown_and_change_the_acquisition(one):
    optimizer = Optimizer.from_json(one.to_json())
    first = data.line(optimizer, points=51)
    out = optimizer.ask()
    assert first.next == out["gain"]
    second = data.line(optimizer, points=51)
    assert second.next != out["gain"]
    assert not np.allclose(first.acquisition, second.acquisition)


def test_every_kind_of_parameter_has_an_axis(mixed):
    seen = view(mixed, units={"kd": "s"})
    kinds = {line.axis.name: line.axis for line in data.slices(seen, points=7)}
    assert set(kinds) == {"kp", "kd", "order", "filter"}  # not the constant
    assert kinds["kd"].scale == "log"
    assert kinds["kd"].label == "kd [s]"
    assert kinds["kd"].values.tolist() == pytest.approx(np.geomspace(1e-2, 1, 7).tolist())
    assert kinds["order"].values.tolist() == [1, 2, 3, 4]
    assert kinds["order"].discrete
    assert kinds["filter"].ticks == {0.0: "none", 1.0: "butter", 2.0: "bessel"}
    assert kinds["filter"].edges.tolist() == [-0.5, 0.5, 1.5, 2.5]


def test_a_map_over_log_and_category_is_the_model_there(mixed):
    maps = planes.maps(mixed, "filter", "kd", points=5, quantities=("mean",))
    best = mixed.best().params
    params = best | {"filter": "bessel", "kd": 1e-1}
    mean = float(mixed.surrogate().moments(unit(mixed, params))[0][0])
    assert maps.layer("mean").values[2, 2] == pytest.approx(mean)
    assert maps.held == {"kp": best["kp"], "order": best["order"]}
    assert set(maps.marks.x) <= {0.0, 1.0, 2.0}
    assert maps.layer("mean").values.shape == (5, 3)


def test_pairs_hold_every_pair_once(mixed):
    pairs = planes.pairs(mixed, names=["kp", "kd", "order"], points=4, quantity="success")
    assert list(pairs.lines) == ["kp", "kd", "order"]
    assert list(pairs.maps) == [("kp", "kd"), ("kp", "order"), ("kd", "order")]
    assert all(len(maps.layers) == 1 for maps in pairs.maps.values())


def test_the_truth_is_drawn_beside_the_model():
    problem = SYNTHETIC["sim2"]
    options = Options(initial=1, fixed={"objective": FIXED, "g": FIXED})
    optimizer = Optimizer(problem.space, constraints=[Constraint("g")], options=options)
    rng = np.random.default_rng(0)
    for params in problem.space.sobol(4, 1):
        outcome = problem.evaluate(params, rng)
        optimizer.tell(params, outcome["objective"], g=crashbo.VIOLATED if outcome["g"] is None else outcome["g"])
    maps = planes.maps(optimizer, points=5, truth=problem)
    there = {"x1": maps.x.values[3], "x2": maps.y.values[1]}
    assert maps.layer("truth").values[1, 3] == pytest.approx(problem.value(there))
    assert maps.infeasible[0, 0]  # a corner lies outside the circle
    assert not maps.infeasible[2, 2]
    assert math.isnan(maps.layer("truth", "g").values[0, 0])
    assert maps.minimum == (problem.minimiser["x1"], problem.minimiser["x2"])


def test_numbers_and_units_of_a_study_are_used(one):
    seen = view(one, units={"gain": "N/m", "objective": "J"}, numbers=[3, 5, 8, 9, 12], objective="energy")
    line = data.line(seen, points=3)
    assert line.axis.label == "gain [N/m]"
    assert line.curves[0].label == "energy [J]"
    assert line.curves[0].marks.numbers == (3, 5, 8, 9, 12)


def test_without_any_cost_the_label_says_so():
    optimizer = Optimizer({"x": (0.0, 1.0)})
    optimizer.tell({"x": 0.5}, CRASHED)
    line = data.line(optimizer, points=9)
    assert line.curves[0].label == "cost (none seen yet)"
    assert line.mode == "success probability"
    assert np.isfinite(line.success).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one, two: data.line(two), "`parameter` must be given where several vary"),
        (lambda one, two: data.line(one, "kp"), "`parameter` must be one that varies"),
        (lambda one, two: data.line(two, "kp", at={"ki": 1.0}), "`at` must name parameters"),
        (lambda one, two: data.line(two, "kp", at={"kd": 7.0}), "`kd` must lie in"),
        (lambda one, two: planes.maps(one), "`source` must have two parameters"),
        (lambda one, two: planes.maps(two, "kp", "kp"), "`x` and `y` must be different"),
        (lambda one, two: planes.pairs(two, names=["kp"]), "`names` must be at least two"),
        (lambda one, two: view(one, units={"kp": "N"}), "`units` must name parameters"),
        (lambda one, two: view(one, numbers=[1]), "`numbers` must have one entry per trial"),
        (lambda one, two: view(view(one), units={}), "must be left out with a View"),
        (lambda one, two: view(3), "`source` must be an Optimizer, a Result, a View or an Optuna study"),
        (lambda one, two: data.line(Optimizer({"x": (0, 1)})), "`source` must have a model to draw"),
    ],
)
def test_wrong_input_is_refused_with_a_reason(one, two, call, message):
    with pytest.raises(InputError, match=message):
        call(one, two)


def test_more_than_two_parameters_need_names(mixed):
    with pytest.raises(InputError, match="`x` and `y` must be given"):
        planes.maps(mixed)
