"""Min-value entropy search (`eq:mES`), in the log domain."""

import math
from typing import Any

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.models.model import Model
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.settings import min_fixed_noise
from numpy.typing import NDArray
from scipy.special import log_ndtr
from torch import Tensor
from torch.autograd.function import once_differentiable

from crashbo.errors import InputError
from crashbo.inference.ep_small import truncation_small
from crashbo.inference.tilted import truncation

Array = NDArray[np.float64]

_LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


class _LogInformation(torch.autograd.Function):
    """log a(t), a(t) = t r(t) / 2 - log Phi(t), r = phi / Phi, with its exact derivative."""

    @staticmethod
    def forward(ctx: Any, t: Tensor) -> Tensor:
        hazard, excess, shrinkage = truncation(t)
        # t <= 0: a = t d / 2 + log(sqrt(2 pi) r), no cancellation as t -> -inf.
        near = 0.5 * t * excess + hazard.clamp_min(1e-300).log() + _LOG_ROOT_2PI
        # t > 0: a = r (t / 2 + (-log Phi) / r), with Mills' ratio m in place of the tails.
        positive = t.clamp_min(0.0)
        mills = math.sqrt(math.pi / 2) * torch.special.erfcx(positive / math.sqrt(2.0))
        log_density = -0.5 * positive.square() - _LOG_ROOT_2PI
        log_cdf = torch.special.log_ndtr(positive)
        beyond = log_density.exp() * mills
        ratio = torch.where(beyond > 1e-8, -log_cdf / beyond.clamp_min(1e-300), 1.0) * mills * log_cdf.exp()
        far = log_density - log_cdf + (0.5 * positive + ratio).log()
        value = torch.where(t <= 0, near.clamp_min(1e-300).log(), far)
        # d log a / dt = -r (1 + t d) / (2 a), and 1 + t d = shrinkage + d^2.
        log_hazard = torch.where(t <= 0, hazard.clamp_min(1e-300).log(), log_density - log_cdf)
        inner = torch.where(t <= 0, shrinkage + excess.square(), 1 + t * excess)
        ctx.save_for_backward(-0.5 * inner * (log_hazard - value).exp())
        return value

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (slope,) = ctx.saved_tensors
        return gradients[0] * slope


def log_information(t: Tensor) -> Tensor:
    """Log information that a Gaussian gains from being cut at the minimum.

    Finite with finite gradient for |t| up to 1e150; decreasing in t.

    Math: log( t phi(t) / (2 Phi(t)) - log Phi(t) ),  t = (mean - f_min) / deviation

    Args:
        t: any shape, standard deviations by which the mean lies above the minimum.
    """
    value: Tensor = _LogInformation.apply(t)
    return value


class _LogNoisyInformation(torch.autograd.Function):
    """log(-log(1 - s u) / 2) with u = r (r + t), the share of variance a cut takes, and its derivatives."""

    @staticmethod
    def forward(ctx: Any, t: Tensor, share: Tensor) -> Tensor:
        hazard, excess, shrinkage = truncation(t)
        taken = hazard * excess
        left = share * shrinkage + (1 - share)  # = 1 - s u without cancellation as u -> 1
        small = share * taken < 0.5
        lost = torch.where(small, -torch.log1p(-torch.where(small, share * taken, 0.0)), -left.log())
        # -log(1 - s u) -> s u as u -> 0, where logs of r and d replace products that underflow.
        positive = t.clamp_min(0.0)
        log_hazard = -0.5 * positive.square() - _LOG_ROOT_2PI - torch.special.log_ndtr(positive)
        log_taken = log_hazard + (positive + log_hazard.exp()).clamp_min(1e-300).log()
        tiny = (t > 0) & (share * taken < 1e-8)
        value = torch.where(tiny, share.log() + log_taken, lost.clamp_min(1e-300).log())
        # du/dt = -r (d^2 - w); divided by u = r d it is -(d - w / d), which never underflows.
        relative = -(excess - shrinkage / excess.clamp_min(1e-300))
        by_t = torch.where(tiny, relative, share * taken * relative / left / lost.clamp_min(1e-300))
        by_share = torch.where(tiny, 1 / share, taken / left / lost.clamp_min(1e-300))
        ctx.save_for_backward(by_t, by_share)
        return value - math.log(2)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor]:
        by_t, by_share = ctx.saved_tensors
        return gradients[0] * by_t, gradients[0] * by_share


def log_noisy_information(t: Tensor, share: Tensor) -> Tensor:
    """Log of a lower bound on what a noisy evaluation tells about the minimum.

    Unlike `log_information` it sees that measuring a well-known point again tells little.

    Math: log( -log(1 - share (1 - w(t))) / 2 ),  share = variance / (variance + noise variance),
        w(t) the variance that the cut at the minimum leaves (Moss et al., 2021)

    Args:
        t: standard deviations by which the mean lies above the minimum.
        share: in (0, 1], the part of an evaluation's variance that is not noise.
    """
    value: Tensor = _LogNoisyInformation.apply(*torch.broadcast_tensors(t, share))
    return value


