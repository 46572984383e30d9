"""What the model costs, as ratios against a peer in the same run (machines are noisy).

python benchmarks/model.py [--json]
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from botorch.models import SingleTaskGP
from scipy.linalg import cholesky

import crashbo
from crashbo.model.ep import Labels
from crashbo.model.inference import Conditioned, condition_on_values, solve
from crashbo.model.kernel import Matern32, squared_distance
from crashbo.model.threshold import ThresholdRule, estimate_threshold


def hybrid(
    n: int, d: int, *, lengthscale: float, seed: int = 0, labels_only: bool = False
) -> tuple[Conditioned, np.ndarray]:
    """A random function over random points; the highest 40 % of it crash; costs seen unless `labels_only`."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, d))
    prior = Matern32().correlation(squared_distance(X, X, np.full(d, lengthscale)))
    f = cholesky(prior + 1e-8 * np.eye(n), lower=True) @ rng.standard_normal(n)
    stable = f <= np.quantile(f, 0.6)
    observed = np.flatnonzero(stable)[: 0 if labels_only else n]
    index = np.concatenate([observed, np.arange(n)])
    given = condition_on_values(prior[np.ix_(index, index)][None], f[observed], np.full((1, len(observed)), 0.02**2))
    return given, np.where(stable, 1.0, -1.0)


def interleaved(first: Callable[[], object], second: Callable[[], object], repeats: int) -> tuple[float, float]:
    """Median seconds of both, measured in turn so that noise hits both alike."""
    first(), second()
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for job, record in zip((first, second), times, strict=True):
            begin = time.perf_counter()
            job()
            record.append(time.perf_counter() - begin)
    return statistics.median(times[0]), statistics.median(times[1])


def ep_against_cholesky(n: int, d: int, lengthscale: float, *, labels_only: bool = False) -> dict[str, float]:
    given, sign = hybrid(n, d, lengthscale=lengthscale, labels_only=labels_only)
    labels = Labels(sign, 0.3, 0.0)
    spd = given.covariance[0] + np.eye(n)
    sweeps = int(solve(given, labels).ep.sweeps[0])
    ours, peer = interleaved(lambda: solve(given, labels), lambda: cholesky(spd, lower=True), 7)
    return {"ep_s": ours, "cholesky_s": peer, "ratio": ours / peer, "sweeps": sweeps}


def threshold_against_ep(n: int) -> dict[str, float]:
    given, sign = hybrid(n, 2, lengthscale=0.3)
    labels = Labels(sign, 0.3, 0.0)
    ours, peer = interleaved(lambda: estimate_threshold(given, sign, ThresholdRule()), lambda: solve(given, labels), 15)
    return {"threshold_s": ours, "ep_s": peer, "ratio": ours / peer}


def prediction_against_gpytorch(n: int, points: int) -> dict[str, float]:
    X, test = torch.rand(n, 4, dtype=torch.float64), torch.rand(points, 4, dtype=torch.float64)
    Y = X.sin().sum(-1, keepdim=True)
    model = crashbo.GPCR(X, Y, (Y.quantile(0.7) < Y).squeeze(-1), covar_module=crashbo.make_kernel(4), noise_std=0.05)
    peer_model = SingleTaskGP(
        X, Y, torch.full_like(Y, 0.05**2), covar_module=crashbo.make_kernel(4), outcome_transform=None
    )

    def predict(m: SingleTaskGP) -> torch.Tensor:
        with torch.no_grad():
            posterior = m.posterior(test)
            return posterior.mean + posterior.variance

    ours, peer = interleaved(lambda: predict(model), lambda: predict(peer_model), 15)
    return {"gpcr_s": ours, "gpytorch_s": peer, "ratio": ours / peer}


def peak_memory(n: int) -> float:
    """Peak memory in MB of one EP fit in a process of its own, beyond its start."""
    script = (
        f"import sys; sys.path.insert(0, {sys.path[0]!r}); import model, resource;"
        f"model.hybrid(50, 2, lengthscale=0.3); given, sign = model.hybrid({n}, 2, lengthscale=0.3);"
        "model.solve(given, model.Labels(sign, 0.3, 0.0));"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    base = int(subprocess.check_output([sys.executable, "-c", script.replace(f"hybrid({n}", "hybrid(50")]))
    return (int(subprocess.check_output([sys.executable, "-c", script])) - base) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    memory = {n: peak_memory(n) for n in (1000, 2000, 4000)}
    figures = {
        "EP fit, n = 1000, d = 6, in Cholesky factorisations (limit 60)": ep_against_cholesky(1000, 6, 1.0),
        "EP fit, n = 1000, d = 2, in Cholesky factorisations (limit 60)": ep_against_cholesky(1000, 2, 0.3),
        "The same without any cost, all 1000 labels at work (no limit set)": ep_against_cholesky(
            1000, 2, 0.3, labels_only=True
        ),
        "Threshold estimate, n = 50, in EP fits (limit 10)": threshold_against_ep(50),
        "Prediction at 1000 points, n = 200, in gpytorch predictions (limit 1)": prediction_against_gpytorch(200, 1000),
        "Peak memory of one EP fit, in n x n matrices": {
            f"n = {n}": megabytes / (8 * n * n / 2**20) for n, megabytes in memory.items()
        },
    }
    if arguments.json:
        print(json.dumps(figures, indent=2))
        return
    for name, row in figures.items():
        print(f"{name}\n    " + ", ".join(f"{key} {value:.4g}" for key, value in row.items()))
    print(f"\n{torch.get_num_threads()} threads, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024} MB")


if __name__ == "__main__":
    main()
