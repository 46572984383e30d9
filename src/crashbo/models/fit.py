"""From trials to a fitted model, before any BoTorch: one function, one frozen result."""

import copy
import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from crashbo.data import HybridData, cost_scale
from crashbo.errors import InputError
from crashbo.inference.base import NOISE_FLOOR, condition_on_costs
from crashbo.models.hyperparameters import Hypotheses, covariance, is_plain, learn, make_kernel, solve
from crashbo.models.threshold import ThresholdEstimate, check_rule, expected_threshold

DEFAULT_NOISE_STD = 0.02
_VAGUE = 1e8  # pseudo-observation variance, relative to the prior's, of a label that says nothing


@dataclass(frozen=True)
class ModelSettings:
    """What a user may say about a model; see `GPCR` for the meaning of each.

    `kernel` None is our default, learned on standardised costs; a kernel passed in is fixed,
    in the costs' own units.
    """

    noise_std: float | None = None
    kernel: Kernel | None = None
    threshold: float | None = None
    threshold_prior: tuple[float, float] | None = (0.0, 5.0)
    label_width: float = 0.0
    standardize: bool | None = None

    def __post_init__(self) -> None:
        check_rule(self.threshold, self.threshold_prior)
        noise, width = self.noise_std, self.label_width
        if noise is not None and not (isinstance(noise, (int, float)) and math.isfinite(noise) and noise > 0):
            raise InputError(f"`noise_std` must be a finite number > 0, or None; got {noise!r}.")
        if not (isinstance(width, (int, float)) and math.isfinite(width) and width >= 0):
            raise InputError(f"`label_width` must be a finite number >= 0; got {width!r}.")


@dataclass(frozen=True)
class Fit:
    """A model's state: everything predictions need. Costs are `offset + scale * latent`.

    Attributes:
        data: trials, costs in the kernel's units.
        kernel: with its hyperparameters set.
        given: threshold rule, noise and label width, in the kernel's units.
        estimate: threshold and EP result.
        offset, scale: of the costs.
    """

    data: HybridData
    kernel: Kernel
    given: Hypotheses
    estimate: ThresholdEstimate
    offset: float
    scale: float

    @property
    def threshold(self) -> float:
        """The crash threshold in the costs' own units."""
        return self.offset + self.scale * self.estimate.threshold

    def pseudo_observations(self) -> tuple[Tensor, Tensor]:
        """Merge cost likelihood and label site of every trial into one Gaussian observation.

        Math: precision = site_precision + 1/noise (if observed)
              target = (site_precision c + site_shift + y/noise) / precision

        Returns:
            Targets and variances, `n` each, in the kernel's units.
        """
        with torch.no_grad():
            prior = self.kernel(self.data.X, diag=True)
        ep = self.estimate.ep
        precision = ep.site_precision.clone()
        limit = self.estimate.threshold if math.isfinite(self.estimate.threshold) else 0.0
        weighted = precision * limit + ep.site_shift
        noise = max(self.given.noise_variance, NOISE_FLOOR * float(prior.mean()))
        precision[self.data.observed] += 1.0 / noise
        weighted[self.data.observed] += self.data.costs / noise
        precision = torch.maximum(precision, 1.0 / (_VAGUE * prior))
        return weighted / precision, 1.0 / precision

    def expected_threshold(self) -> float:
        """Posterior mean of the threshold in the costs' own units (the model uses the mode)."""
        with torch.no_grad():
            prior = covariance(self.kernel, self.data.X)
            noise = prior.new_tensor(self.given.noise_variance)
            base = condition_on_costs(prior, self.data.observed, self.data.costs, noise)
        width = self.given.label_width
        found = expected_threshold(base, self.data.sign, self.given.rule, self.estimate, width=width)
        return self.offset + self.scale * found

    @property
    def _floored(self) -> bool:
        """Whether values seen to hold bound the threshold: where everything is learned."""
        return math.isfinite(self.given.rule.floor)

    def with_trials(self, new: HybridData) -> "Fit":
        """Return the fit after more trials: kernel, noise and scale stay, EP starts from here.

        Args:
            new: the new trials only, costs in their own units.
        """
        new = new.scaled(self.offset, self.scale)
        data = HybridData(
            torch.cat([self.data.X, new.X]),
            torch.cat([self.data.crashed, new.crashed]),
            torch.cat([self.data.observed, len(self.data.X) + new.observed]),
            torch.cat([self.data.costs, new.costs]),
        )
        ep, blank = self.estimate.ep, new.X.new_zeros(len(new.X))
        precision, shift = torch.cat([ep.site_precision, blank]), torch.cat([ep.site_shift, blank])
        searched = self.given.rule.without_search(self.data.crashed) is None
        given = replace(self.given, rule=self.given.rule.with_floor(new.costs)) if self._floored else self.given
        start = replace(
            self.estimate,
            ep=replace(ep, site_precision=precision, site_shift=shift),
            threshold=self.estimate.threshold if searched else math.nan,
        )
        return replace(self, data=data, given=given, estimate=solve(self.kernel, data, given, start))

    def with_lengthscales(self, factor: float) -> "Fit":
        """Return the fit with other lengthscales, all else as it is; a kernel without any stays."""
        kernel: Any = copy.deepcopy(self.kernel)
        if not is_plain(kernel):
            return self
        with torch.no_grad():
            kernel.base_kernel.lengthscale = factor * kernel.base_kernel.lengthscale
        return replace(self, kernel=kernel, estimate=solve(kernel, self.data, self.given, self.estimate))

    def refitted(self, *, max_iterations: int = 100) -> "Fit":
        """Return the fit with kernel hyperparameters (changed in place) and threshold learned anew."""
        noise = learn(self.kernel, self.data, self.given, start=self.estimate, max_iterations=max_iterations)
        given = replace(self.given, noise_variance=noise)
        return replace(self, given=given, estimate=solve(self.kernel, self.data, given, self.estimate))


def fit(data: HybridData, settings: ModelSettings, *, start: Fit | None = None) -> Fit:
    """Fit a model to trials: hyperparameters where they are to be learned, threshold, posterior.

    Args:
        data: trials, costs in their own units.
        settings: what is known or assumed.
        start: a fit of nearly the same trials, to begin learning there and nowhere else.
    """
    rule = check_rule(settings.threshold, settings.threshold_prior)
    learned = settings.kernel is None
    standardize = learned if settings.standardize is None else settings.standardize
    offset, scale = cost_scale(data) if standardize else (0.0, 1.0)
    if rule.fixed is not None:
        rule = replace(rule, fixed=(rule.fixed - offset) / scale)
    noise = DEFAULT_NOISE_STD if settings.noise_std is None else settings.noise_std / scale
    kernel = make_kernel(data.X.shape[-1]) if settings.kernel is None else settings.kernel
    kernel = kernel.to(data.X)
    begun = learned and start is not None
    if begun and start is not None:
        kernel = copy.deepcopy(start.kernel)
        noise = math.sqrt(start.given.noise_variance) if settings.noise_std is None else noise
    given = Hypotheses(rule, noise**2, learned and settings.noise_std is None, settings.label_width / scale)
    scaled = data.scaled(offset, scale)
    if learned:
        given = replace(given, rule=rule.with_floor(scaled.costs))
        given = replace(given, noise_variance=learn(kernel, scaled, given, nearby=begun))
    return Fit(scaled, kernel, given, solve(kernel, scaled, given), offset, scale)
