"""What a suggestion costs, beside BoTorch's own pipeline for the same job in the same run.

    python benchmarks/ask.py [--json]

The peer needs the extra `botorch`; without it CrashBO is timed alone. It fits one SingleTaskGP per output by
maximum marginal likelihood, builds qMaxValueEntropy with 10 samples and maximises it with 8 restarts and 256 raw
samples. It sees a cost and constraint values everywhere, which CrashBO does not.
"""

import argparse
import json
import statistics
import time
import warnings
from importlib import util

import numpy as np

import crashbo

HAS_PEER = util.find_spec("botorch") is not None


def truth(X: np.ndarray, constraints: int) -> tuple[np.ndarray, np.ndarray]:
    """A smooth cost, and constraints g <= 0 that each hold on most of the cube."""
    cost = np.square(X - 0.6).sum(-1) + 0.3 * np.sin(6 * X).sum(-1)
    g = np.stack([np.cos(3 * X + k).sum(-1) - 0.6 * X.shape[-1] ** 0.5 for k in range(constraints)], -1)
    return cost, g


def ours(X: np.ndarray, cost: np.ndarray, g: np.ndarray) -> float:
    """Seconds of one ask after all trials were told."""
    names = [f"g{k}" for k in range(g.shape[-1])]
    space = crashbo.Space({f"x{i}": (0.0, 1.0) for i in range(X.shape[-1])})
    optimizer = crashbo.Optimizer(space, constraints=[crashbo.Constraint(name) for name in names])
    for x, y, values in zip(X, cost, g, strict=True):
        seen = {name: crashbo.VIOLATED if v > 0 else float(v) for name, v in zip(names, values, strict=True)}
        optimizer.tell(dict(zip(space.names, x.tolist(), strict=True)), float(y), **seen)
    begin = time.perf_counter()
    optimizer.ask()
    return time.perf_counter() - begin


def botorch(X: np.ndarray, cost: np.ndarray, g: np.ndarray) -> float:
    """Seconds of BoTorch's pipeline."""
    import torch
    from botorch.acquisition.max_value_entropy_search import qMaxValueEntropy
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.optim import optimize_acqf
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.manual_seed(0)
    inputs = torch.from_numpy(X)
    outputs = [torch.from_numpy(-cost), *torch.from_numpy(g).unbind(-1)]
    begin = time.perf_counter()
    models = []
    for output in outputs:
        model = SingleTaskGP(inputs, output.unsqueeze(-1))
        fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
        models.append(model)
    bounds = torch.stack([torch.zeros(X.shape[-1]), torch.ones(X.shape[-1])]).double()
    candidates = torch.rand(1000, X.shape[-1], dtype=torch.float64)
    acquisition = qMaxValueEntropy(models[0], candidates, num_mv_samples=10)
    optimize_acqf(acquisition, bounds, q=1, num_restarts=8, raw_samples=256)
    return time.perf_counter() - begin


def compare(n: int, d: int, constraints: int, repeats: int) -> dict[str, float]:
    """Median seconds of both, in turn."""
    jobs = {"crashbo": ours} | ({"botorch": botorch} if HAS_PEER else {})
    times: dict[str, list[float]] = {name: [] for name in jobs}
    for repeat in range(repeats + 1):
        X = np.random.default_rng(repeat).random((n, d))
        data = (X, *truth(X, constraints))
        seconds = {name: job(*data) for name, job in jobs.items()}
        for name in jobs if repeat else ():  # the first round warms up
            times[name].append(seconds[name])
    medians = {name: statistics.median(values) for name, values in times.items()}
    ratio = {"ratio": medians["crashbo"] / medians["botorch"]} if HAS_PEER else {}
    return {"n": n, "d": d, "constraints": constraints, **{f"{k}_s": v for k, v in medians.items()}, **ratio}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [compare(30, 2, 1, 5), compare(100, 6, 3, 3)]
    rows += [compare(n, 2, 1, 3) for n in (10, 50, 100, 200, 300)]
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    peer = f"{'BoTorch s':>11}{'ratio':>8}" if HAS_PEER else ""
    print(f"{'n':>5}{'d':>4}{'constraints':>13}{'CrashBO s':>11}{peer}")
    for row in rows:
        peer = f"{row['botorch_s']:11.3f}{row['ratio']:8.2f}" if HAS_PEER else ""
        print(f"{row['n']:5}{row['d']:4}{row['constraints']:13}{row['crashbo_s']:11.3f}{peer}")


if __name__ == "__main__":
    main()
