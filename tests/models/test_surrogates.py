"""One model per output: which one, with which threshold, in each of the paper's cases."""

import math

import numpy as np
import pytest
import torch

from crashbo import CRASHED, Constraint, FixedModel, Optimizer, Trial
from crashbo.models.coupled_predictor import CoupledPredictor
from crashbo.models.predictor import Predictor
from crashbo.models.surrogates import Surrogates, build_surrogates
from tests.helpers import double

FIXED = {"objective": FixedModel(0.2, 4.0), "g": FixedModel(0.3, 1.0, threshold_prior=None)}
GRID = torch.linspace(0, 1, 21, dtype=torch.float64)[:, None]
CRASH = None
UNSAFE = {"g": None}


def build(outcomes, constraints=(), **named) -> Surrogates:
    """Surrogates of trials spread evenly, each an objective and its constraints."""
    step = 2.0 / (len(outcomes) + 1)
    trials = [Trial(i, {"x": step * (i + 1)}, cost, values) for i, (cost, values) in enumerate(outcomes)]
    points = torch.tensor([[0.5 * trial.params["x"]] for trial in trials], dtype=torch.float64)
    return build_surrogates(points, trials, constraints, **named)


def sound(models: Surrogates) -> None:
    with torch.no_grad():
        for model in (models.objective, *models.constraints.values()):
            assert all(value.isfinite().all() for value in model.moments(GRID))
        total = models.log_success(GRID)
    assert total.isfinite().all()
    assert (total <= 0).all()


def test_inputs_are_mapped_to_the_unit_cube():
    models = build([(1.0, {}), (CRASH, {}), (2.0, {})])
    assert torch.allclose(models.objective.X, double([[0.25], [0.5], [0.75]]))


@pytest.mark.parametrize("fixed", [{}, FIXED], ids=["learned", "fixed"])
@pytest.mark.parametrize("crash", [False, True])
def test_an_objective_alone_is_its_own_constraint(crash, fixed):
    models = build([(1.0, {}), (2.0, {}), (CRASH if crash else 1.5, {}), (2.5, {})], fixed=FIXED if fixed else {})
    assert set(models.thresholds) == {"objective"}
    assert models.thresholds["objective"] == models.compression.expand(models.objective.threshold)
    assert math.isfinite(models.objective.threshold)
    if crash:
        assert models.objective.threshold > 2.0
    assert models.constraints == models.limits == {}
    assert models.any_stable
    with torch.no_grad():
        assert torch.equal(models.log_success(GRID), models.objective.log_success(GRID))
        assert torch.equal(models.log_constraints(GRID), torch.zeros(21).double())
    sound(models)


@pytest.mark.parametrize("fixed", [{}, FIXED], ids=["learned", "fixed"])
def test_while_only_constraints_fail_the_objective_is_a_standard_gp(fixed):
    outcomes = [(1.0, {"g": 0.5}), (2.0, {"g": 0.8}), (3.0, UNSAFE), (2.5, {"g": 0.7})]
    models = build(outcomes, [Constraint("g")], fixed=fixed)
    assert models.objective.threshold == math.inf
    assert (models.objective.fit.estimate.ep.site_precision == 0).all()
    assert set(models.thresholds) == {"g"}
    assert models.thresholds["g"] == models.limits["g"] == models.constraints["g"].threshold
    assert 0.6 < models.thresholds["g"] < 3.0
    with torch.no_grad():
        assert torch.equal(models.log_success(GRID), models.log_constraints(GRID))
    sound(models)


@pytest.mark.parametrize("fixed", [{}, FIXED], ids=["learned", "fixed"])
def test_where_both_fail_both_have_thresholds(fixed):
    outcomes = [(1.0, {"g": 0.5}), (CRASH, {"g": 0.8}), (3.0, UNSAFE), (CRASH, UNSAFE), (CRASH, {}), (2.0, {"g": 0.6})]
    models = build(outcomes, [Constraint("g")], fixed=fixed)
    assert set(models.thresholds) == {"objective", "g"}
    assert all(math.isfinite(value) for value in models.thresholds.values())
    assert models.objective.fit.data.crashed.tolist() == [False, True, False, True, True, False]
    assert models.objective.fit.data.observed.tolist() == [0, 2, 5]
    assert len(models.constraints["g"].X) == 5  # nothing was seen in the fifth trial
    assert models.constraints["g"].fit.data.crashed.tolist() == [False, False, True, True, False]
    with torch.no_grad():
        total = models.objective.log_success(GRID) + models.constraints["g"].log_success(GRID)
        assert torch.allclose(models.log_success(GRID), total)
    sound(models)


def test_fixed_hyperparameters_are_taken_as_they_are():
    models = build([(10.0, {"g": 0.5}), (CRASH, UNSAFE), (12.0, {"g": 0.4})], [Constraint("g")], fixed=FIXED)
    for name, model in (("objective", models.objective), ("g", models.constraints["g"])):
        assert float(model.kernel.outputscale.detach()) == FIXED[name].variance
        assert float(model.kernel.base_kernel.lengthscale.detach()) == pytest.approx(FIXED[name].lengthscale)
        assert model.kernel.base_kernel.nu == 1.5
        assert (model.fit.offset, model.fit.scale) == (0.0, 1.0)
        assert model.noise_variance == pytest.approx(FIXED[name].noise_std ** 2)


