"""Acquisition functions for BoTorch: min-value entropy search (21), weighted by success (20), (22), in logs."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.settings import min_fixed_noise
from torch import Tensor
from torch.autograd.function import once_differentiable

from crashbo.adapters.botorch.data import to_numpy
from crashbo.errors import InputError
from crashbo.model.information import log_both_below, log_coin_information, log_noisy_information
from crashbo.model.truncation import log_information
from crashbo.problem.arrays import Array

LogSuccess = Callable[[Tensor], Tensor]
Formula = Callable[..., tuple[Array, ...]]


class _Formula(torch.autograd.Function):
    """A formula of the engine, elementwise, with the derivatives that it returns after its value."""

    @staticmethod
    def forward(ctx: Any, formula: Formula, *inputs: Tensor) -> Tensor:
        value, *slopes = formula(*(to_numpy(one) for one in inputs))
        ctx.save_for_backward(*(torch.as_tensor(slope).to(inputs[0]) for slope in slopes))
        return torch.as_tensor(value).to(inputs[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:
        return None, *(gradients[0] * slope for slope in ctx.saved_tensors)


def apply(formula: Formula, *inputs: Tensor) -> Tensor:
    """Evaluate a formula of `crashbo.model.truncation` on tensors, differentiable once, on any device."""
    value: Tensor = _Formula.apply(formula, *torch.broadcast_tensors(*inputs))
    return value


class MinValueEntropySearch(AcquisitionFunction):
    """mES for any BoTorch model with one output, as a log value to maximise (q = 1).

    With a noise variance, it uses the information of a noisy evaluation instead of that of the latent function
    (`log_noisy_information`).

    Math: log (1/S) sum_i [ t_i phi(t_i) / (2 Phi(t_i)) - log Phi(t_i) ],  t_i = (mean(x) - minima_i) / deviation(x)
        ((21) with t = -z)
    """

    _log = True

    def __init__(
        self, model: Model, minima: Tensor, X_pending: Tensor | None = None, *, noise_variance: float | None = None
    ) -> None:
        """Hold the model and samples of its (constrained) minimum.

        Args:
            model: with one output, to be minimised.
            minima: `S`, samples of the minimum in the model's units.
            X_pending: `m x d`, points under way.
            noise_variance: of an evaluation; None is the paper's noise-free form.
        """
        super().__init__(model=model)
        self.minima: Tensor
        self.register_buffer("minima", _checked(minima))
        self._plain = model
        self.noise_variance = noise_variance
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Assume that pending points return their mean, so that other points become more attractive."""
        self.X_pending: Tensor | None = X_pending  # type: ignore[assignment]
        self.model, self._cut = self._plain, self.minima
        if X_pending is None or not len(X_pending):
            return
        self.model = believe(self._plain, X_pending)
        # A believed value is known: no sample of the minimum may lie above it, or measuring it once
        # more would seem to tell everything.
        with torch.no_grad():
            known: Any = self.model.posterior(X_pending.unsqueeze(-2))
            lowest = (known.mean - 5 * known.variance.clamp_min(0.0).sqrt()).min()
        self._cut = torch.minimum(self.minima, lowest)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at `b x 1 x d`, returning `b`."""
        posterior: Any = self.model.posterior(X)
        mean = posterior.mean.squeeze(-1).squeeze(-1)
        deviation = posterior.variance.clamp_min(1e-300).sqrt().squeeze(-1).squeeze(-1)
        return self.information(mean, deviation)

    def information(self, mean: Tensor, deviation: Tensor) -> Tensor:
        """The value where the model has these moments, all `...`."""
        t = (mean.unsqueeze(-1) - self._cut) / deviation.unsqueeze(-1)
        if self.noise_variance is None:
            each = apply(log_information, t)
        else:
            variance = deviation.square().unsqueeze(-1)
            each = apply(log_noisy_information, t, variance / (variance + self.noise_variance))
        return each.logsumexp(-1) - math.log(len(self.minima))


def _checked(minima: Tensor) -> Tensor:
    if minima.dim() != 1 or minima.numel() == 0 or not minima.isfinite().all():
        raise InputError(f"`minima` must be a vector of finite samples; got shape {tuple(minima.shape)}.")
    return minima


def believe(model: Model, X: Tensor) -> Model:
    """Condition a model on its own mean at `m x d` points under way."""
    with torch.no_grad():
        posterior: Any = model.posterior(X)
        noise = torch.full_like(posterior.mean, 1e-5) * posterior.variance.max().clamp_min(1e-12)
        with min_fixed_noise(double_value=1e-300):  # gpytorch's floor is absolute
            return model.condition_on_observations(X, posterior.mean, noise=noise)


def total_log_success(constraints: Sequence[LogSuccess], X: Tensor) -> Tensor:
    """Sum of log success probabilities at `... x d`, `...`; constraints are independent."""
    total = X.new_zeros(X.shape[:-1])
    for constraint in constraints:
        total = total + constraint(X)
    return total


class FailureAware(AcquisitionFunction):
    """A log-valued acquisition function, weighted by the probability that all constraints hold (20).

    With `MinValueEntropySearch` on samples of the constrained minimum this is mESCO (22); with
    `LogExpectedImprovement` it is constrained EI.

    Math: log a(x) + sum_j log Pr(g_j(x) <= c_j)     where success is likely enough somewhere
          sum_j log Pr(g_j(x) <= c_j)                 otherwise
    """

    _log = True

    def __init__(
        self, acquisition: AcquisitionFunction | None, constraints: Sequence[LogSuccess], *, success_only: bool = False
    ) -> None:
        """Combine an acquisition function with constraints.

        Args:
            acquisition: log-valued, q = 1; may be None if `success_only`.
            constraints: each maps `... x d` to a log success probability `...`.
            success_only: the second case above: only look for success.
        """
        model: Any = getattr(acquisition, "model", None)
        super().__init__(model=model)
        self.acquisition = acquisition
        self._plain = model
        self.constraints = list(constraints)
        self.success_only = success_only or acquisition is None

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Pass pending points on to the acquisition function."""
        self.X_pending: Tensor | None = X_pending  # type: ignore[assignment]
        if isinstance(self.acquisition, MinValueEntropySearch):
            self.acquisition.set_X_pending(X_pending)
        elif self.acquisition is not None:
            # Analytic acquisitions of BoTorch refuse pending points; their model can believe in them.
            self.acquisition.model = self._plain
            if X_pending is not None and len(X_pending):
                self.acquisition.model = believe(self._plain, X_pending)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at `b x 1 x d`, returning `b`."""
        success = total_log_success(self.constraints, X.squeeze(-2))
        if self.success_only or self.acquisition is None:
            return success
        value: Any = self.acquisition(X)
        return success + value


def mesco(
    model: Model, minima: Tensor, constraints: Sequence[LogSuccess], *, success_only: bool = False
) -> FailureAware:
    """mESCO (22): min-value entropy search with unknown constraints.

    Args:
        model: model of the objective.
        minima: `S`, samples of the constrained minimum.
        constraints: functions that return log success probabilities.
        success_only: whether no point is likely enough to succeed yet.
    """
    acquisition = None if success_only else MinValueEntropySearch(model, minima)
    return FailureAware(acquisition, constraints, success_only=success_only)


def success_somewhere(constraints: Sequence[LogSuccess], candidates: Tensor, delta: float) -> bool:
    """Whether any candidate succeeds with probability 1 - delta or more: the test in (20)."""
    with torch.no_grad():
        best = total_log_success(constraints, candidates).max()
    return bool(best >= torch.log1p(best.new_tensor(-delta)))


class ConstrainedMinValueEntropySearch(AcquisitionFunction):
    """Lower bound on the information that a trial gives about the constrained minimum, as a log value (q = 1).

    It is the information of whether the trial succeeds with a cost below the sampled minimum. mESCO multiplies the
    information of a success by its probability. That information grows without limit where predicted costs are lower
    than any feasible minimum, so mESCO keeps trying points that almost surely fail. This bound does not grow so.

    Math: log (1/S) sum_i -log(1 - share Pr[success and f(x) < minima_i]),
        share = variance / (variance + noise variance): measuring a well-known point again tells little.
    """

    _log = True

    def __init__(
        self, model: Model, minima: Tensor, log_success: LogSuccess | None = None, *, noise_variance: float = 0.0
    ) -> None:
        """Hold the model and samples of the constrained minimum.

        Args:
            model: of the cost, or `CostAndMargin`, whose second output decides about success.
            minima: `S`, samples of the constrained minimum in the cost's units.
            log_success: `... x d` to the log probability that independent constraints hold.
            noise_variance: of an evaluation.
        """
        super().__init__(model=model)
        self.minima: Tensor
        self.register_buffer("minima", _checked(minima))
        self.log_success, self.noise_variance = log_success, noise_variance

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at `b x 1 x d`, returning `b`."""
        log_probability, variance = self._below(X)
        if self.log_success is not None:
            log_probability = log_probability + self.log_success(X.squeeze(-2)).unsqueeze(-1)
        share = (variance / (variance + self.noise_variance)).log()
        each = apply(log_coin_information, log_probability + share)
        return each.logsumexp(-1) - math.log(len(self.minima))

    def _below(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Log probability of success below each minimum, `b x S`, and the cost's variance, `b x 1`."""
        model: Any = self.model
        posterior = model.posterior(X)
        mean, variance = posterior.mean[..., 0, :], posterior.variance[..., 0, :].clamp_min(1e-300)
        u = (self.minima - mean[..., :1]) / variance[..., :1].sqrt()
        if mean.shape[-1] == 1:
            return torch.special.log_ndtr(u), variance
        slack = (model.threshold - mean[..., 1:]) / variance[..., 1:].sqrt()
        shared = posterior.distribution.covariance_matrix[..., 0, 1:]
        correlation = (shared / variance.prod(-1, keepdim=True).sqrt()).clamp(-1.0, 1.0)
        both = apply(log_both_below, u, slack, correlation)
        return both + math.log1p(-model.lapse), variance[..., :1]
