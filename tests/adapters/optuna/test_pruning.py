"""What a pruned trial says about its cost."""

import math

import numpy as np
import optuna
import pytest
from optuna.trial import TrialState

from crashbo.adapters.optuna import CrashBOSampler, read
from crashbo.adapters.optuna.pruning import Curve, estimate
from tests.adapters.optuna.helpers import light, make_study

FINISHED = [(Curve([1, 2, 3], [5.0, 3.0, 2.0]), 1.0), (Curve([1, 2, 3], [6.0, 5.0, 4.0]), 3.0)]


def line(step: int, weight: float = 1.0) -> tuple[float, float]:
    """Slope and offset at a step of FINISHED, independently."""
    before = np.array([curve.at(step) for curve, _ in FINISHED])
    cost = np.array([cost for _, cost in FINISHED])
    slope = (np.cov(before, cost, ddof=0)[0, 1] + weight * before.var() / 2) / (before.var() * (1 + weight / 2))
    slope = float(np.clip(slope, 0.0, 1.5))
    return slope, float(np.median(cost - slope * before))


@pytest.mark.parametrize("step", [1, 2, 3])
def test_the_value_goes_on_as_those_of_finished_trials_did(step: int) -> None:
    slope, offset = line(step)
    found = estimate(Curve([step], [9.0]), FINISHED, maximize=False)
    assert found == pytest.approx(offset + slope * 9.0)


def test_every_step_has_its_say_by_how_well_it_foretells() -> None:
    random = np.random.default_rng(0)
    costs = np.linspace(0.0, 4.0, 30)
    curves = [Curve([1, 2, 3], [cost + 5 * random.normal(), cost + 1.0, cost + 0.5]) for cost in costs]
    finished = [(curve, float(cost)) for curve, cost in zip(curves, costs, strict=True)]
    unlucky = Curve([1, 2, 3], [-20.0, 4.0, 3.5])  # the first step says little, the others agree on 3
    assert estimate(unlucky, finished, maximize=False) == pytest.approx(3.0, abs=1e-6)
    noisy = [
        (Curve([1, 2], [cost + n, cost - n]), float(cost))
        for cost, n in zip(costs, random.normal(size=30), strict=True)
    ]
    assert estimate(Curve([1, 2], [4.0, 2.0]), noisy, maximize=False) == pytest.approx(3.0, abs=0.4)


def test_curves_that_fall_in_proportion_are_met_by_many_trials() -> None:
    many = [(Curve([1], [4.0 * cost]), cost) for cost in np.linspace(0.5, 8.0, 40)]
    assert estimate(Curve([1], [20.0]), many, maximize=False) == pytest.approx(5.0, rel=0.05)


def test_early_values_that_mislead_say_nothing() -> None:
    crossing = [(Curve([1], [10.0 - cost]), cost) for cost in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert estimate(Curve([1], [100.0]), crossing, maximize=False) == pytest.approx(3.0)


def test_equal_values_leave_differences_as_they_are() -> None:
    equal = [(Curve([1], [5.0]), 1.0), (Curve([1], [5.0]), 3.0)]
    assert estimate(Curve([1], [9.0]), equal, maximize=False) == pytest.approx(9.0 - 3.0)


def test_a_step_that_others_did_not_report_is_compared_with_the_one_before() -> None:
    sparse = [(Curve([1, 10], [5.0, 2.0]), 1.0)]
    assert estimate(Curve([4], [9.0]), sparse, maximize=False) == pytest.approx(9.0 - 4.0)
    assert estimate(Curve([0], [9.0]), sparse, maximize=False) == 9.0  # nobody reported so early


def test_nothing_that_was_given_up_becomes_the_best() -> None:
    assert estimate(Curve([1], [-9.0]), FINISHED, maximize=False) == math.nextafter(1.0, math.inf)
    mirrored = [(Curve(one.steps, [-value for value in one.values]), -cost) for one, cost in FINISHED]
    assert estimate(Curve([1], [9.0]), mirrored, maximize=True) == math.nextafter(-1.0, -math.inf)
    slope, offset = line(1)
    assert estimate(Curve([1], [-9.0]), mirrored, maximize=True) == pytest.approx(-offset - slope * 9.0)


def test_without_finished_trials_it_is_the_last_value() -> None:
    assert estimate(Curve([1, 2], [9.0, 7.0]), [], maximize=False) == 7.0


def falling(trial: optuna.Trial) -> float:
    """A bowl whose curves all fall by 2."""
    final = (trial.suggest_float("x", -1, 1) - 0.7) ** 2 + (trial.suggest_float("y", -1, 1) + 0.3) ** 2
    for step in range(1, 10):
        trial.report(final + 2 * math.exp(-step / 3), step)
        if trial.should_prune():
            raise optuna.TrialPruned
    return final


def test_records_of_a_study_have_estimates() -> None:
    study = make_study(light(), pruner=optuna.pruners.MedianPruner(n_startup_trials=2))
    study.optimize(falling, n_trials=12)
    pruned = [one for one in read(study) if one.status == "pruned"]
    assert pruned
    for one in pruned:  # all curves fall by the same, so the estimate is exact
        cost = (one.params["x"] - 0.7) ** 2 + (one.params["y"] + 0.3) ** 2
        assert one.estimate == pytest.approx(cost)
    known = study.sampler.optimizer(study)  # type: ignore[attr-defined]
    assert len(known.trials) == 12
    assert known.best().params != {}


@pytest.mark.parametrize(
    "pruner", [optuna.pruners.MedianPruner(n_startup_trials=3), optuna.pruners.HyperbandPruner(max_resource=9)]
)
def test_a_pruner_does_not_trap_the_search(pruner: optuna.pruners.BasePruner) -> None:
    study = optuna.create_study(sampler=CrashBOSampler(seed=0), pruner=pruner, study_name="trap")
    study.optimize(falling, n_trials=20)
    states = [trial.state for trial in study.trials]
    assert states.count(TrialState.PRUNED) <= 12
    assert study.best_value < 1e-2


def test_a_study_that_another_sampler_began_goes_on() -> None:
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner(n_startup_trials=3)
    )
    study.optimize(falling, n_trials=12)
    before = study.best_value
    study.sampler = CrashBOSampler(seed=0)
    study.optimize(falling, n_trials=8)
    assert study.best_value < before
    assert study.best_value < 1e-3


def test_hyperband_hides_no_trials_from_the_model() -> None:
    study = make_study(light(), pruner=optuna.pruners.HyperbandPruner(max_resource=9), study_name="brackets")
    study.optimize(falling, n_trials=6)
    trial = study.ask()
    view = optuna.pruners._filter_study(study, study.trials[-1])
    assert len(view.get_trials()) < len(study.trials)
    assert [one.number for one in read(view)] == list(range(trial.number + 1))
