"""Predictions and posterior samples of a fitted model in a handful of torch operations.

gpytorch's machinery costs milliseconds per call, which the inner loops of a search cannot
afford. A `Predictor` is the same q(f*) as `GPCR.posterior` (tests hold them equal) for points
on their own, and a BoTorch `Model` as far as analytic acquisition functions need one.
"""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from botorch.models.model import Model
from botorch.posteriors.posterior import Posterior
from gpytorch.kernels import MaternKernel
from torch import Tensor

from crashbo.errors import NumericalError
from crashbo.models.fit import Fit
from crashbo.models.hyperparameters import covariance, is_plain
from crashbo.models.moments import Component, PointMoments


class Prediction(NamedTuple):
    """What a model expects at points, each `...`, in the costs' own units."""

    mean: Tensor
    deviation: Tensor
    log_success: Tensor


class PointPosterior(Posterior):
    """Independent Gaussians, one per point: `mean` and `variance`, `b x 1 x 1`."""

    def __init__(self, mean: Tensor, variance: Tensor) -> None:
        self.mean, self.variance = mean, variance

    @property
    def device(self) -> torch.device:
        return self.mean.device

    @property
    def dtype(self) -> torch.dtype:
        return self.mean.dtype

    def rsample(self, sample_shape: torch.Size | None = None) -> Tensor:
        shape = torch.Size() if sample_shape is None else sample_shape
        noise = torch.randn(*shape, *self.mean.shape, dtype=self.dtype, device=self.device)
        return self.mean + self.variance.sqrt() * noise