class _NoisyInformation(torch.autograd.Function):
    """Log of the mean of `log_noisy_information` over minima, by mean and deviation, in NumPy.

    A search evaluates it a few points at a time, hundreds of times, which torch would spend on dispatching
    operations; tests hold the two equal.
    """

    @staticmethod
    def forward(ctx: Any, mean: Tensor, deviation: Tensor, minima: Tensor, noise: float) -> Tensor:
        value, ctx.by_mean, ctx.by_deviation = noisy_information_small(
            mean.detach().numpy(), deviation.detach().numpy(), minima.numpy(), noise
        )
        return torch.from_numpy(value)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None]:
        grown = gradients[0]
        return grown * torch.from_numpy(ctx.by_mean), grown * torch.from_numpy(ctx.by_deviation), None, None


def noisy_information_small(
    mean: Array, deviation: Array, minima: Array, noise_variance: float
) -> tuple[Array, Array, Array]:
    """Log of the mean of `log_noisy_information` over minima, in NumPy.

    Args:
        mean, deviation: `...`, of the model.
        minima: `S`, samples of the minimum.
        noise_variance: of an evaluation.

    Returns:
        The value, its derivative by the mean, and by the deviation, `...` each.
    """
    m, s = mean[..., None], deviation[..., None]
    variance = np.square(s)
    share = variance / (variance + noise_variance)
    t = (m - minima) / s
    value, by_t, by_share = _noisy_information(t, share)
    top = value.max(-1, keepdims=True)
    weight = np.exp(value - top)
    total = weight.sum(-1, keepdims=True)
    weight /= total
    by_mean = (weight * by_t / s).sum(-1)
    # share = v / (v + noise), so d share / ds = 2 share (1 - share) / s.
    by_deviation = (weight * (2 * by_share * share * (1 - share) - by_t * t) / s).sum(-1)
    return (top + np.log(total))[..., 0] - math.log(len(minima)), by_mean, by_deviation


def _noisy_information(t: Array, share: Array) -> tuple[Array, Array, Array]:
    """`_LogNoisyInformation` in NumPy: value, derivative by t, by share."""
    hazard, excess, shrinkage = truncation_small(t)
    taken = hazard * excess
    left = share * shrinkage + (1 - share)
    part = share * taken
    lost = np.maximum(np.where(part < 0.5, -np.log1p(-np.minimum(part, 0.5)), -np.log(left)), 1e-300)
    slope = taken / left / lost
    relative = shrinkage / np.maximum(excess, 1e-300) - excess
    value, by_t, by_share = np.log(lost), share * slope * relative, slope
    tiny = (t > 0) & (part < 1e-8)
    if tiny.any():
        far, little = t[tiny], np.broadcast_to(share, t.shape)[tiny]
        log_hazard = -0.5 * np.square(far) - _LOG_ROOT_2PI - log_ndtr(far)
        log_taken = log_hazard + np.log(np.maximum(far + np.exp(log_hazard), 1e-300))
        value[tiny], by_t[tiny], by_share[tiny] = np.log(little) + log_taken, relative[tiny], 1 / little
    return value - math.log(2), by_t, by_share


class MinValueEntropySearch(AcquisitionFunction):
    """mES on any single-output BoTorch model, as a log value to be maximised (q = 1).

    With a noise variance, the information of a noisy evaluation takes the place of that of the
    latent function itself (`log_noisy_information`).

    Math: log (1/S) sum_i [ t_i phi(t_i) / (2 Phi(t_i)) - log Phi(t_i) ],
        t_i = (mean(x) - minima_i) / deviation(x)          (`eq:mES`, t = -z)
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
        if minima.dim() != 1 or minima.numel() == 0 or not minima.isfinite().all():
            raise InputError(f"`minima` must be a vector of finite samples; got shape {tuple(minima.shape)}.")
        self.minima: Tensor
        self.register_buffer("minima", minima)
        self._plain = model
        self.noise_variance = noise_variance
        self.set_X_pending(X_pending)

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Believe pending points to return their mean, so that others become more attractive."""
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
        if self.noise_variance is not None and mean.device.type == "cpu" and mean.dtype == torch.float64:
            value: Tensor = _NoisyInformation.apply(mean, deviation, self._cut, self.noise_variance)
            return value
        t = (mean.unsqueeze(-1) - self._cut) / deviation.unsqueeze(-1)
        if self.noise_variance is None:
            information = log_information(t)
        else:
            variance = deviation.square().unsqueeze(-1)
            information = log_noisy_information(t, variance / (variance + self.noise_variance))
        return information.logsumexp(-1) - math.log(len(self.minima))


def believe(model: Model, X: Tensor) -> Model:
    """Condition a model on its own mean at `m x d` points under way."""
    believing: Any = getattr(model, "believing", None)
    if believing is not None:
        believer: Model = believing(X)
        return believer
    with torch.no_grad():
        posterior: Any = model.posterior(X)
        noise = torch.full_like(posterior.mean, 1e-5) * posterior.variance.max().clamp_min(1e-12)
        with min_fixed_noise(double_value=1e-300):  # gpytorch's floor is absolute
            return model.condition_on_observations(X, posterior.mean, noise=noise)
