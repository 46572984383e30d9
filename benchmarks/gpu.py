"""The model and a suggestion from it on a CUDA device, against the same on the processor.

    python benchmarks/gpu.py [--sizes 500 2000] [--json]

Fit: the threshold is searched on the processor in both cases, hyperparameters given. Predictions run on the device.
Ask: samples of the minimum over 4096 points, then mES maximised by BoTorch (8 restarts, 512 raw samples).
Needs a CUDA device; results of both devices are compared.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable

import torch
from botorch.optim import optimize_acqf
from torch import Tensor

from crashbo.adapters.botorch import GPCR, MinValueEntropySearch, make_kernel

DIMENSION = 6


def sobol(count: int, dimension: int, seed: int) -> Tensor:
    """Scrambled Sobol points, `count x dimension`."""
    engine = torch.quasirandom.SobolEngine(dimension, scramble=True, seed=seed)
    return engine.draw(count, dtype=torch.float64)


def trials(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Points, costs and labels: the highest third of a smooth function crashes."""
    X = sobol(n, DIMENSION, 0)
    cost = (X - 0.3).square().sum(-1) + 0.3 * torch.sin(6 * X).sum(-1)
    noisy = cost + 0.01 * torch.randn(n, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    return X, noisy.unsqueeze(-1), cost > cost.quantile(0.67)


def timed(job: Callable[[], object], device: str) -> tuple[float, object]:
    """Seconds of a job, and what it gave; the device has finished when time is taken."""
    if device == "cuda":
        torch.cuda.synchronize()
    begin = time.perf_counter()
    found = job()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, found


def make_model(n: int, device: str) -> GPCR:
    """The model of `n` trials."""
    kernel = make_kernel(DIMENSION, "matern52").to(device)
    kernel.base_kernel.lengthscale = 0.7
    return GPCR(*(part.to(device) for part in trials(n)), covar_module=kernel, noise_std=0.05)


def ask(model: GPCR, minima: Tensor, device: str) -> Tensor:
    """The point that mES suggests."""
    bounds = torch.tensor([[0.0] * DIMENSION, [1.0] * DIMENSION], dtype=torch.float64, device=device)
    score = MinValueEntropySearch(model, minima)
    torch.manual_seed(0)
    point, _ = optimize_acqf(score, bounds, q=1, num_restarts=8, raw_samples=512)
    return point


def look(model: GPCR, device: str) -> Tensor:
    """Mean, variance and success probability at 512 points, `3 x 512`, on the processor."""
    X = sobol(512, DIMENSION, 1).to(device)
    with torch.no_grad():
        posterior = model.posterior(X)
        rows = [posterior.mean.squeeze(-1), posterior.variance.squeeze(-1), model.success_probability(X)]
    return torch.stack(rows).cpu()


def measure(n: int, device: str, minima: Tensor | None) -> tuple[dict[str, float], dict[str, Tensor]]:
    """Times and results on one device; `minima` are used instead of samples of its own if given."""
    make_model(50, device)  # libraries are loaded and kernels compiled before time is taken
    fitting, model = timed(lambda: make_model(n, device), device)
    assert isinstance(model, GPCR)
    if minima is None:
        with torch.no_grad():
            torch.manual_seed(0)
            paths = model.posterior(sobol(4096, DIMENSION, 2).to(device)).rsample(torch.Size([10]))
        minima = paths.squeeze(-1).amin(-1).cpu()
    ask(model, minima.to(device), device)
    asking, point = timed(lambda: ask(model, minima.to(device), device), device)
    assert isinstance(point, Tensor)
    seen = {"look": look(model, device), "point": point.cpu(), "minima": minima}
    score = MinValueEntropySearch(model, minima.to(device))
    with torch.no_grad():
        seen["score"] = score(sobol(512, DIMENSION, 1).to(device).unsqueeze(-2)).cpu()
    return {"fit_seconds": fitting, "ask_seconds": asking, "threshold": model.threshold}, seen


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[500, 2000])
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no CUDA device here: this benchmark needs one.")
    warnings.simplefilter("ignore")
    rows = []
    for n in arguments.sizes:
        cpu, seen = measure(n, "cpu", None)
        cuda, there = measure(n, "cuda", seen["minima"])
        difference = {
            "threshold": abs(cuda["threshold"] - cpu["threshold"]),
            "predictions": float((there["look"] - seen["look"]).abs().max()),
            "score": float((there["score"] - seen["score"]).abs().max()),
        }
        rows.append({"n": n, "cpu": cpu, "cuda": cuda, "largest_difference": difference})
        if not arguments.json:
            print(
                f"n = {n}: fit {cpu['fit_seconds']:.2f} s on the processor, {cuda['fit_seconds']:.2f} s on the device;"
            )
            print(f"  ask {cpu['ask_seconds']:.2f} s and {cuda['ask_seconds']:.2f} s; largest differences {difference}")
    if arguments.json:
        name, threads = torch.cuda.get_device_name(), torch.get_num_threads()
        print(json.dumps({"device": name, "threads": threads, "torch": torch.__version__, "rows": rows}, indent=1))


if __name__ == "__main__":
    main()
