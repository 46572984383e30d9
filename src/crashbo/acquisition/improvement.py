"""Information about the constrained minimum, by a bound that never over-rates a likely failure."""

import math
from collections.abc import Callable
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from crashbo.errors import InputError
from crashbo.models.coupled_predictor import CoupledPredictor
from crashbo.models.predictor import Predictor

_SURE = 1 - 1e-9  # a probability beyond this says no more


class ConstrainedMinValueEntropySearch(AcquisitionFunction):
    """Lower bound on the information that a trial gives about the constrained minimum (q = 1), in logs.

    What a trial can tell is whether it succeeds below the sampled minimum. mESCO multiplies the
    information of a success by its probability, and the former grows without limit where costs look
    lower than any feasible minimum: it keeps trying points that almost surely fail. This bound is at
    most the information of a coin that lands on success, so such points soon lose their interest.

    Math: log (1/S) sum_i -log(1 - share Pr[success and f(x) < minima_i]),
        share = variance / (variance + noise variance): measuring a well-known point again tells little.
    """

    _log = True

    def __init__(
        self,
        model: Predictor | CoupledPredictor,
        minima: Tensor,
        log_success: Callable[[Tensor], Tensor] | None = None,
        *,
        noise_variance: float = 0.0,
    ) -> None:
        """Hold the model and samples of the constrained minimum.

        Args:
            model: of the objective, to be minimised; cost and margin together where crashes are coupled.
            minima: `S`, samples of the constrained minimum in the model's units.
            log_success: `... x d` to the log probability that independent constraints hold.
            noise_variance: of an evaluation.
        """
        super().__init__(model=model)
        if minima.dim() != 1 or minima.numel() == 0 or not minima.isfinite().all():
            raise InputError(f"`minima` must be a vector of finite samples; got shape {tuple(minima.shape)}.")
        self.minima: Tensor
        self.register_buffer("minima", minima)
        self.log_success, self.noise_variance = log_success, noise_variance

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at `b x 1 x d`, returning `b`."""
        points = X.squeeze(-2)
        log_probability, variance = self._below(points)
        if self.log_success is not None:
            log_probability = log_probability + self.log_success(points).unsqueeze(-1)
        share = (variance / (variance + self.noise_variance)).unsqueeze(-1)
        return log_bounded_information(log_probability + share.log()).logsumexp(-1) - math.log(len(self.minima))

    def _below(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Log probability of success below each minimum, `b x S`, and the cost's variance, `b`."""
        model: Any = self.model
        if isinstance(model, CoupledPredictor):
            there = model.joint(X)
            fit = model.fit
            u = (
                (self.minima - fit.offset) / fit.scale - there.cost.unsqueeze(-1)
            ) / there.cost_variance.sqrt().unsqueeze(-1)
            slack = (fit.coupling.threshold - there.margin) / there.margin_variance.sqrt()
            correlation = there.covariance / (there.cost_variance * there.margin_variance).sqrt()
            both = log_both_below(u, slack.unsqueeze(-1), correlation.unsqueeze(-1))
            return both, fit.scale**2 * there.cost_variance
        mean, deviation = model.moments(X)
        u = (self.minima - mean.unsqueeze(-1)) / deviation.unsqueeze(-1)
        return torch.special.log_ndtr(u), deviation.square()


def log_bounded_information(log_probability: Tensor) -> Tensor:
    """Log of -log(1 - p), finite with finite gradient for any p in [0, 1].

    Args:
        log_probability: log p.
    """
    p = log_probability.clamp_max(math.log(_SURE)).exp()
    # -log(1 - p) = p (1 + p / 2 + ...): for small p the log of p itself keeps the gradient.
    small = log_probability < -8.0
    information = -torch.log1p(-torch.where(small, 0.5, p))
    return torch.where(small, log_probability + 0.5 * p, information.log())


def log_both_below(u: Tensor, v: Tensor, correlation: Tensor) -> Tensor:
    """Log probability that two standard Gaussians lie below `u` and `v`, to about a percent.

    The second is judged by its moments given that the first lies below: exact without correlation.

    Math: log Phi(u) + log Phi((v + rho h) / sqrt(1 - rho^2 h (h + u))),  h = phi(u) / Phi(u)

    Args:
        u, v, correlation: broadcastable.
    """
    log_first = torch.special.log_ndtr(u)
    hazard = torch.exp(-0.5 * u.square() - 0.5 * math.log(2 * math.pi) - log_first)
    left = (1 - correlation.square() * hazard * (hazard + u)).clamp_min(1e-6)
    return log_first + torch.special.log_ndtr((v + correlation * hazard) / left.sqrt())
