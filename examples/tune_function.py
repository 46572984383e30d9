"""Tune an experiment that can crash: ask, try, tell.

python examples/tune_function.py
"""

import crashbo


def experiment(params: dict[str, float]) -> tuple[float, float]:
    """A controller that oscillates above a stiffness nobody knows; returns cost and reach."""
    if params["kp"] * params["kd"] > 3.0:
        raise crashbo.Crash("oscillates", reach=params["kp"])
    return (params["kp"] - 6.0) ** 2 + 10.0 * (params["kd"] - 0.4) ** 2, params["kp"]


def main(n_trials: int = 25) -> None:
    """Run the whole loop by hand."""
    space = crashbo.Space({"kp": (0.0, 10.0), "kd": (0.1, 1.0)})
    optimizer = crashbo.Optimizer(space, constraints=[crashbo.Constraint("reach")], seed=0)
    for _ in range(n_trials):
        params = optimizer.ask()
        try:
            cost, reach = experiment(params)
        except crashbo.Crash as crash:
            optimizer.tell(params, crashbo.CRASHED, reason=crash.reason, **crash.values)
        else:
            optimizer.tell(params, cost, reach=reach if reach < 8.0 else crashbo.VIOLATED)
    print("Best guess:", optimizer.best())
    for name, limit in optimizer.limits.items():
        print(f"Limit of {name}: {limit.value:.3g} ± {limit.deviation:.2g}")
    print(optimizer.crash_relation)
    print("Failed trials:", optimizer.history.failed.sum(), "of", n_trials)


if __name__ == "__main__":
    main()
