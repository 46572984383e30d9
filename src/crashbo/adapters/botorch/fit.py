"""From trials to a fitted model, before any BoTorch: one function, one frozen result."""

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from gpytorch.kernels import Kernel
from torch import Tensor

from crashbo.adapters.botorch.data import HybridData, cost_scale, to_numpy
from crashbo.adapters.botorch.kernels import make_kernel
from crashbo.adapters.botorch.learn import Hypotheses, learn, solve_threshold
from crashbo.errors import InputError
from crashbo.model.inference import Solution
from crashbo.model.rows import NOISE_FLOOR
from crashbo.model.threads import few_threads
from crashbo.model.threshold import ThresholdEstimate, ThresholdRule

DEFAULT_NOISE_STD = 0.02
_VAGUE = 1e8  # pseudo-observation variance, relative to the prior's, of a label that says nothing


def check_rule(threshold: float | None, prior: tuple[float, float] | None) -> ThresholdRule:
    """Validate the user's threshold arguments."""
    if threshold is not None and (not isinstance(threshold, (int, float)) or math.isnan(threshold)):
        raise InputError(f"`threshold` must be a number or None; got {threshold!r}.")
    if prior is not None:
        try:
            mean, deviation = (float(value) for value in prior)
        except (TypeError, ValueError) as error:
            raise InputError(f"`threshold_prior` must be (mean, standard deviation) or None; got {prior!r}.") from error
        if not (math.isfinite(mean) and math.isfinite(deviation) and deviation > 0):
            raise InputError(f"`threshold_prior` must be finite with a standard deviation > 0; got {prior!r}.")
        prior = (mean, deviation)
    return ThresholdRule(None if threshold is None else float(threshold), prior)


@dataclass(frozen=True)
class ModelSettings:
    """What a user may say about a model; see `GPCR` for the meaning of each.

    `kernel` None is our default, learned on standardised costs; a kernel passed in is fixed, in the costs' own units.
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
        estimate: threshold and posterior, by the engine.
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

    @property
    def solution(self) -> Solution:
        """The engine's posterior at the trials."""
        return self.estimate.solution

    def pseudo_observations(self) -> tuple[Tensor, Tensor]:
        """Merge cost likelihood and label site of every trial into one Gaussian observation.

        Math: precision = site precision + 1/noise (if observed)
              target = (site precision c + site shift + y/noise) / precision

        Returns:
            Targets and variances, `n` each, in the kernel's units.
        """
        with torch.no_grad():
            prior = to_numpy(self.kernel(self.data.X, diag=True))
        ep, observed = self.solution.ep, self.data.observed.cpu().numpy()
        precision = ep.precision[0].copy()
        limit = self.estimate.threshold if math.isfinite(self.estimate.threshold) else 0.0
        weighted = precision * limit + ep.shift[0]
        noise = max(self.given.noise_variance, NOISE_FLOOR * float(prior.mean()))
        precision[observed] += 1.0 / noise
        weighted[observed] += to_numpy(self.data.costs) / noise
        precision = np.maximum(precision, 1.0 / (_VAGUE * prior))
        return torch.as_tensor(weighted / precision).to(self.data.X), torch.as_tensor(1.0 / precision).to(self.data.X)

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
        rule = self.given.rule
        searched = rule.without_search(to_numpy(self.data.sign)) is None
        floored = math.isfinite(rule.floor)  # values seen to hold bound the threshold where everything is learned
        given = replace(self.given, rule=rule.with_floor(to_numpy(new.costs))) if floored else self.given
        sites = np.concatenate([self.solution.ep.sites, np.zeros((2, 1, len(new.X)))], -1)
        guess = self.estimate.threshold if searched else None
        return replace(self, data=data, given=given, estimate=solve_threshold(self.kernel, data, given, guess, sites))

    def refitted(self, *, max_iterations: int = 100) -> "Fit":
        """Return the fit with kernel hyperparameters (changed in place) and threshold learned anew."""
        with few_threads(len(self.data.X)):
            noise = learn(self.kernel, self.data, self.given, start=self.estimate, max_iterations=max_iterations)
            given = replace(self.given, noise_variance=noise)
            return replace(self, given=given, estimate=solve_threshold(self.kernel, self.data, given))


def fit(data: HybridData, settings: ModelSettings) -> Fit:
    """Fit a model to trials: hyperparameters where they are to be learned, threshold, posterior.

    Args:
        data: trials, costs in their own units.
        settings: what is known or assumed.
    """
    rule = check_rule(settings.threshold, settings.threshold_prior)
    learned = settings.kernel is None
    standardize = learned if settings.standardize is None else settings.standardize
    offset, scale = cost_scale(data) if standardize else (0.0, 1.0)
    if rule.fixed is not None:
        rule = replace(rule, fixed=(rule.fixed - offset) / scale)
    noise = DEFAULT_NOISE_STD if settings.noise_std is None else settings.noise_std / scale
    kernel = (make_kernel(data.X.shape[-1]) if settings.kernel is None else settings.kernel).to(data.X)
    given = Hypotheses(rule, noise**2, learned and settings.noise_std is None, settings.label_width / scale)
    scaled = data.scaled(offset, scale)
    with few_threads(len(data.X)):
        if learned:
            given = replace(given, rule=rule.with_floor(to_numpy(scaled.costs)))
            given = replace(given, noise_variance=learn(kernel, scaled, given))
        return Fit(scaled, kernel, given, solve_threshold(kernel, scaled, given), offset, scale)
