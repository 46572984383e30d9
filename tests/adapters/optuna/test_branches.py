"""Parameters that only some trials have."""

from typing import Any

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution

import crashbo
from crashbo.adapters.optuna import CrashBOSampler, read
from crashbo.adapters.optuna.branches import choose, find_branch
from crashbo.problem.problem import UNKNOWN_SPACE, Problem
from tests.adapters.optuna.helpers import UNIT, light, make_study, old

KIND = CategoricalDistribution(["svm", "tree"])
SVM = {"kind": KIND, "C": UNIT, "gamma": UNIT}


def svm(value: float | None, c: float, gamma: float) -> Any:
    return old(value, space=SVM, kind="svm", C=c, gamma=gamma)


def tree(value: float | None, depth: float) -> Any:
    return old(value, space={"kind": KIND, "depth": UNIT}, kind="tree", depth=depth)


@pytest.fixture
def study() -> optuna.Study:
    study = make_study(light(space={"kind": KIND}))  # the others are asked for one by one
    points = [(0.1, 0.1), (0.9, 0.2), (0.4, 0.5), (0.2, 0.9), (0.8, 0.8), (0.5, 0.7)]
    study.add_trials([svm((c - 0.6) ** 2 + (gamma - 0.6) ** 2, c, gamma) for c, gamma in points])
    study.add_trials([tree(1.0, 0.1), tree(0.9, 0.5)])
    return study


def test_a_branch_is_what_trials_with_a_parameter_share(study: optuna.Study) -> None:
    found = find_branch(read(study), "C", UNIT, {"kind": "svm"}, {})
    assert found is not None
    assert sorted(found.translation.distributions) == ["C", "gamma", "kind"]
    assert found.free == ["C", "gamma"]
    assert len(found.records) == 6
    assert found.enough


def test_few_trials_are_not_enough(study: optuna.Study) -> None:
    found = find_branch(read(study), "depth", UNIT, {"kind": "tree"}, {})
    assert found is not None
    assert not found.enough


def test_crashes_count_as_trials_of_a_branch(study: optuna.Study) -> None:
    study.add_trial(tree(None, 0.9))
    found = find_branch(read(study), "depth", UNIT, {"kind": "tree"}, {})
    assert found is not None
    assert found.enough


def test_there_is_no_branch_of_a_parameter_that_no_trial_has(study: optuna.Study) -> None:
    assert find_branch(read(study), "never seen", UNIT, {}, {}) is None


def test_there_is_no_branch_for_values_that_its_trials_never_had(study: optuna.Study) -> None:
    assert find_branch(read(study), "C", UNIT, {"kind": "forest"}, {}) is None


def test_what_is_chosen_already_stays_and_the_rest_follows_the_model(study: optuna.Study) -> None:
    found = find_branch(read(study), "C", UNIT, {"kind": "svm", "gamma": 0.6}, {})
    assert found is not None
    chosen = choose(found, Problem(UNKNOWN_SPACE, options=crashbo.Options(risk=1.0)), maximize=False, number=8)
    assert list(chosen) == ["C"]
    assert abs(chosen["C"] - 0.6) < 0.25
    assert chosen == choose(found, Problem(UNKNOWN_SPACE, options=crashbo.Options(risk=1.0)), maximize=False, number=8)


def test_a_trial_gets_the_parameters_of_its_branch_from_one_plan(study: optuna.Study) -> None:
    study.enqueue_trial({"kind": "svm"})
    trial = study.ask()
    assert trial.suggest_categorical("kind", ["svm", "tree"]) == "svm"
    c, gamma = trial.suggest_float("C", 0, 1), trial.suggest_float("gamma", 0, 1)
    found = find_branch(read(study)[:8], "C", UNIT, {"kind": "svm"}, {})
    assert found is not None
    settings = study.sampler._settings  # type: ignore[attr-defined]
    assert {"C": c, "gamma": gamma} == choose(found, settings, maximize=False, number=trial.number)


def test_a_range_that_changed_gives_values_inside_it(study: optuna.Study) -> None:
    study.enqueue_trial({"kind": "svm"})
    trial = study.ask()
    trial.suggest_categorical("kind", ["svm", "tree"])
    assert 0.3 <= trial.suggest_float("C", 0.3, 0.5) <= 0.5
    assert FloatDistribution(0.3, 0.5) == trial.distributions["C"]


def test_an_independent_sampler_of_the_users_own_comes_first(study: optuna.Study) -> None:
    random = optuna.samplers.RandomSampler(seed=3)
    study.sampler = light(space={"kind": KIND}, independent_sampler=random)
    study.enqueue_trial({"kind": "svm"})
    trial = study.ask()
    trial.suggest_categorical("kind", ["svm", "tree"])
    same = optuna.samplers.RandomSampler(seed=3)
    assert trial.suggest_float("C", 0, 1) == same.sample_independent(study, study.trials[-1], "C", UNIT)


def test_no_shared_parameter_at_all() -> None:
    def objective(trial: optuna.Trial) -> float:
        if trial.number % 2:
            return (trial.suggest_float("a", 0, 1) - 0.3) ** 2
        return (trial.suggest_float("b", 0, 1) - 0.8) ** 2

    study = make_study(CrashBOSampler(seed=0))
    study.optimize(objective, n_trials=16)
    assert study.best_value < 1e-4  # of 16 random ones the best would be about 1e-3


def test_a_model_that_fails_leaves_a_random_value(study: optuna.Study, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: crashbo.Optimizer) -> None:
        raise crashbo.NumericalError("too extreme")

    monkeypatch.setattr(crashbo.Optimizer, "score", fail)
    study.enqueue_trial({"kind": "svm"})
    trial = study.ask()
    trial.suggest_categorical("kind", ["svm", "tree"])
    assert 0 <= trial.suggest_float("C", 0, 1) <= 1
