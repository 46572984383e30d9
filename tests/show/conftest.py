"""Runs to draw: with fixed hyperparameters, so that fitting takes no time."""

import pytest

import crashbo
from crashbo import CRASHED, VIOLATED, Categorical, Constraint, FixedModel, Float, Int, Optimizer, Options

FIXED = FixedModel(lengthscale=0.3, variance=1.0, noise_std=0.02)


@pytest.fixture(scope="session")
def one() -> Optimizer:
    """One parameter: three costs, two crashes that are high costs."""
    optimizer = Optimizer({"gain": (0.0, 2.0)}, options=Options(initial=1, crashes="absorb"))
    for gain, cost in ((0.2, 0.5), (0.6, 2.0), (1.0, 1.0)):
        optimizer.tell({"gain": gain}, cost)
    for gain in (1.4, 1.8):
        optimizer.tell({"gain": gain}, CRASHED, reason="fell")
    return optimizer


@pytest.fixture(scope="session")
def two() -> Optimizer:
    """Two parameters with a constraint: seen, violated, and not told after a crash."""
    fixed = {"objective": FIXED, "reach": FIXED}
    optimizer = Optimizer(
        {"kp": (0.0, 10.0), "kd": (0.1, 1.0)},
        constraints=[Constraint("reach")],
        seed=3,
        options=Options(initial=1, fixed=fixed),
    )
    optimizer.tell({"kp": 1.0, "kd": 0.2}, 1.2, reach=0.3)
    optimizer.tell({"kp": 3.0, "kd": 0.5}, 0.4, reach=0.6)
    optimizer.tell({"kp": 5.0, "kd": 0.4}, -0.3, reach=VIOLATED)
    optimizer.tell({"kp": 8.0, "kd": 0.9}, CRASHED, reason="oscillates")
    optimizer.tell({"kp": 4.0, "kd": 0.3}, 0.1, reach=0.8)
    return optimizer


MIXED = {
    "kp": (0.0, 10.0),
    "kd": Float(1e-2, 1.0, log=True),
    "order": Int(1, 4),
    "filter": Categorical(["none", "butter", "bessel"]),
    "fixed": Int(3, 3),
}


def mixed_cost(params: dict) -> float | None:
    """The cost of mixed parameters, None where they crash."""
    if params["kp"] > 8:
        return None
    return (
        (params["kp"] - 6) ** 2 / 20
        + 0.5 * (params["order"] - 2)
        + {"none": 0.0, "butter": 0.2, "bessel": 0.4}[params["filter"]]
    )


@pytest.fixture(scope="session")
def mixed() -> Optimizer:
    """Every kind of parameter, log, integer, categorical and constant."""
    optimizer = Optimizer(MIXED, options=Options(initial=1, fixed={"objective": FIXED}))
    for params in crashbo.Space(MIXED).sobol(16, 0):
        cost = mixed_cost(params)
        optimizer.tell(params, CRASHED if cost is None else cost, reason="" if cost is not None else "too sharp")
    return optimizer
