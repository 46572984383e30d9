"""GPCR: one Gaussian process for costs and crash labels, as a BoTorch model."""

import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models import SingleTaskGP
from botorch.models.transforms.input import Normalize
from botorch.models.transforms.outcome import Standardize
from botorch.posteriors.gpytorch import GPyTorchPosterior
from botorch.sampling.base import MCSampler
from gpytorch.distributions import MultivariateNormal
from gpytorch.kernels import Kernel
from gpytorch.means import ZeroMean
from gpytorch.settings import min_fixed_noise
from torch import Tensor

from crashbo.adapters.botorch.data import HybridData, check_bounds, check_trials, to_numpy
from crashbo.adapters.botorch.fit import Fit, ModelSettings, fit
from crashbo.adapters.botorch.kernels import covariance
from crashbo.adapters.botorch.learn import Hypotheses, TrialRows, solve_threshold
from crashbo.errors import InputError
from crashbo.model.density import predictive_density
from crashbo.model.ep import Labels


@dataclass(frozen=True)
class TrialPosterior:
    """EP's result at the trials, in the units of the kernel.

    Attributes:
        mean, variance: `n`, marginal moments.
        site_precision, site_shift: `n`, the sites, relative to the threshold.
        log_partition: log Z_EP.
        sweeps: sweeps made.
        change: mismatch of moments at the end.
        converged: whether that is small enough.
    """

    mean: Tensor
    variance: Tensor
    site_precision: Tensor
    site_shift: Tensor
    log_partition: float
    sweeps: int
    change: float
    converged: bool


