"""GPCR: one Gaussian process for costs and crash labels, as a BoTorch model."""

import math
from dataclasses import replace
from typing import Any

import torch
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.sampling.base import MCSampler
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import ZeroMean
from gpytorch.settings import min_fixed_noise
from torch import Tensor

from crashbo.data import HybridData, check_bounds, check_trials, cost_scale
from crashbo.errors import InputError
from crashbo.inference.base import NOISE_FLOOR, BaseGaussian, condition_on_costs
from crashbo.inference.ep import EPResult
from crashbo.inference.predictive import predictive_density
from crashbo.models.hyperparameters import Hypotheses, covariance, learn, make_kernel, solve
from crashbo.models.threshold import ThresholdEstimate, check_rule, make_labels

DEFAULT_NOISE_STD = 0.02
_VAGUE = 1e8  # pseudo-observation variance, relative to the prior's, of a label that says nothing


class GPCR(SingleTaskGP):
    """Gaussian process for classified regression.

    Learns from costs where trials succeeded and from the bare label where they crashed; a
    crashed trial costs more than an unknown threshold, which is learned too. The EP
    posterior is an exact GP on pseudo-observations, and that is what this class is to
    BoTorch: acquisition functions, fantasies and path sampling work unchanged. Native
    fantasies invent costs even where a crash is likely; `condition_on_trials` does not.

    With a kernel passed in, all numbers are in the costs' own units and the kernel stays as
    it is until `fit_gpcr`. Without one, a default kernel is learned on standardised costs,
    and `threshold_prior` is in those units (0 is the mean stable cost, 1 a standard deviation).

    Math:
        p(y, l | f) = H(l (c - f)) (N(y; f, noise_std^2) if stable else 1)     (`eq:lik`)
        q(f*) = N(K*f K^-1 m_EP, K** - K*f K^-1 (I - S_EP K^-1) Kf*)           (`eq:pred_q_moments`)
    """

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor | None,
        crashed: Tensor,
        *,
        noise_std: float | None = None,
        covar_module: Kernel | None = None,
        threshold: float | None = None,
        threshold_prior: tuple[float, float] | None = (0.0, 5.0),
        label_width: float = 0.0,
        bounds: Tensor | None = None,
        standardize: bool | None = None,
    ) -> None:
        """Fit the model; the constructed object is ready to use.

        Args:
            train_X: `n x d`, in the unit cube or in `bounds`.
            train_Y: `n x 1`, ignored where crashed. None: labels only, a GP classifier.
            crashed: `n`, bool.
            noise_std: standard deviation of the cost's noise. None: learned with the
                default kernel, 0.02 with a kernel passed in.
            covar_module: gpytorch kernel on the unit cube, fixed. None: ours, learned.
            threshold: a number fixes it.
            threshold_prior: mean and standard deviation of the Gaussian hyperprior (MAP);
                None: maximum likelihood.
            label_width: probit width for crashes that are themselves random, 0 for none.
            bounds: `2 x d`, domain of train_X; None is the unit cube.
            standardize: whether costs are standardised over the stable trials. None: only
                with the default kernel.

        Raises:
            InputError: names the argument, the rule and the value.
        """
        domain = None if bounds is None else check_bounds(bounds, _columns(train_X))
        data = check_trials(train_X, train_Y, crashed, domain)
        domain = None if domain is None else domain.to(data.X)
        _check_positive("noise_std", noise_std)
        if not (isinstance(label_width, (int, float)) and math.isfinite(label_width) and label_width >= 0):
            raise InputError(f"`label_width` must be a finite number >= 0; got {label_width!r}.")
        rule = check_rule(threshold, threshold_prior)
        learned = covar_module is None
        offset, scale = cost_scale(data) if (learned if standardize is None else standardize) else (0.0, 1.0)
        if rule.fixed is not None:
            rule = replace(rule, fixed=(rule.fixed - offset) / scale)
        noise = DEFAULT_NOISE_STD if noise_std is None else noise_std / scale
        kernel = make_kernel(data.X.shape[-1]) if covar_module is None else covar_module
        kernel = kernel.to(data.X)
        given = Hypotheses(rule, noise**2, learn_noise=learned and noise_std is None, label_width=label_width / scale)
        scaled = data.scaled(offset, scale)
        if learned:
            given = replace(given, noise_variance=learn(kernel, scaled, given))
        self._build(scaled, domain, kernel, given, (offset, scale), solve(kernel, scaled, given))

    def _build(
        self,
        data: HybridData,
        domain: Tensor | None,
        kernel: Kernel,
        given: Hypotheses,
        scaling: tuple[float, float],
        estimate: ThresholdEstimate,
    ) -> None:
        """Become an exact GP on the pseudo-observations of `estimate`."""
        targets, variances = _pseudo_observations(data, kernel, given, estimate)
        X = data.X if domain is None else domain[0] + data.X * (domain[1] - domain[0])
        transform = None if domain is None else Normalize(X.shape[-1], bounds=domain)
        with min_fixed_noise(double_value=1e-300):  # our own floor is relative to the prior
            super().__init__(
                X,
                targets.unsqueeze(-1),
                variances.unsqueeze(-1),
                covar_module=kernel,
                mean_module=ZeroMean(),
                outcome_transform=None,
                input_transform=transform,
            )
        self._data, self._domain, self._given = data, domain, given
        self._offset, self._scale = scaling
        self._estimate = estimate
        if scaling != (0.0, 1.0):
            self.outcome_transform = _fixed_standardize(*scaling).to(X)
        self.eval()

    @property
    def threshold(self) -> float:
        """The crash threshold in the costs' own units."""
        return self._offset + self._scale * self._estimate.threshold

    @property
    def noise_std(self) -> float:
        """Standard deviation of the cost's noise in the costs' own units."""
        return self._scale * math.sqrt(self._given.noise_variance)

    @property
    def log_truncation(self) -> float:
        """log Z_EP: log probability that every label holds, given the costs."""
        return float(self._estimate.ep.log_partition)

    @property
    def log_evidence(self) -> float:
        """log alpha + log Z_EP, of the costs in the units the kernel works in."""
        with torch.no_grad():
            return float(self.base().log_evidence) + self.log_truncation

    @property
    def converged(self) -> bool:
        """Whether EP converged."""
        return bool(self._estimate.ep.converged)

    @property
    def ep(self) -> EPResult:
        """EP's result with its diagnostics, in the units the kernel works in."""
        return self._estimate.ep

    @property
    def trials(self) -> HybridData:
        """The trials in the units the kernel works in."""
        return self._data

    @property
    def given(self) -> Hypotheses:
        """Threshold rule, noise and label width, in the units the kernel works in."""
        return self._given

    @property
    def domain(self) -> Tensor | None:
        """`2 x d`, bounds of the inputs; None is the unit cube."""
        return self._domain

    @property
    def train_points(self) -> Tensor:
        """`n x d`, the trials' inputs in the domain."""
        X = self._data.X
        return X if self._domain is None else self._domain[0] + X * (self._domain[1] - self._domain[0])

    @property
    def costs(self) -> Tensor:
        """`n_s`, the observed costs in their own units."""
        return self.to_costs(self._data.costs)

    @property
    def internal_threshold(self) -> float:
        """The threshold in the units the kernel works in."""
        return self._estimate.threshold

    def to_costs(self, latent: Tensor) -> Tensor:
        """Map values from the units the kernel works in to the costs' own."""
        return self._offset + self._scale * latent

    def base(self) -> BaseGaussian:
        """The base Gaussian N(m~, S~) of `eq:my_post` at the current hyperparameters."""
        prior = covariance(self.covar_module, self._data.X)
        noise = prior.new_tensor(self._given.noise_variance)
        return condition_on_costs(prior, self._data.observed, self._data.costs, noise)

    def success_probability(self, X: Tensor, *, log: bool = False) -> Tensor:
        """Probability that a trial at each point does not crash (`eq:predictive_constraint`).

        Math: Phi((c - mean(x)) / sqrt(variance(x) + label_width^2))

        Args:
            X: `... x d`; every point on its own.
            log: return the log probability, which does not underflow.

        Returns:
            `...`, differentiable in X.
        """
        if math.isinf(self.threshold):
            value = X.new_full(X.shape[:-1], 0.0 if self.threshold > 0 else -math.inf)
            return value if log else value.exp()
        posterior = self.posterior(X.unsqueeze(-2))
        width = self._given.label_width * self._scale
        deviation = (posterior.variance + width**2).sqrt()
        z = ((self.threshold - posterior.mean) / deviation).squeeze(-1).squeeze(-1)
        return torch.special.log_ndtr(z) if log else torch.special.ndtr(z)

    def predictive_density(self, X: Tensor, grid: Tensor) -> Tensor:
        """The non-Gaussian predictive p(f*) of Appendix B on a grid of costs.

        Args:
            X: `m x d`.
            grid: `g`, increasing costs.

        Returns:
            `m x g`, densities per unit of cost.
        """
        with torch.no_grad():
            inputs = self.transform_inputs(X)
            prior = covariance(self.covar_module, self._data.X)
            cross = covariance(self.covar_module, inputs, self._data.X)
            variance = self.covar_module(inputs, diag=True)
        labels = make_labels(self._data.sign, self._estimate.threshold, self._given.label_width)
        density = predictive_density(
            prior,
            cross,
            variance,
            self._data.observed,
            self._data.costs,
            prior.new_tensor(self._given.noise_variance),
            labels,
            (grid - self._offset) / self._scale,
        )
        return density / self._scale

    def condition_on_trials(self, X: Tensor, Y: Tensor | None, crashed: Tensor) -> "GPCR":
        """Return the model after more trials, crashed or not, EP warm-started from this one.

        Kernel, noise and scaling stay; the threshold is estimated anew by the same rule.

        Args:
            X, Y, crashed: as in the constructor, the new trials only.
        """
        if (Y is None) != (self._data.observed.numel() == 0 and not bool(self._data.crashed.all())) and not bool(
            torch.as_tensor(crashed).all()
        ):
            raise InputError("`Y` must hold costs exactly if the model was built with costs.")
        new = check_trials(X, Y, crashed, self._domain).scaled(self._offset, self._scale)
        n = len(self._data.X)
        data = HybridData(
            torch.cat([self._data.X, new.X]),
            torch.cat([self._data.crashed, new.crashed]),
            torch.cat([self._data.observed, n + new.observed]),
            torch.cat([self._data.costs, new.costs]),
        )
        blank = new.X.new_zeros(len(new.X))
        ep = self._estimate.ep
        extended = replace(
            ep,
            site_precision=torch.cat([ep.site_precision, blank]),
            site_shift=torch.cat([ep.site_shift, blank]),
        )
        had_both = bool(self._data.crashed.any()) and not bool(self._data.crashed.all())
        start = replace(self._estimate, ep=extended, threshold=self._estimate.threshold if had_both else math.nan)
        model = GPCR.__new__(GPCR)
        estimate = solve(self.covar_module, data, self._given, start)
        model._build(data, self._domain, self.covar_module, self._given, (self._offset, self._scale), estimate)
        return model

    def refit(self, *, max_iterations: int = 100) -> None:
        """Learn the kernel's hyperparameters and the threshold by MAP, in place."""
        noise = learn(self.covar_module, self._data, self._given, start=self._estimate, max_iterations=max_iterations)
        given = replace(self._given, noise_variance=noise)
        scaling = (self._offset, self._scale)
        estimate = solve(self.covar_module, self._data, given, self._estimate)
        self._build(self._data, self._domain, self.covar_module, given, scaling, estimate)

    def _apply_noise(
        self, X: Tensor, mvn: MultivariateNormal, observation_noise: bool | Tensor = False
    ) -> MultivariateNormal:
        """Add the cost's own noise; the pseudo-variances are not observation noise."""
        if observation_noise is True:
            observation_noise = mvn.mean.new_full((*mvn.mean.shape, 1), self._given.noise_variance)
        return super()._apply_noise(X, mvn, observation_noise)

    def fantasize(
        self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any
    ) -> "GPCR":
        """Fantasize costs with the cost's own noise (see `FantasizeMixin.fantasize`)."""
        if observation_noise is None:
            observation_noise = X.new_full((1, 1), self._given.noise_variance)
        fantasy: GPCR = super().fantasize(X, sampler, observation_noise=observation_noise, **kwargs)
        return fantasy


