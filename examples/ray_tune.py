"""Tune an experiment that can crash with Ray Tune: pip install 'crashbo[ray]'.

python examples/ray_tune.py
"""

import tempfile
from typing import Any

from ray import tune

import crashbo
from crashbo.integrations.ray import CrashBOSearch


def experiment(config: dict[str, Any]) -> dict[str, float]:
    """A controller that oscillates above a stiffness nobody knows."""
    if config["kp"] * config["kd"] > 3.0:
        raise crashbo.Crash("oscillates")
    return {"cost": (config["kp"] - 6.0) ** 2 + 10.0 * (config["kd"] - 0.4) ** 2}


def main(n_trials: int = 8) -> None:
    """Run the trials two at a time, on this machine or on the cluster Ray is connected to."""
    search = CrashBOSearch(metric="cost", mode="min", seed=0)
    tuner = tune.Tuner(
        search.crashing(experiment),
        param_space={"kp": tune.uniform(0.0, 10.0), "kd": tune.uniform(0.1, 1.0)},
        tune_config=tune.TuneConfig(search_alg=search, num_samples=n_trials, max_concurrent_trials=2),
        run_config=tune.RunConfig(storage_path=tempfile.mkdtemp(), verbose=0),
    )
    tuner.fit()
    print("Best guess:", search.best())
    print("Crashed trials:", sum(trial.crashed for trial in search.optimizer.trials), "of", n_trials)


if __name__ == "__main__":
    main()
