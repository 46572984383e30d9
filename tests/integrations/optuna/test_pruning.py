"""What a pruned trial says about its cost."""

import math

import optuna
import pytest
from optuna.trial import TrialState

from crashbo.integrations.optuna import CrashBOSampler, read
from crashbo.integrations.optuna.pruning import Curve, estimate
from tests.integrations.optuna.helpers import light, make_study

FINISHED = [(Curve([1, 2, 3], [5.0, 3.0, 2.0]), 1.0), (Curve([1, 2, 3], [6.0, 5.0, 4.0]), 3.0)]


def test_the_value_moves_by_what_others_gained_after_that_step() -> None:
    assert estimate(Curve([1, 2], [9.0, 7.0]), FINISHED, maximize=False) == pytest.approx(7.0 - 2.0)
    assert estimate(Curve([1], [9.0]), FINISHED, maximize=False) == pytest.approx(9.0 - 3.5)


def test_a_step_that_others_did_not_report_is_compared_with_the_one_before() -> None:
    sparse = [(Curve([1, 10], [5.0, 2.0]), 1.0)]
    assert estimate(Curve([4], [9.0]), sparse, maximize=False) == pytest.approx(9.0 - 4.0)
    assert estimate(Curve([0], [9.0]), sparse, maximize=False) == 9.0  # nobody reported so early


def test_nothing_that_was_given_up_becomes_the_best() -> None:
    assert estimate(Curve([1], [1.0]), FINISHED, maximize=False) == math.nextafter(1.0, math.inf)
    mirrored = [(Curve(one.steps, [-value for value in one.values]), -cost) for one, cost in FINISHED]
    assert estimate(Curve([1], [-1.0]), mirrored, maximize=True) == math.nextafter(-1.0, -math.inf)
    assert estimate(Curve([1], [-9.0]), mirrored, maximize=True) == pytest.approx(-9.0 + 3.5)


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
