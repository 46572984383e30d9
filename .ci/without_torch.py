"""Check that torch is not installed here, and that a whole run does without it."""

import sys
from importlib.util import find_spec

import crashbo

HEAVY = ("torch", "gpytorch", "botorch")


def rollout(params: dict[str, float]) -> float:
    if params["x"] > 0.7:
        raise crashbo.Crash("too far")
    return (params["x"] - 0.3) ** 2


found = [name for name in HEAVY if find_spec(name)]
assert not found, f"this environment must not have {', '.join(found)}"
result = crashbo.minimize(rollout, {"x": (0.0, 1.0)}, n_trials=10, progress=False)
assert result.best is not None
assert abs(result.best.params["x"] - 0.3) < 0.1, result.best
assert not set(HEAVY) & set(sys.modules)
print(f"Without torch: {result.best}")