def test_maximising_negates_the_objective_only():
    outcomes = [(1.0, {"g": 0.5}), (CRASH, UNSAFE), (2.0, {"g": 0.4})]
    mirrored = [(None if cost is None else -cost, values) for cost, values in outcomes]
    up = build(outcomes, [Constraint("g")], sign=-1.0, fixed=FIXED)
    down = build(mirrored, [Constraint("g")], fixed=FIXED)
    with torch.no_grad():
        assert torch.equal(up.objective.moments(GRID)[0], down.objective.moments(GRID)[0])
        assert torch.equal(up.constraints["g"].moments(GRID)[0], down.constraints["g"].moments(GRID)[0])
    assert up.thresholds == down.thresholds


@pytest.mark.parametrize("fixed", [{}, FIXED], ids=["learned", "fixed"])
def test_a_known_limit_stays(fixed):
    models = build([(1.0, {"g": 0.5}), (2.0, UNSAFE), (3.0, {"g": 0.8})], [Constraint("g", 0.9)], fixed=fixed)
    assert models.thresholds == {"g": pytest.approx(0.9)}
    assert models.constraints["g"].fit.data.crashed.tolist() == [False, True, False]
    sound(models)


def test_values_on_both_sides_of_a_known_limit_are_all_seen():
    outcomes = [(1.0, {"g": 0.5}), (2.0, {"g": 1.5}), (3.0, {"g": 0.8}), (2.0, {"g": -0.3})]
    fixed = {"g": FixedModel(0.3, 1.0)}
    models = build(outcomes, [Constraint("g", 0.9)], fixed=fixed)
    model = models.constraints["g"]
    assert models.thresholds == {"g": pytest.approx(0.9)}
    assert model.fit.data.observed.tolist() == [0, 1, 2, 3]
    standard = build(outcomes, [Constraint("g")], fixed=fixed).constraints["g"]
    with torch.no_grad():
        mean = model.moments(model.X)[0]
        assert torch.allclose(mean, double([0.5, 1.5, 0.8, -0.3]), atol=0.01)
        block = standard.kernel(model.X).to_dense() + 1e-4 * torch.eye(4)
        cross = standard.kernel(GRID, model.X).to_dense()
        expected = cross @ torch.linalg.solve(block, double([0.5, 1.5, 0.8, -0.3]))
        assert torch.allclose(model.moments(GRID)[0], expected, atol=1e-3)
        success = model.log_success(model.X, threshold=0.9).exp()
    assert (success[[0, 2, 3]] > 0.99).all()
    assert float(success[1]) < 0.01


def test_a_constraint_without_data_is_left_out():
    models = build([(CRASH, {}), (CRASH, {})], [Constraint("g")])
    assert models.constraints == models.limits == {}
    with torch.no_grad():
        assert torch.equal(models.log_constraints(GRID), torch.zeros(21).double())
    sound(models)


def test_where_all_crashed_the_threshold_is_zero_and_trials_are_avoided():
    models = build([(CRASH, {}), (CRASH, {}), (CRASH, {})])
    assert not models.any_stable
    assert models.objective.threshold == 0.0
    with torch.no_grad():
        at_trials, border = models.log_success(models.objective.X), models.log_success(double([[0.0]]))
    assert (at_trials < border).all()
    sound(models)


@pytest.mark.parametrize("fixed", [{}, FIXED], ids=["learned", "fixed"])
def test_a_constraint_always_violated_or_never(fixed):
    for values in (UNSAFE, {"g": 0.5}):
        models = build([(1.0, values), (2.0, values), (CRASH, values)], [Constraint("g")], fixed=fixed)
        assert math.isfinite(models.objective.threshold)
        sound(models)


@pytest.mark.parametrize("cost", [1.0, CRASH])
def test_one_trial_is_enough(cost):
    models = build([(cost, {})])
    assert models.any_stable is (cost is not None)
    sound(models)


def test_earlier_hyperparameters_are_kept_and_the_new_trials_believed():
    optimizer = Optimizer({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    for x, y in np.random.default_rng(0).random((22, 2)):
        optimizer.tell({"x": x, "y": y}, CRASHED if x > 0.8 else (x - 0.3) ** 2 + y)
    kept = optimizer.surrogates().objective
    learned = optimizer._build(21, optimizer._build(18), relearn=True).objective
    assert len(kept.X) == 22
    assert (kept.lengthscales == learned.lengthscales).all()
    assert kept.fit.offset == learned.fit.offset
    last = kept.X[-1:]
    assert kept.moments(last)[1] < learned.moments(last)[1]


def test_a_first_crash_makes_the_models_anew():
    optimizer = Optimizer({"x": (0.0, 1.0)})
    for x in np.linspace(0, 0.9, 20):
        optimizer.tell({"x": x}, x)
    assert isinstance(optimizer.surrogates().objective, Predictor)
    optimizer.tell({"x": 1.0}, CRASHED)
    assert isinstance(optimizer.surrogates().objective, CoupledPredictor)
