"""Settings of a study, today's and those of version 0.1."""

from typing import Any

import pytest

import crashbo
from crashbo.adapters.optuna import CrashBOSampler
from crashbo.adapters.optuna.history import settings_in

FIXED = {"objective": {"lengthscale": 0.2, "variance": 1.0, "threshold_prior": [0.0, 3.0]}}


@pytest.mark.parametrize(
    ("stored", "strategy", "acquisition"),
    [
        ({"acquisition": "auto", "options": {}}, "default", "auto"),
        ({"acquisition": "auto", "options": {"risk": 0.1, "fixed": {}}}, "default", "auto"),
        ({"acquisition": "auto", "options": {"fixed": FIXED}}, "paper", "auto"),
        ({"acquisition": "mes"}, "paper", "mes"),
        ({"acquisition": "mesco"}, "paper", "mesco"),
        ({"acquisition": "cmes"}, "paper", "auto"),
        ({"acquisition": "logei"}, "paper", "auto"),
        ({"strategy": "default", "acquisition": "auto", "options": {"fixed": FIXED}}, "default", "auto"),
        ({"strategy": "paper", "acquisition": "auto"}, "paper", "auto"),
    ],
)
def test_settings_of_version_0_1_are_mapped(stored: dict[str, Any], strategy: str, acquisition: str) -> None:
    found = settings_in({"crashbo:settings": {"seed": 3, **stored}})
    assert (found.strategy, found.acquisition, found.seed) == (strategy, acquisition, 3)


def test_settings_are_checked_when_they_are_set() -> None:
    with pytest.raises(crashbo.InputError, match="`acquisition` must be 'auto' unless `strategy` is 'paper'"):
        CrashBOSampler(acquisition="mes")
    with pytest.raises(crashbo.InputError, match="`strategy` must be 'default', 'paper' or an object"):
        CrashBOSampler(strategy="best")
    with pytest.raises(crashbo.InputError, match=r"`options` must be crashbo\.Options"):
        CrashBOSampler(options={"risk": 0.1})  # type: ignore[arg-type]


def test_a_strategy_of_ones_own_is_used() -> None:
    import optuna

    from crashbo.search.default import DefaultStrategy

    mine = DefaultStrategy()
    study = optuna.create_study(sampler=CrashBOSampler(seed=0, strategy=mine))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) ** 2, n_trials=2)
    assert study.sampler.optimizer(study).problem.strategy is mine