class GPCR(SingleTaskGP):
    """Gaussian process for classified regression.

    It learns from costs where trials succeeded, and from the label alone where they crashed. A crashed trial costs more
    than an unknown threshold, which is learned too. The EP posterior is an exact GP on pseudo-observations, and BoTorch
    sees it as such: acquisition functions, fantasies and path sampling work unchanged. BoTorch's fantasies have
    costs even where a crash is likely; `condition_on_trials` takes crashes too.

    If you pass a kernel, all numbers are in the units of the costs, and its hyperparameters are unchanged until
    `fit_gpcr`. Otherwise a default kernel is learned on standardised costs, and `threshold_prior` is in those units (0
    is the mean stable cost, 1 a standard deviation).

    A crash that contradicts a success very close to it is relaxed, if the evidence prefers that to changing the costs:
    see `relaxed` and `diagnosis`. Tensors may be on any device; the fit runs on the processor.

    Math:
        p(y, l | f) = H(l (c - f)) (N(y; f, noise_std^2) if stable else 1)     (5)
        q(f*) = N(K*f K^-1 m_EP, K** - K*f K^-1 (I - S_EP K^-1) Kf*)           (14)
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
            covar_module: gpytorch kernel on the unit cube, fixed. None: the default kernel, learned.
            threshold: the crash threshold, if known. None: it is learned.
            threshold_prior: mean and standard deviation of the Gaussian hyperprior (MAP);
                None: maximum likelihood.
            label_width: probit width of the labels, for a gradual border of the crashes; 0 is a step.
            bounds: `2 x d`, domain of train_X; None is the unit cube.
            standardize: whether costs are standardised over the stable trials. None: only
                with the default kernel.

        Raises:
            InputError: names the argument, the rule and the value.
        """
        data = check_trials(train_X, train_Y, crashed, bounds)
        domain = None if bounds is None else check_bounds(bounds, data.X.shape[-1]).to(data.X)
        settings = ModelSettings(noise_std, covar_module, threshold, threshold_prior, label_width, standardize)
        self._build(fit(data, settings), domain, labels_only=train_Y is None)

    def _build(self, state: Fit, domain: Tensor | None, *, labels_only: bool) -> None:
        """Become an exact GP on the pseudo-observations of `state`."""
        targets, variances = state.pseudo_observations()
        X = state.data.X if domain is None else domain[0] + state.data.X * (domain[1] - domain[0])
        with min_fixed_noise(double_value=1e-300):  # our own floor is relative to the prior
            super().__init__(
                X,
                targets.unsqueeze(-1),
                variances.unsqueeze(-1),
                covar_module=state.kernel,
                mean_module=ZeroMean(),
                outcome_transform=None,
                input_transform=None if domain is None else Normalize(X.shape[-1], bounds=domain),
            )
        self._fit, self._domain, self._labels_only = state, domain, labels_only
        with torch.no_grad():
            self._variance_floor = 1e-12 * state.scale**2 * float(state.kernel(state.data.X[:1], diag=True))
        if (state.offset, state.scale) != (0.0, 1.0):
            self.outcome_transform = _fixed_standardize(state.offset, state.scale).to(X)
        self.eval()

    @property
    def fit(self) -> Fit:
        """The fitted state, in the units of the kernel."""
        return self._fit

    @property
    def threshold(self) -> float:
        """The crash threshold in the units of the costs."""
        return self._fit.threshold

    @property
    def noise_std(self) -> float:
        """Standard deviation of the cost's noise in the units of the costs."""
        return self._fit.scale * math.sqrt(self._fit.given.noise_variance)

    @property
    def log_truncation(self) -> float:
        """log Z_EP: log probability that every label holds, given the costs."""
        return self.ep.log_partition

    @property
    def log_evidence(self) -> float:
        """log alpha + log Z_EP, for costs in the units of the kernel."""
        return float(self._fit.solution.log_evidence[0])

    @property
    def converged(self) -> bool:
        """Whether EP converged, after relaxing labels if necessary (see `relaxed`)."""
        return self.ep.converged

    @property
    def relaxed(self) -> tuple[int, ...]:
        """Indices of trials whose crash contradicts the other trials and is treated as random (a lapse)."""
        return tuple(self._fit.estimate.relaxed.tolist())

    @property
    def diagnosis(self) -> str:
        """How the fit went, in words."""
        ep = self.ep
        state = "converged" if ep.converged else f"did not converge (moments differ by {ep.change:.1e})"
        text = f"EP {state} after {ep.sweeps} sweeps."
        if self.relaxed:
            which = ", ".join(map(str, self.relaxed))
            text += f" Crashes with no room beside a success were relaxed: trials {which}."
        return text

    @property
    def ep(self) -> TrialPosterior:
        """EP's result with its diagnostics, in the units of the kernel."""
        ep, X = self._fit.solution.ep, self.trials.X
        mean, variance, precision, shift = (
            torch.as_tensor(part[0].copy()).to(X) for part in (ep.mean, ep.variance, ep.precision, ep.shift)
        )
        mass, change, converged = float(ep.log_partition[0]), float(ep.change[0]), bool(ep.converged[0])
        return TrialPosterior(mean, variance, precision, shift, mass, int(ep.sweeps[0]), change, converged)

    @property
    def trials(self) -> HybridData:
        """The trials in the units of the kernel."""
        return self._fit.data

    @property
    def given(self) -> Hypotheses:
        """Threshold rule, noise and label width, in the units of the kernel."""
        return self._fit.given

    @property
    def internal_threshold(self) -> float:
        """The threshold in the units of the kernel."""
        return self._fit.estimate.threshold

    @property
    def domain(self) -> Tensor | None:
        """`2 x d`, bounds of the inputs; None is the unit cube."""
        return self._domain

    @property
    def train_points(self) -> Tensor:
        """`n x d`, the trials' inputs in the domain."""
        X = self.trials.X
        return X if self._domain is None else self._domain[0] + X * (self._domain[1] - self._domain[0])

    @property
    def costs(self) -> Tensor:
        """`n_s`, the observed costs in their own units."""
        return self.to_costs(self.trials.costs)

    def to_costs(self, latent: Tensor) -> Tensor:
        """Map values from the units of the kernel to those of the costs."""
        return self._fit.offset + self._fit.scale * latent

    def success_probability(self, X: Tensor, *, log: bool = False) -> Tensor:
        """Probability that a trial at each point does not crash (17).

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
        width = self.given.label_width * self._fit.scale
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
        rows, state = TrialRows.of(self.trials), self._fit
        with torch.no_grad():
            inputs = self.transform_inputs(X)
            cross = to_numpy(covariance(self.covar_module, inputs, self.trials.X))[:, rows.index]
            variance = to_numpy(self.covar_module(inputs, diag=True))
        labels = Labels(rows.sign, self.internal_threshold, self.given.label_width, state.estimate.rates)
        values = (to_numpy(grid) - state.offset) / state.scale
        density = predictive_density(state.solution.given, labels, cross, variance, values)
        return torch.as_tensor(density / state.scale).to(X)

    def condition_on_trials(self, X: Tensor, Y: Tensor | None, crashed: Tensor) -> "GPCR":
        """Return the model with more trials, crashed or not; EP starts from this model's result.

        Kernel, noise and scaling stay the same; the threshold is estimated again.

        Args:
            X: inputs of the new trials, as in the constructor.
            Y: costs of the new trials.
            crashed: labels of the new trials.
        """
        new = check_trials(X, Y, crashed, self._domain)
        if (Y is None) != self._labels_only and not bool(new.crashed.all()):
            kind = "labels only" if self._labels_only else "costs"
            raise InputError(f"`Y` must match the model, which was built with {kind}; got {type(Y).__name__}.")
        model = GPCR.__new__(GPCR)
        state = replace(self._fit, kernel=deepcopy(self._fit.kernel))
        model._build(state.with_trials(new), self._domain, labels_only=self._labels_only)
        return model

    def refit(self, *, max_iterations: int = 100) -> None:
        """Learn the kernel's hyperparameters and the threshold by MAP, in place."""
        state = self._fit.refitted(max_iterations=max_iterations)
        self._build(state, self._domain, labels_only=self._labels_only)

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> None:
        """Load kernel hyperparameters, and compute threshold and posterior for them."""
        super().load_state_dict(state_dict, *args, **kwargs)
        state = replace(self._fit, estimate=solve_threshold(self._fit.kernel, self._fit.data, self._fit.given))
        self._build(state, self._domain, labels_only=self._labels_only)

    def posterior(  # type: ignore[override]  # as SingleTaskGP has it
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Any:
        """The posterior as in BoTorch; variances have a floor relative to the prior variance."""
        plain: Any = super().posterior(X, output_indices, observation_noise)
        distribution = _FlooredNormal(plain.distribution.mean, plain.distribution.lazy_covariance_matrix)
        distribution.floor = self._variance_floor
        posterior = GPyTorchPosterior(distribution)
        return posterior if posterior_transform is None else posterior_transform(posterior, X=X)

    def _apply_noise(
        self, X: Tensor, mvn: MultivariateNormal, observation_noise: bool | Tensor = False
    ) -> MultivariateNormal:
        """Add the cost's own noise; the pseudo-variances are not observation noise."""
        if observation_noise is True:
            observation_noise = mvn.mean.new_full((*mvn.mean.shape, 1), self.given.noise_variance)
        return super()._apply_noise(X, mvn, observation_noise)

    def fantasize(
        self, X: Tensor, sampler: MCSampler, observation_noise: Tensor | None = None, **kwargs: Any
    ) -> "GPCR":
        """Fantasize costs with the noise of the costs (see `FantasizeMixin.fantasize`)."""
        if observation_noise is None:
            observation_noise = X.new_full((1, 1), self.given.noise_variance)
        fantasy: GPCR = super().fantasize(X, sampler, observation_noise=observation_noise, **kwargs)
        return fantasy


class _FlooredNormal(MultivariateNormal):
    """A normal whose variances have a floor of their own: gpytorch's is absolute, 1e-10."""

    floor = 1e-300

    @property
    def variance(self) -> Tensor:
        diagonal: Tensor = self.lazy_covariance_matrix.diagonal(dim1=-1, dim2=-2)
        return diagonal.expand(self._batch_shape + self._event_shape).clamp_min(self.floor)


def fit_gpcr(model: GPCR, *, max_iterations: int = 100) -> GPCR:
    """Learn a model's kernel hyperparameters and threshold by MAP, in place.

    Priors registered on the kernel are used; without any this is maximum likelihood. The noise is not changed,
    unless the model learns it.

    Args:
        model: the model; it is changed in place and returned.
        max_iterations: largest number of iterations of the optimizer.
    """
    model.refit(max_iterations=max_iterations)
    return model


def _fixed_standardize(offset: float, scale: float) -> Standardize:
    """A Standardize transform with given constants, already trained."""
    transform = Standardize(m=1).double()
    transform.means.fill_(offset)
    transform.stdvs.fill_(scale)
    transform._stdvs_sq.fill_(scale**2)
    transform._is_trained.fill_(True)
    return transform.eval()
