"""Kernels with priors that suit any dimension, and learning them by MAP."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch
from botorch.optim.core import scipy_minimize
from gpytorch.constraints import GreaterThan, Interval
from gpytorch.kernels import Kernel, MaternKernel, RBFKernel, ScaleKernel
from gpytorch.priors import LogNormalPrior, Prior
from numpy.typing import NDArray
from scipy.optimize import minimize
from torch import Tensor
from torch.nn import Module, Parameter

from crashbo.data import HybridData
from crashbo.errors import InputError, NumericalError
from crashbo.inference.base import condition_on_costs
from crashbo.inference.ep import SMALL, EPOptions, EPResult, expectation_propagation, log_partition
from crashbo.inference.evidence_small import Hyperparameters, SmallEvidence
from crashbo.models.threshold import ThresholdEstimate, ThresholdRule, estimate_threshold, make_labels

Array = NDArray[np.float64]
KernelName = Literal["matern32", "matern52", "rbf"]

# Noise of standardised costs: a variance of about exp(-6), anything from 1e-3 to 0.3 standard
# deviations is plausible a priori.
NOISE_PRIOR = (-6.0, 2.0)
NOISE_RANGE = (1e-8, 10.0)
SHORTEST = 2.5e-2  # lengthscale


class _Lengthscales(NamedTuple):
    centre: float
    common: float
    own: float


# Of log lengthscales less log(d) / 2: about 0.3 of the cube in one dimension, within a factor of three;
# lengthscales of one kernel differ by a factor of two or so.
LENGTHSCALE_PRIOR = _Lengthscales(centre=-1.2, common=1.2, own=0.5)
SCALE_RANGE = (1e-3, 1e3)
_ROUGH = EPOptions(tolerance=1e-4, max_sweeps=50)  # enough while searching: log Z errs by the square of it


def log_lengthscale_prior(logs: Array) -> tuple[float, Array]:
    """Log density of log lengthscales, up to a constant, and its gradient.

    All share one unknown size, each deviates a little: with few trials the kernel stays close to
    isotropic, where independent priors would let one lucky axis explain everything.

    Math: log l ~ N(centre + log(d) / 2, common^2 1 1' + own^2 I)

    Args:
        logs: `d`.
    """
    d = len(logs)
    gap = logs - LENGTHSCALE_PRIOR.centre - 0.5 * math.log(d)
    own, common = LENGTHSCALE_PRIOR.own**2, LENGTHSCALE_PRIOR.common**2
    pull = gap / own - gap.sum() * common / (own * (own + d * common))
    return -0.5 * float(gap @ pull), -pull


class LengthscalePrior(Prior):
    """`log_lengthscale_prior` as a gpytorch prior of a kernel's lengthscales, `... x 1 x d`."""

    arg_constraints: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        super().__init__(validate_args=False)

    def log_prob(self, x: Tensor) -> Tensor:
        """Log density of the log lengthscales up to a constant, `... x 1`."""
        d = x.shape[-1]
        gap = x.log() - LENGTHSCALE_PRIOR.centre - 0.5 * math.log(d)
        own, common = LENGTHSCALE_PRIOR.own**2, LENGTHSCALE_PRIOR.common**2
        shared = gap.sum(-1).square() * common / (own * (own + d * common))
        return -0.5 * (gap.square().sum(-1) / own - shared)


def make_kernel(dimension: int, kind: KernelName = "matern52") -> ScaleKernel:
    """Build our default ARD kernel for unit-cube inputs and standardised costs.

    Lengthscales have the prior of `log_lengthscale_prior`, which grows with the dimension; the
    output scale has a log-normal prior with mode 1 that lets crashed latents rise well above the
    seen costs.

    Args:
        dimension: number of inputs.
        kind: "matern32", "matern52" or "rbf".
    """
    if kind not in ("matern32", "matern52", "rbf"):
        raise InputError(f"`kind` must be 'matern32', 'matern52' or 'rbf'; got {kind!r}.")
    constraint = GreaterThan(SHORTEST, transform=None, initial_value=0.5 * math.sqrt(dimension))
    options: dict[str, Any] = {"ard_num_dims": dimension, "lengthscale_prior": LengthscalePrior()}
    options["lengthscale_constraint"] = constraint
    base: Kernel
    base = RBFKernel(**options) if kind == "rbf" else MaternKernel(nu=1.5 if kind == "matern32" else 2.5, **options)
    kernel = ScaleKernel(
        base,
        outputscale_prior=LogNormalPrior(1.0, 1.0),
        outputscale_constraint=Interval(*SCALE_RANGE, transform=None, initial_value=1.0),
    )
    return kernel.double()


def is_plain(kernel: Kernel) -> bool:
    """Whether a kernel is a scaled Matern or RBF kernel on all inputs."""
    base: Any = getattr(kernel, "base_kernel", None)
    plain = type(kernel) is ScaleKernel and type(base) in (MaternKernel, RBFKernel)
    return plain and base.active_dims is None and kernel.active_dims is None


def covariance(kernel: Kernel, X: Tensor, other: Tensor | None = None) -> Tensor:
    """Evaluate a gpytorch kernel densely, `... x m x n`, differentiable in everything.

    Scaled Matern and RBF kernels on all inputs are computed here directly, which saves most
    of the time of small problems; any other kernel evaluates itself.
    """
    if not is_plain(kernel):
        lazy = kernel(X) if other is None else kernel(X, other)
        dense: Tensor = lazy.to_dense()
        return dense
    base = kernel.base_kernel
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
        log_noise = data.X.new_tensor(given.noise_variance).clamp(*NOISE_RANGE).log()
        self.log_noise = Parameter(log_noise, requires_grad=given.learn_noise)

    def forward(self) -> Tensor:
        prior = covariance(self.kernel, self.data.X)
        noise = self.log_noise.exp() if self.given.learn_noise else prior.new_tensor(self.given.noise_variance)
        base = condition_on_costs(prior, self.data.observed, self.data.costs, noise)
        labels = make_labels(self.data.sign, self.threshold, self.given.label_width, base)
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
    labels = make_labels(data.sign, threshold, given.label_width, base)
    ep = expectation_propagation(base.mean, base.covariance, labels)
    return base.log_evidence + log_partition(base.mean, base.covariance, labels, ep)


def _is_small(kernel: Kernel, data: HybridData) -> bool:
    """Whether the NumPy twin can learn this: a kernel as `make_kernel` builds it, few trials, on the CPU."""
    base: Any = getattr(kernel, "base_kernel", None)
    return (
        is_plain(kernel)
        and type(getattr(base, "lengthscale_prior", None)) is LengthscalePrior
        and type(getattr(kernel, "outputscale_prior", None)) is LogNormalPrior
        and all(parameter.requires_grad for parameter in kernel.parameters())
        and not base.raw_lengthscale_constraint.enforced
        and not kernel.raw_outputscale_constraint.enforced
        and base.lengthscale.numel() == data.X.shape[-1]
        and getattr(base, "nu", 2.5) in (1.5, 2.5)
        and len(data.X) <= SMALL
        and data.X.device.type == "cpu"
    )


def _learn_small(
    kernel: Kernel,
    data: HybridData,
    given: Hypotheses,
    first: ThresholdEstimate,
    max_iterations: int,
    *,
    nearby: bool,
) -> float:
    """`learn` for kernels of `make_kernel`, over log lengthscales, log scale, log noise, threshold."""
    base = kernel.base_kernel
    evidence = SmallEvidence(
        data.X.numpy(),
        data.sign.numpy(),
        data.observed.numpy(),
        data.costs.numpy(),
        nu=math.inf if isinstance(base, RBFKernel) else base.nu,
        width=given.label_width,
    )
    d = data.X.shape[-1]
    searched = given.rule.without_search(data.crashed) is None
    scale_mean, scale_sd = float(kernel.outputscale_prior.loc), float(kernel.outputscale_prior.scale)
    best: tuple[float, Array] = (math.inf, np.zeros(0))

    def negative(theta: Array) -> tuple[float, Array]:
        nonlocal best
        logs = theta[: d + 1]
        noise = math.exp(theta[d + 1]) if given.learn_noise else given.noise_variance
        threshold = float(theta[d + 2]) if searched else first.threshold
        try:
            found = evidence(Hyperparameters(np.exp(logs[:d]), math.exp(logs[d]), noise, threshold))
        except NumericalError:
            return 1e12, np.zeros_like(theta)
        prior, pull = log_lengthscale_prior(logs[:d])
        z_scale = (logs[d] - scale_mean) / scale_sd
        value = found.value + prior - 0.5 * z_scale**2 - logs[d]
        gradient = np.zeros_like(theta)
        gradient[:d] = found.log_lengthscale + pull
        gradient[d] = found.log_outputscale - z_scale / scale_sd - 1
        if given.learn_noise:
            z_noise = (theta[d + 1] - NOISE_PRIOR[0]) / NOISE_PRIOR[1]
            value -= 0.5 * z_noise**2
            gradient[d + 1] = found.log_noise - z_noise / NOISE_PRIOR[1]
        if searched:
            value += float(given.rule.log_density(torch.tensor(threshold)))
            gradient[d + 2] = found.threshold + given.rule.slope(threshold)
        if -value < best[0] and found.converged:
            best = (-value, theta.copy())
        return -value, -gradient

    theta = np.concatenate(
        [
            base.lengthscale.detach().numpy().ravel(),
            [float(kernel.outputscale.detach()), np.clip(given.noise_variance, *NOISE_RANGE)],
        ]
    )
    theta = np.append(np.log(theta), first.threshold if searched else 0.0)
    bounds = [(math.log(SHORTEST), math.log(1e3))] * d
    bounds += [(math.log(SCALE_RANGE[0]), math.log(SCALE_RANGE[1]))]
    bounds += [(math.log(NOISE_RANGE[0]), math.log(NOISE_RANGE[1])), (given.rule.floor, math.inf)]
    # The evidence has several modes; a second start, smoother and larger, finds the other likely one.
    smooth = theta.copy()
    smooth[:d] += math.log(2.0)
    smooth[d] += math.log(10.0)
    for begin, iterations in [(theta, max_iterations), (smooth, min(30, max_iterations))][: 1 if nearby else 2]:
        minimize(negative, begin, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": iterations})
    if len(best[1]) == 0:
        return given.noise_variance
    with torch.no_grad():
        base.raw_lengthscale.copy_(torch.from_numpy(np.exp(best[1][:d])).reshape(base.raw_lengthscale.shape))
        kernel.raw_outputscale.fill_(math.exp(best[1][d]))
    return math.exp(best[1][d + 1]) if given.learn_noise else given.noise_variance


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
    nearby: bool = False,
) -> float:
    """Set the kernel's parameters to their MAP values, in place, jointly with the threshold.

    L-BFGS-B on log evidence plus log priors; the kernel never ends worse than it began.

    Args:
        kernel: its parameters and registered priors take part.
        data: trials, costs standardised.
        given: noise (fixed or start) and threshold rule.
        start: threshold and sites to begin from.
        max_iterations: of the optimizer.
        nearby: whether kernel and noise were learned from nearly the same trials, so that no other start is
            worth trying.

    Returns:
        The noise variance, learned or as given.
    """
    first = start or solve(kernel, data, given)
    if _is_small(kernel, data):
        return _learn_small(kernel, data, given, first, max_iterations, nearby=nearby)
    evidence = _Evidence(kernel, data, given, first)
    parameters: dict[str, Tensor] = {n: value for n, value in evidence.named_parameters() if value.requires_grad}
    if not parameters:
        return given.noise_variance
    bounds = _bounds(kernel) | {"log_noise": (math.log(NOISE_RANGE[0]), math.log(NOISE_RANGE[1]))}
    if math.isfinite(given.rule.floor):
        bounds["threshold"] = (given.rule.floor, None)
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
