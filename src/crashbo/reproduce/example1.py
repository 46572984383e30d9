"""The paper's experiments, one function each."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel

from crashbo.models.diagnostics import EPCheck, check_ep
from crashbo.models.gpcr import GPCR


@dataclass(frozen=True)
class Example1:
    """The paper's Example 1: three costs, two crashes, and what the model makes of them."""

    model: GPCR
    check: EPCheck

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        where = torch.tensor([[0.2], [0.6], [0.8]], dtype=torch.float64)
        with torch.no_grad():
            success = self.model.success_probability(where)
        return {
            "threshold": self.model.threshold,
            "log_truncation": self.model.log_truncation,
            "log_evidence": self.model.log_evidence,
            "converged": self.model.converged,
            "sweeps": self.model.ep.sweeps,
            "posterior_mean": self.model.ep.mean.tolist(),
            "posterior_std": self.model.ep.variance.sqrt().tolist(),
            "success_probability": dict(zip(("0.2", "0.6", "0.8"), success.tolist(), strict=True)),
            "ep_log_partition_error": self.check.log_partition_error,
        }

    def words(self) -> str:
        """What happened, for a person."""
        numbers = self.summary()
        success = numbers["success_probability"]
        return (
            "Example 1: three trials gave a cost (0.5 at x = 0.1, 2.0 at 0.3, 1.0 at 0.5), two crashed "
            "(x = 0.7 and 0.9). Nobody said what a crash costs.\n"
            f"The model learned that trials crash above a cost of {numbers['threshold']:.3f}, just over the worst "
            "cost seen.\n"
            f"It expects {numbers['posterior_mean'][3]:.2f} ± {numbers['posterior_std'][3]:.2f} at x = 0.7, and a "
            f"trial to succeed with probability {success['0.2']:.0%} at x = 0.2, {success['0.6']:.0%} at x = 0.6 and "
            f"{success['0.8']:.0%} at x = 0.8.\n"
            f"How good is the approximation? {self.check}"
        )

    def draw(self, folder: Path) -> list[Path]:
        """Write the pictures as PNG and return their paths."""
        from crashbo.plots import plot_posterior, plot_predictive

        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "example1.png", folder / "example1-predictive.png"]
        plot_posterior(self.model).savefig(paths[0])
        plot_predictive(self.model).savefig(paths[1])
        return paths


def example1(*, seed: int = 0) -> Example1:
    """Fit Example 1 with the paper's kernel and a maximum likelihood threshold."""
    kernel = ScaleKernel(MaternKernel(nu=1.5)).double()
    kernel.outputscale = 0.5
    kernel.base_kernel.lengthscale = 0.2
    model = GPCR(
        torch.tensor([[0.1], [0.3], [0.5], [0.7], [0.9]], dtype=torch.float64),
        torch.tensor([[0.5], [2.0], [1.0], [0.0], [0.0]], dtype=torch.float64),
        torch.tensor([False, False, False, True, True]),
        noise_std=0.02,
        covar_module=kernel,
        threshold_prior=None,
    )
    return Example1(model, check_ep(model, seed=seed))
