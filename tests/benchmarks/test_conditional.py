"""The comparison of samplers where parameters depend on others."""

import optuna
import pytest
from benchmarks.conditional import OBJECTIVES, run
from optuna.trial import FixedTrial

import crashbo

BEST = {
    "two": {"kind": "steep", "y": 0.85, "z": 0.15},
    "three": {"kind": "hard", "shared": 0.4, "p": 0.6, "q": 0.36, "r": 0.7},
    "nested": {"model": "machine", "kernel": "radial", "C": 100.0, "gamma": 10**-1.2},
}


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_the_minimum_is_zero(objective: str) -> None:
    assert OBJECTIVES[objective](FixedTrial(BEST[objective])) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("objective", list(OBJECTIVES))
def test_no_trial_is_below_it(objective: str) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    study.optimize(OBJECTIVES[objective], n_trials=200, catch=(crashbo.Crash,))
    assert study.best_value > 0
    assert len({frozenset(trial.params) for trial in study.trials}) == {"two": 2, "three": 3, "nested": 3}[objective]


def test_the_same_seed_gives_the_same_regret() -> None:
    assert run("nested", "TPE", seed=3, trials=12) == run("nested", "TPE", seed=3, trials=12)
