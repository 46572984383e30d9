"""Kernels with priors that suit any dimension, and learning them by MAP."""

import math
from dataclasses import dataclass
from typing import Any, Literal

import torch
from botorch.optim.core import scipy_minimize
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior
from torch import Tensor
from torch.nn import Module, Parameter

from crashbo.data import HybridData
from crashbo.errors import InputError, NumericalError
from crashbo.inference.base import condition_on_costs
from crashbo.inference.ep import EPOptions, EPResult, expectation_propagation, log_partition
from crashbo.models.threshold import ThresholdEstimate, ThresholdRule, estimate_threshold, make_labels

KernelName = Literal["matern32", "matern52", "rbf"]

# Noise of standardised costs: a variance of about exp(-6), anything from 1e-3 to 0.3 standard
# deviations is plausible a priori.
NOISE_PRIOR = (-6.0, 2.0)
_NOISE_RANGE = (1e-8, 10.0)
_ROUGH = EPOptions(tolerance=1e-4)  # enough while searching: log Z errs by the square of it


def make_kernel(dimension: int, kind: KernelName = "matern52") -> ScaleKernel:
    """Build our default ARD kernel for unit-cube inputs and standardised costs.

    Lengthscales have BoTorch's dimension-scaled log-normal prior; the output scale has a
    log-normal prior with mode 1 that lets crashed latents rise well above the seen costs.

    Args:
        dimension: number of inputs.
        kind: "matern32", "matern52" or "rbf".
    """
    if kind not in ("matern32", "matern52", "rbf"):
        raise InputError(f"`kind` must be 'matern32', 'matern52' or 'rbf'; got {kind!r}.")
    prior = LogNormalPrior(math.sqrt(2) + 0.5 * math.log(dimension), math.sqrt(3))
    constraint = GreaterThan(2.5e-2, transform=None, initial_value=0.5 * math.sqrt(dimension))
    options = {"ard_num_dims": dimension, "lengthscale_prior": prior, "lengthscale_constraint": constraint}
    base: Kernel
    base = RBFKernel(**options) if kind == "rbf" else MaternKernel(nu=1.5 if kind == "matern32" else 2.5, **options)
    kernel = ScaleKernel(
        base,
        outputscale_prior=LogNormalPrior(1.0, 1.0),
        outputscale_constraint=Interval(1e-3, 1e3, transform=None, initial_value=1.0),
    )
    return kernel.double()


def covariance(kernel: Kernel, X: Tensor, other: Tensor | None = None) -> Tensor:
    """Evaluate a gpytorch kernel densely, `... x m x n`, differentiable in everything.

    Scaled Matern and RBF kernels on all inputs are computed here directly, which saves most
    of the time of small problems; any other kernel evaluates itself.
    """
    base: Any = getattr(kernel, "base_kernel", None)
    if type(kernel) is not ScaleKernel or type(base) not in (MaternKernel, RBFKernel) or base.active_dims is not None:
        lazy = kernel(X) if other is None else kernel(X, other)
        dense: Tensor = lazy.to_dense()
        return dense
    lengthscale, scale = base.lengthscale.squeeze(-2), kernel.outputscale
    a = X / lengthscale
    b = a if other is None else other / lengthscale
    distance = torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")
    if type(base) is RBFKernel:
        return scale * torch.exp(-0.5 * distance.square())
    r = math.sqrt(2 * base.nu) * distance
    polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r.square() / 3}[base.nu]
    return scale * polynomial * torch.exp(-r)


@dataclass(frozen=True)
class Hypotheses:
    """What the model assumes besides the data, in the data's own units.

    Attributes:
        rule: how the threshold is found.
        noise_variance: of the costs, fixed or a starting point.
        learn_noise: whether `learn` may change it.
        label_width: probit width of the labels, 0 for Heaviside.
    """

    rule: ThresholdRule
    noise_variance: float
    learn_noise: bool = False
    label_width: float = 0.0


