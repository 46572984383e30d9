"""Tune an experiment that can crash with Ax's Client: pip install 'crashbo[ax]'.

python examples/ax_client.py
"""

import logging

from ax.api.client import Client
from ax.api.configs import RangeParameterConfig

from crashbo.integrations.ax import best, configure


def main(n_trials: int = 16) -> None:
    """Run the loop that users of Ax know; only `configure` is new."""
    logging.getLogger("ax.api.client").setLevel(logging.WARNING)
    client = Client()
    client.configure_experiment(
        parameters=[
            RangeParameterConfig(name="kp", bounds=(0.0, 10.0), parameter_type="float"),
            RangeParameterConfig(name="kd", bounds=(0.1, 1.0), parameter_type="float"),
        ]
    )
    client.configure_optimization(objective="-cost")
    configure(client, seed=0)
    crashes = 0
    for _ in range(n_trials):
        for index, params in client.get_next_trials(max_trials=1).items():
            if params["kp"] * params["kd"] > 3.0:
                crashes += 1
                client.mark_trial_failed(index, failed_reason="oscillates")
            else:
                cost = (params["kp"] - 6.0) ** 2 + 10.0 * (params["kd"] - 0.4) ** 2
                client.complete_trial(index, {"cost": cost})
    print("Best guess:", best(client))
    print("Crashed trials:", crashes, "of", n_trials)


if __name__ == "__main__":
    main()
