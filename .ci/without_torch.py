"""Check that torch is not installed here, that every module does without it, and that a whole run does too."""

import pkgutil
import sys
from importlib import import_module
from importlib.util import find_spec

import crashbo

HEAVY = ("torch", "gpytorch", "botorch")
ADAPTERS = "crashbo.adapters."  # each imports its host, which may be missing; Optuna is always there


def rollout(params: dict[str, float]) -> float:
    if params["x"] > 0.7:
        raise crashbo.Crash("too far")
    return (params["x"] - 0.3) ** 2


found = [name for name in HEAVY if find_spec(name)]
assert not found, f"this environment must not have {', '.join(found)}"
modules = [one.name for one in pkgutil.walk_packages(crashbo.__path__, "crashbo.", onerror=lambda name: None)]
core = [name for name in modules if not name.startswith(ADAPTERS) or name.startswith(f"{ADAPTERS}optuna")]
for name in core:
    import_module(name)
result = crashbo.minimize(rollout, {"x": (0.0, 1.0)}, n_trials=10, progress=False)
assert result.best is not None
assert abs(result.best.params["x"] - 0.3) < 0.1, result.best
assert not set(HEAVY) & set(sys.modules)
print(f"Without torch: {len(core)} of {len(modules)} modules are imported; {result.best}")