class _Evidence(Module):
    """Negative log posterior of kernel, noise and threshold, with warm-started EP inside."""

    def __init__(self, kernel: Kernel, data: HybridData, given: Hypotheses, first: ThresholdEstimate) -> None:
        super().__init__()
        self.kernel, self.data, self.given = kernel, data, given
        self.ep: EPResult = first.ep
        self.searched = given.rule.without_search(data.crashed) is None
        self.threshold = Parameter(data.X.new_tensor([first.threshold]), requires_grad=self.searched)
        log_noise = data.X.new_tensor(given.noise_variance).clamp(*_NOISE_RANGE).log()
        self.log_noise = Parameter(log_noise, requires_grad=given.learn_noise)

    def forward(self) -> Tensor:
        prior = covariance(self.kernel, self.data.X)
        noise = self.log_noise.exp() if self.given.learn_noise else prior.new_tensor(self.given.noise_variance)
        base = condition_on_costs(prior, self.data.observed, self.data.costs, noise)
        labels = make_labels(self.data.sign, self.threshold, self.given.label_width)
        self.ep = expectation_propagation(base.mean, base.covariance, labels, start=self.ep, options=_ROUGH)
        value = base.log_evidence + log_partition(base.mean, base.covariance, labels, self.ep)
        if self.searched:
            value = value + self.given.rule.log_density(self.threshold).sum()
        if self.given.learn_noise:
            value = value - 0.5 * ((self.log_noise - NOISE_PRIOR[0]) / NOISE_PRIOR[1]).square()
        for _, module, distribution, closure, _ in self.kernel.named_priors():
            value = value + distribution.log_prob(closure(module)).sum()
        return -value


def solve(
    kernel: Kernel, data: HybridData, given: Hypotheses, start: ThresholdEstimate | None = None
) -> ThresholdEstimate:
    """Find threshold and posterior for hyperparameters as they are."""
    with torch.no_grad():
        prior = covariance(kernel, data.X)
        base = condition_on_costs(prior, data.observed, data.costs, prior.new_tensor(given.noise_variance))
    return estimate_threshold(base, data.sign, given.rule, width=given.label_width, start=start)


def log_evidence(
    kernel: Kernel, data: HybridData, given: Hypotheses, threshold: Tensor, noise_variance: Tensor
) -> Tensor:
    """Log evidence, log alpha + log Z_EP, differentiable in kernel, threshold and noise.

    Args:
        kernel: gpytorch kernel; gradients reach its parameters.
        data: trials.
        given: rule and label width (its noise is not used).
        threshold, noise_variance: scalars.
    """
    base = condition_on_costs(covariance(kernel, data.X), data.observed, data.costs, noise_variance)
    labels = make_labels(data.sign, threshold, given.label_width)
    ep = expectation_propagation(base.mean, base.covariance, labels)
    return base.log_evidence + log_partition(base.mean, base.covariance, labels, ep)


def _bounds(kernel: Kernel) -> dict[str, tuple[float | None, float | None]]:
    """Bounds of the kernel parameters whose constraints no transform enforces."""
    found: dict[str, tuple[float | None, float | None]] = {}
    for name, _, constraint in kernel.named_parameters_and_constraints():
        if constraint is not None and not constraint.enforced:
            lower, upper = float(constraint.lower_bound), float(constraint.upper_bound)
            found[f"kernel.{name}"] = (lower, upper if math.isfinite(upper) else None)
    return found


def learn(
    kernel: Kernel,
    data: HybridData,
    given: Hypotheses,
    *,
    start: ThresholdEstimate | None = None,
    max_iterations: int = 100,
) -> float:
    """Set the kernel's parameters to their MAP values, in place, jointly with the threshold.

    L-BFGS-B on log evidence plus log priors; the kernel never ends worse than it began.

    Args:
        kernel: its parameters and registered priors take part.
        data: trials, costs standardised.
        given: noise (fixed or start) and threshold rule.
        start: threshold and sites to begin from.
        max_iterations: of the optimizer.

    Returns:
        The noise variance, learned or as given.
    """
    evidence = _Evidence(kernel, data, given, start or solve(kernel, data, given))
    parameters: dict[str, Tensor] = {n: value for n, value in evidence.named_parameters() if value.requires_grad}
    if not parameters:
        return given.noise_variance
    bounds = _bounds(kernel) | {"log_noise": (math.log(_NOISE_RANGE[0]), math.log(_NOISE_RANGE[1]))}
    best_loss = math.inf
    best = {name: value.detach().clone() for name, value in parameters.items()}

    def closure() -> tuple[Tensor, list[Tensor | None]]:
        nonlocal best_loss, best
        try:
            loss = evidence()
            gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
        except NumericalError:
            return data.X.new_tensor(1e12), [torch.zeros_like(p) for p in parameters.values()]
        loss = loss.detach()
        if float(loss) < best_loss and bool(evidence.ep.converged):
            best_loss = float(loss)
            best = {name: value.detach().clone() for name, value in parameters.items()}
        return loss, [
            g if g is not None else torch.zeros_like(p) for g, p in zip(gradients, parameters.values(), strict=True)
        ]

    scipy_minimize(closure, parameters, bounds=bounds, options={"maxiter": max_iterations})
    with torch.no_grad():
        for name, value in parameters.items():
            value.copy_(best[name])
    return float(evidence.log_noise.detach().exp()) if given.learn_noise else given.noise_variance
