"""gpytorch kernels with priors that suit any dimension, and their parameters as one vector."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior, Prior
from torch import Tensor
from torch.autograd.function import once_differentiable

from crashbo.adapters.botorch.data import to_numpy
from crashbo.errors import InputError
from crashbo.model.map import log_lengthscale_prior
from crashbo.model.numbers import LENGTHSCALE_RANGE, NUMBERS, VARIANCE_RANGE
from crashbo.problem.arrays import Array
from crashbo.problem.options import KERNELS, KernelName


class _LogPrior(torch.autograd.Function):
    """`log_lengthscale_prior` of log lengthscales, `... x d` to `...`, with its gradient."""

    @staticmethod
    def forward(ctx: Any, logs: Tensor) -> Tensor:
        value, slope = log_lengthscale_prior(to_numpy(logs), NUMBERS)
        ctx.save_for_backward(torch.as_tensor(slope).to(logs))
        return torch.as_tensor(value).to(logs)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradients[0].unsqueeze(-1) * slope


class LengthscalePrior(Prior):
    """`log_lengthscale_prior` as a gpytorch prior of a kernel's lengthscales, `... x 1 x d`."""

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__(validate_args=False)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density of the log lengthscales up to a constant, `... x 1`."""
        value: Tensor = _LogPrior.apply(x.log())
        return value


def base_kernel(kind: KernelName, **options: Any) -> Kernel:
    """The gpytorch kernel of a name, of variance 1."""
    if kind == "rbf":
        return RBFKernel(**options)
    return MaternKernel(nu=1.5 if kind == "matern32" else 2.5, **options)


def make_kernel(dimension: int, kind: KernelName = "matern52") -> ScaleKernel:
    """Build the default ARD kernel for inputs in the unit cube and standardised costs.

    The prior of the lengthscales (`log_lengthscale_prior`) grows with the dimension. The prior of the output scale is
    log-normal, so that the latent cost of a crash can be well above the costs seen.

    Args:
        dimension: number of inputs.
        kind: "matern32", "matern52" or "rbf".
    """
    if kind not in KERNELS:
        raise InputError(f"`kind` must be 'matern32', 'matern52' or 'rbf'; got {kind!r}.")
    start = 0.5 * math.sqrt(dimension)
    options: dict[str, Any] = {
        "ard_num_dims": dimension,
        "lengthscale_prior": LengthscalePrior(),
        "lengthscale_constraint": GreaterThan(LENGTHSCALE_RANGE[0], transform=None, initial_value=start),
    }
    base = base_kernel(kind, **options)
    centre, spread = NUMBERS.variance
    kernel = ScaleKernel(
        base,
        outputscale_prior=LogNormalPrior(centre + spread**2, spread),  # its mode in logs is the centre
        outputscale_constraint=Interval(*VARIANCE_RANGE, transform=None, initial_value=1.0),
    )
    return kernel.double()


def covariance(kernel: Kernel, X: Tensor, other: Tensor | None = None) -> Tensor:
    """Evaluate a gpytorch kernel densely, `... x m x n`, differentiable in everything."""
    dense: Tensor = (kernel(X) if other is None else kernel(X, other)).to_dense()
    return dense


@dataclass(frozen=True)
class _Entry:
    """One parameter of a kernel; in logs where its constraint is a positive range that no transform enforces."""

    name: str
    parameter: Tensor
    bounds: tuple[float, float]
    logs: bool


class Coordinates:
    """The free parameters of a kernel as one vector."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.entries: list[_Entry] = []
        for name, parameter, constraint in kernel.named_parameters_and_constraints():
            if not parameter.requires_grad:
                continue
            low, high = -math.inf, math.inf
            if constraint is not None and not constraint.enforced:
                low, high = float(constraint.lower_bound), float(constraint.upper_bound)
            logs = low > 0
            bounds = (math.log(low), min(math.log(high), math.log(LENGTHSCALE_RANGE[1]))) if logs else (low, high)
            self.entries.append(_Entry(name, parameter, bounds, logs))

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """Of every number."""
        return [one.bounds for one in self.entries for _ in range(one.parameter.numel())]

    def read(self) -> Array:
        """The vector."""
        parts = [to_numpy(one.parameter).ravel() for one in self.entries]
        parts = [np.log(part) if one.logs else part for one, part in zip(self.entries, parts, strict=True)]
        return np.concatenate([np.zeros(0), *parts])

    def write(self, theta: Array) -> None:
        """Set the parameters."""
        with torch.no_grad():
            for one, part in zip(self.entries, self._split(theta), strict=True):
                value = torch.as_tensor(np.exp(part) if one.logs else part)
                one.parameter.copy_(value.reshape(one.parameter.shape))

    def gradient(self, value: Tensor) -> Array:
        """Of a scalar that depends on the parameters, by the vector."""
        leaves = [one.parameter for one in self.entries]
        slopes: Sequence[Tensor] = torch.autograd.grad(value, leaves, materialize_grads=True)
        parts = [
            to_numpy(slope * one.parameter if one.logs else slope).ravel()
            for one, slope in zip(self.entries, slopes, strict=True)
        ]
        return np.concatenate([np.zeros(0), *parts])

    def smoother(self, theta: Array) -> Array | None:
        """A second place to look from: lengthscales twice, the scale ten times as large; None where these are not logs.

        The evidence has several modes, and this one is the other likely one.
        """
        steps = [
            np.full(
                one.parameter.numel(),
                math.log(2.0) if "lengthscale" in one.name else math.log(10.0) if "outputscale" in one.name else 0.0,
            )
            for one in self.entries
        ]
        return theta + np.concatenate(steps) if self.entries and all(one.logs for one in self.entries) else None

    def log_prior(self) -> Tensor:
        """Of the priors that are registered on the kernel."""
        total = torch.zeros((), dtype=torch.float64)
        for _, module, distribution, closure, _ in self.kernel.named_priors():
            total = total + distribution.log_prob(closure(module)).sum().to(total)
        return total

    def _split(self, theta: Array) -> list[Array]:
        sizes = np.cumsum([one.parameter.numel() for one in self.entries])
        return np.split(theta, sizes[:-1]) if len(sizes) else []
