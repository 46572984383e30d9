"""The paper's Example 1: three costs, two crashes, and what the model makes of them."""

import math
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import multivariate_normal

from crashbo.model.block import Block
from crashbo.model.values import fixed_values
from crashbo.problem.options import FixedModel
from crashbo.research.reproduce.predictive import predictive_density
from crashbo.search.paper.model import GPCR, fit

_POINTS, _VALUES = 141, 161


@dataclass(frozen=True)
class Example1:
    """Example 1 with a maximum likelihood threshold.

    Attributes:
        model: the GPCR.
    """

    model: GPCR

    @cached_property
    def log_truncation_error(self) -> float:
        """EP's log Z less the exact one, by numerical integration over the orthant that the labels allow."""
        given, sign = self.model.posterior.given, self.model.posterior.rows.sign
        bound = sign * (self.model.threshold / self.model.deviation - given.mean[0])
        signed = sign[:, None] * given.covariance[0] * sign
        rng = np.random.default_rng(0)
        exact = multivariate_normal(cov=signed, seed=rng, abseps=1e-9, releps=1e-6, maxpts=2_000_000).cdf(bound)
        return float(self.model.posterior.ep.log_partition[0]) - math.log(exact)

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        ep, unit = self.model.posterior.ep, self.model.deviation
        where = np.array([[0.2], [0.6], [0.8]])
        success = self.model.success(where)
        limit = self.model.limit()
        assert limit is not None
        return {
            "name": "example1",
            "threshold": limit.value,
            "threshold_deviation": limit.deviation,
            "log_truncation": float(ep.log_partition[0]),
            "log_evidence": float(self.model.posterior.log_evidence[0]),
            "converged": bool(ep.converged[0]),
            "sweeps": int(ep.sweeps[0]),
            "posterior_mean": (unit * ep.mean[0]).tolist(),
            "posterior_std": (unit * np.sqrt(ep.variance[0])).tolist(),
            "success_probability": dict(zip(("0.2", "0.6", "0.8"), success.tolist(), strict=True)),
            "log_truncation_error": self.log_truncation_error,
        }

    def words(self) -> str:
        """What happened, for a person."""
        numbers = self.summary()
        success = numbers["success_probability"]
        return (
            "Example 1: three trials gave a cost (0.5 at x = 0.1, 2.0 at 0.3, 1.0 at 0.5), two crashed "
            "(x = 0.7 and 0.9). Nobody said what a crash costs.\n"
            f"The model learned that trials crash above a cost of {numbers['threshold']:.4f}, just over the worst "
            f"cost seen (maximum likelihood; deviation {numbers['threshold_deviation']:.2f}; the paper: 2.03).\n"
            f"It expects {numbers['posterior_mean'][3]:.2f} ± {numbers['posterior_std'][3]:.2f} at x = 0.7, and a "
            f"trial to succeed with probability {success['0.2']:.0%} at x = 0.2, {success['0.6']:.0%} at x = 0.6 and "
            f"{success['0.8']:.0%} at x = 0.8.\n"
            f"EP's log Z is {numbers['log_truncation']:.4f}, off by {numbers['log_truncation_error']:+.4f}."
        )

    def draw(self, folder: Path) -> list[Path]:
        """Write the pictures as PNG and return their paths."""
        from crashbo.show.gpcr import plot_posterior, plot_predictive

        folder.mkdir(parents=True, exist_ok=True)
        paths = [folder / "example1.png", folder / "example1-predictive.png"]
        curves = self.curves()
        plot_posterior(curves).savefig(paths[0])
        plot_predictive(curves, *self.predictive()).savefig(paths[1])
        return paths

    def curves(self) -> Any:
        """The model along x, as `crashbo.show.gpcr.Curves`."""
        from crashbo.show.gpcr import Curves

        x, block = np.linspace(0, 1, _POINTS), self.model.models.block
        mean, deviation = self.model.moments(x[:, None])
        success = self.model.success(x[:, None])
        seen, crashed = block.X[block.value_point, 0], block.X[block.above, 0]
        return Curves(x, mean, deviation, success, self.model.threshold, seen, block.values, crashed)

    def predictive(self) -> tuple[Any, Any]:
        """An even grid of costs, and the density p(f*) on it at every point of the curves."""
        curves = self.curves()
        low = float((curves.mean - 4 * curves.deviation).min())
        costs = np.linspace(low, float((curves.mean + 5 * curves.deviation).max()), _VALUES)
        return costs, predictive_density(self.model, curves.x[:, None], costs)


def example1() -> Example1:
    """Fit Example 1 with the paper's kernel and a maximum likelihood threshold."""
    X, seen, crashed = np.array([[0.1], [0.3], [0.5], [0.7], [0.9]]), np.arange(3), np.array([3, 4])
    fixed = FixedModel(lengthscale=0.2, variance=0.5, noise_std=0.02, threshold_prior=None)
    values, margins = np.array([0.5, 2.0, 1.0]), np.zeros(2, dtype=np.int64)
    block = Block(X, seen, values, seen, crashed, margins, self_limited=True, fixed=fixed)
    return Example1(fit(block, fixed_values(block)))