def fit_gpcr(model: GPCR, *, max_iterations: int = 100) -> GPCR:
    """Learn a model's kernel hyperparameters and threshold by MAP, in place.

    Priors registered on the kernel take part; without any this is maximum likelihood. The
    noise stays as it was given, unless the model learns it.

    Args:
        model: changed in place, and returned.
        max_iterations: of the optimizer.
    """
    model.refit(max_iterations=max_iterations)
    return model


def _columns(X: Any) -> int:
    shape = tuple(getattr(X, "shape", ()))
    return int(shape[-1]) if shape else 0


def _check_positive(name: str, value: float | None) -> None:
    if value is not None and not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
        raise InputError(f"`{name}` must be a finite number > 0, or None; got {value!r}.")


def _fixed_standardize(offset: float, scale: float) -> Standardize:
    """A Standardize transform with given constants, already trained."""
    transform = Standardize(m=1)
    transform.means.fill_(offset)
    transform.stdvs.fill_(scale)
    transform._stdvs_sq.fill_(scale**2)
    transform._is_trained.fill_(True)
    return transform.double().eval()


def _pseudo_observations(
    data: HybridData, kernel: Kernel, given: Hypotheses, estimate: ThresholdEstimate
) -> tuple[Tensor, Tensor]:
    """Merge cost likelihood and label site of every trial into one Gaussian observation.

    Math: precision = site_precision + 1/noise (if observed)
          target = (site_precision c + site_shift + y/noise) / precision
    """
    with torch.no_grad():
        prior = kernel(data.X, diag=True)
    precision = estimate.ep.site_precision.clone()
    limit = estimate.threshold if math.isfinite(estimate.threshold) else 0.0
    weighted = precision * limit + estimate.ep.site_shift
    noise = max(given.noise_variance, NOISE_FLOOR * float(prior.mean()))
    precision[data.observed] += 1.0 / noise
    weighted[data.observed] += data.costs / noise
    floor = 1.0 / (_VAGUE * prior)
    return weighted / precision.clamp_min(floor), 1.0 / precision.clamp_min(floor)