class Predictor(Model):
    """q(f*) of a fitted model at single points, in the costs' own units, unit-cube inputs."""

    num_outputs = 1

    def __init__(self, fit: Fit, *, pending: Tensor | None = None) -> None:
        """Factor the covariance of the pseudo-observations.

        Args:
            fit: the fitted model.
            pending: `m x d`, points under way. They are believed to return their mean, so that
                the variance around them shrinks and nothing else changes.
        """
        super().__init__()
        targets, variances = fit.pseudo_observations()
        self.fit, self.kernel = fit, fit.kernel
        self._set(fit.data.X, targets, variances)
        if pending is not None and len(pending):
            with torch.no_grad():
                mean = self._latent(pending)[0]
            believed = torch.full_like(mean, max(fit.given.noise_variance, 1e-6 * float(self.prior_variance)))
            self._set(torch.cat([fit.data.X, pending]), torch.cat([targets, mean]), torch.cat([variances, believed]))

    def _set(self, X: Tensor, targets: Tensor, variances: Tensor) -> None:
        with torch.no_grad():
            prior = covariance(self.kernel, X)
            self.prior_variance = prior.diagonal().mean()
            factor, info = torch.linalg.cholesky_ex(prior + torch.diag_embed(variances))
            if info.any():
                raise NumericalError("the posterior covariance is not positive definite; raise `noise_std`.")
            self.X, self.targets, self.variances, self.factor = X, targets, variances, factor
            self.weights = torch.cholesky_solve(targets.unsqueeze(-1), factor)
            self._quick = self._point_moments()

    def _point_moments(self) -> PointMoments | None:
        """Predictions in NumPy, for the kernels that are known there."""
        if not is_plain(self.kernel) or self.X.device.type != "cpu":
            return None
        base, scale = self.kernel.base_kernel, float(self.kernel.outputscale)
        smoothness = float(base.nu) if isinstance(base, MaternKernel) else math.inf
        if smoothness == 0.5:
            return None
        amplitude = np.full((1, len(self.X)), scale)
        latent = Component(self.X.numpy(), self.lengthscales.numpy(), smoothness, amplitude)
        return PointMoments([latent], self.factor, self.weights, [scale])

    def believing(self, pending: Tensor) -> "Predictor":
        """This model with points under way believed to return their mean."""
        earlier = self.X[len(self.fit.data.X) :]
        return Predictor(self.fit, pending=torch.cat([earlier, pending]))

    def doubting(self, factor: float) -> "Predictor":
        """This model with shorter lengthscales, so that it knows less about what was not tried."""
        return Predictor(self.fit.with_lengthscales(factor))

    @property
    def threshold(self) -> float:
        """The crash threshold in the costs' own units."""
        return self.fit.threshold

    @property
    def lengthscales(self) -> Tensor:
        """`d`, in the unit cube."""
        lengths: Tensor = self.kernel.base_kernel.lengthscale.detach().reshape(-1)
        return lengths.expand(self.X.shape[-1])

    @property
    def unit(self) -> float:
        """Prior standard deviation, in the costs' own units."""
        return self.fit.scale * float(self.prior_variance.sqrt())

    @property
    def noise_variance(self) -> float:
        """Of an evaluation, in the costs' own units."""
        return self.fit.scale**2 * self.fit.given.noise_variance

    def _latent(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and variance at `... x d`, in the kernel's units."""
        flat = X.reshape(-1, X.shape[-1])
        if self._quick is not None:
            mean, variance = self._quick(flat).reshape(2, *X.shape[:-1])
            return mean, variance
        cross = covariance(self.kernel, flat, self.X)
        mean = (cross @ self.weights).squeeze(-1)
        half = torch.linalg.solve_triangular(self.factor, cross.mT, upper=False)
        prior = self.kernel(flat, diag=True) if not is_plain(self.kernel) else self.kernel.outputscale
        variance = (prior - half.square().sum(-2)).clamp_min(1e-12 * self.prior_variance)
        return mean.reshape(X.shape[:-1]), variance.reshape(X.shape[:-1])

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation at `... x d`, each `...`, differentiable in X."""
        mean, variance = self._latent(X)
        return self.fit.offset + self.fit.scale * mean, self.fit.scale * variance.sqrt()

    def log_success(self, X: Tensor, *, threshold: float | None = None) -> Tensor:
        """Log success probability at `... x d` (`eq:predictive_constraint`).

        Args:
            X: `... x d`.
            threshold: to use instead of the model's own.
        """
        limit = self.threshold if threshold is None else threshold
        return X.new_zeros(X.shape[:-1]) if math.isinf(limit) else self._below(limit, *self._latent(X))

    def _below(self, limit: float, mean: Tensor, variance: Tensor) -> Tensor:
        width = self.fit.given.label_width
        centred = (limit - self.fit.offset) / self.fit.scale - mean
        return torch.special.log_ndtr(centred / (variance + width**2).sqrt())

    def predict(self, X: Tensor) -> Prediction:
        """Everything at `... x d` in one look."""
        mean, variance = self._latent(X)
        sure = math.isinf(self.threshold)
        success = torch.zeros_like(mean) if sure else self._below(self.threshold, mean, variance)
        return Prediction(self.fit.offset + self.fit.scale * mean, self.fit.scale * variance.sqrt(), success)

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> PointPosterior:
        """BoTorch's entry for single points, `b x 1 x d`."""
        mean, deviation = self.moments(X)
        return PointPosterior(mean.unsqueeze(-1), deviation.square().unsqueeze(-1))

    def sample_paths(self, count: int, generator: torch.Generator, *, features: int = 512) -> "Paths":
        """Draw functions from the posterior by pathwise conditioning.

        Math: f(x) = phi(x)' w + k(x, X) (K + D)^-1 (targets - phi(X)' w - D^(1/2) e),
            random Fourier features phi, w and e standard normal, D the pseudo-variances.

        Args:
            count: number of functions.
            generator: source of randomness.
            features: of the prior's approximation.
        """
        scale, base = self.kernel.outputscale.detach(), self.kernel.base_kernel
        nu = float(base.nu) if isinstance(base, MaternKernel) else math.inf
        draws = random_features(self.lengthscales.cpu(), nu, features, count, generator)
        draws = Features(*(one.to(self.X) for one in (draws.frequencies, draws.phases, scale.sqrt() * draws.weights)))
        prior = Paths(self, draws, None)
        noise = torch.randn(count, len(self.X), dtype=torch.float64, generator=generator).to(self.X)
        gap = self.targets - prior.latent(self.X) - self.variances.sqrt() * noise
        return Paths(self, draws, torch.cholesky_solve(gap.mT, self.factor).mT)


@dataclass(frozen=True)
class Features:
    """Functions from a unit-variance prior by random Fourier features, `s` of them.

    Attributes:
        frequencies, phases, weights: `m x d`, `m`, `s x m`; all functions share the first two.
    """

    frequencies: Tensor
    phases: Tensor
    weights: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        """Evaluate at common points `p x d`, or at each function's own, `s x p x d`; gives `s x p`."""
        return combine(
            torch.cos(torch.addmm(self.phases, X.reshape(-1, X.shape[-1]), self.frequencies.mT)), X, self.weights
        )


def combine(rows: Tensor, X: Tensor, weights: Tensor) -> Tensor:
    """Weighted sums over features: each function's own, at common points or at its own.

    Args:
        rows: `q x m`, features at all points of X.
        X: `p x d`, q = p common points; or `s x p x d`, q = s p.
        weights: `s x m`.

    Returns:
        `s x p`.
    """
    if X.dim() == 2:
        return (rows @ weights.mT).mT
    return torch.bmm(rows.reshape(*X.shape[:-1], -1), weights.unsqueeze(-1)).squeeze(-1)


def random_features(lengthscale: Tensor, nu: float, features: int, count: int, generator: torch.Generator) -> Features:
    """Draw functions from a Matern prior of variance 1 (nu = inf: RBF).

    Args:
        lengthscale: `d`.
        nu: smoothness.
        features: number of frequencies.
        count: number of functions.
        generator: source of randomness.
    """
    frequencies = torch.randn(features, len(lengthscale), dtype=torch.float64, generator=generator)
    if math.isfinite(nu):
        # A Matern spectrum is a Student t: a Gaussian over the root of a chi-squared.
        shape = torch.full((features, 1), nu, dtype=torch.float64)
        frequencies = frequencies / (torch._standard_gamma(shape, generator=generator) / nu).sqrt()
    phases = 2 * math.pi * torch.rand(features, dtype=torch.float64, generator=generator)
    weights = torch.randn(count, features, dtype=torch.float64, generator=generator)
    return Features(frequencies / lengthscale, phases, math.sqrt(2 / features) * weights)


@dataclass(frozen=True)
class Paths:
    """Functions drawn from a posterior, to be evaluated anywhere (`s` of them).

    Attributes:
        predictor: the model they come from.
        prior: draws from its prior.
        update: `s x n`, pathwise correction towards the data; None for prior draws.
    """

    predictor: Predictor
    prior: Features
    update: Tensor | None

    @torch.no_grad()
    def latent(self, X: Tensor) -> Tensor:
        """Evaluate at common points `p x d`, or at each function's own, `s x p x d`; gives `s x p`."""
        value = self.prior(X)
        if self.update is None:
            return value
        cross = covariance(self.predictor.kernel, X.reshape(-1, X.shape[-1]), self.predictor.X)
        return value + combine(cross, X, self.update)

    def __call__(self, X: Tensor) -> Tensor:
        """As `latent`, in the costs' own units."""
        fit = self.predictor.fit
        return fit.offset + fit.scale * self.latent(X)

    def with_violation(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """The functions, and zero: they break no limit of their own."""
        value = self(X)
        return value, torch.zeros_like(value)
