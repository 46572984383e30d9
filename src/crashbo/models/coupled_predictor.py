"""Predictions and joint samples of cost and margin, in a handful of torch operations."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from botorch.models.model import Model
from torch import Tensor

from crashbo.errors import NumericalError
from crashbo.inference.base import NOISE_FLOOR
from crashbo.models.coupled import CoupledFit
from crashbo.models.moments import Component, PointMoments
from crashbo.models.predictor import Features, PointPosterior, Prediction, combine, random_features

_SILENT = 1e-8  # site precision, relative to the margin's prior, below which a label says nothing
_BELIEVED = 0.05  # variance of the margin at a point under way


class Joint(NamedTuple):
    """Cost and margin at points, each `...`, standardised: means, variances, covariance."""

    cost: Tensor
    cost_variance: Tensor
    margin: Tensor
    margin_variance: Tensor
    covariance: Tensor


class CoupledPredictor(Model):
    """Cost and success of a `CoupledFit` at single points; the BoTorch model of the cost."""

    num_outputs = 1

    def __init__(self, fit: CoupledFit, *, pending: Tensor | None = None) -> None:
        """Factor the joint covariance of costs and label sites.

        Args:
            fit: the fitted pair.
            pending: `m x d`, points under way, believed to return their means.
        """
        super().__init__()
        self.fit, self.pending = fit, pending
        at, ep, data = fit.coupling, fit.ep, fit.data
        self.cost_length = torch.from_numpy(at.cost_lengthscale)
        self.margin_length = torch.from_numpy(at.margin_lengthscale)
        self.deviation, self.correlation = math.sqrt(at.cost_variance), at.correlation
        self.own = 1 - at.correlation**2
        self.X = data.X
        precision, shift = torch.from_numpy(ep.site_precision), torch.from_numpy(ep.site_shift)
        speaks = precision > _SILENT
        noise = max(at.noise_variance, NOISE_FLOOR * at.cost_variance)
        targets = torch.cat([data.costs, at.threshold + shift[speaks] / precision[speaks]])
        variances = torch.cat([torch.full_like(data.costs, noise), 1 / precision[speaks]])
        self._set(data.X[data.observed], data.X[speaks], targets, variances)
        if pending is not None and len(pending):
            self._believe(pending, max(noise, 1e-6 * at.cost_variance))

    def _believe(self, pending: Tensor, noise: float) -> None:
        with torch.no_grad():
            there = self.joint(pending)
        k = len(self.cost_X)
        targets = torch.cat([self.targets[:k], there.cost, self.targets[k:], there.margin])
        guess = torch.full_like(there.cost, noise), torch.full_like(there.margin, _BELIEVED)
        variances = torch.cat([self.variances[:k], guess[0], self.variances[k:], guess[1]])
        self.X = torch.cat([self.X, pending])
        self._set(torch.cat([self.cost_X, pending]), torch.cat([self.margin_X, pending]), targets, variances)

    def _set(self, cost_X: Tensor, margin_X: Tensor, targets: Tensor, variances: Tensor) -> None:
        self.cost_X, self.margin_X, self.targets, self.variances = cost_X, margin_X, targets, variances
        self._both = torch.cat([cost_X, margin_X])
        # Every row is `amplitude` times the same unit latent f / s, margins have h besides.
        self._amplitude = torch.cat(
            [
                torch.full((len(cost_X),), self.deviation, dtype=torch.float64),
                torch.full((len(margin_X),), self.correlation, dtype=torch.float64),
            ]
        )
        prior = matern52(self._both, self._both, self.cost_length) * self._amplitude * self._amplitude.unsqueeze(-1)
        k = len(cost_X)
        prior[k:, k:] += self.own * matern52(margin_X, margin_X, self.margin_length)
        factor, info = torch.linalg.cholesky_ex(prior + torch.diag(variances))
        if info.any():
            raise NumericalError("the covariance of costs and margins is not positive definite; near-duplicates?")
        self.factor = factor
        self.weights = torch.cholesky_solve(targets.unsqueeze(-1), factor)
        self._cost, self.point_moments = self._make_moments()

    def _make_moments(self) -> tuple[PointMoments, PointMoments]:
        """Predictions of the cost, and of both."""
        length, amplitude = self.cost_length.numpy(), self._amplitude.numpy()
        outer = np.array([[self.deviation], [self.correlation]])
        shared = Component(self._both.numpy(), length, 2.5, outer * amplitude)
        alone = np.array([[0.0], [self.own]]) * np.ones(len(self.margin_X))
        own = Component(self.margin_X.numpy(), self.margin_length.numpy(), 2.5, alone, len(self.cost_X))
        variance = self.deviation**2
        cost = Component(self._both.numpy(), length, 2.5, self.deviation * amplitude[None])
        return (
            PointMoments([cost], self.factor, self.weights, [variance]),
            PointMoments([shared, own], self.factor, self.weights, [variance, 1.0, self.correlation * self.deviation]),
        )

    def believing(self, pending: Tensor) -> "CoupledPredictor":
        """This model with points under way believed to return their means."""
        return CoupledPredictor(
            self.fit, pending=pending if self.pending is None else torch.cat([self.pending, pending])
        )

    def doubting(self, factor: float) -> "CoupledPredictor":
        """This model with shorter lengthscales of the cost, so that it knows less about what was not tried."""
        return CoupledPredictor(self.fit.with_lengthscales(factor), pending=self.pending)

    @property
    def lengthscales(self) -> Tensor:
        """`d`, of the cost, in the unit cube."""
        return self.cost_length

    @property
    def unit(self) -> float:
        """Prior standard deviation of the cost, in its own units."""
        return self.fit.scale * self.deviation

    @property
    def threshold(self) -> float:
        """See `CoupledFit.threshold`."""
        return self.fit.threshold

    @property
    def noise_variance(self) -> float:
        """Of an evaluation, in the costs' own units."""
        return self.fit.scale**2 * self.fit.coupling.noise_variance

    def cross(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Prior covariances of cost and margin at `p x d` with all that is known, `p x m` each."""
        shared = matern52(X, self._both, self.cost_length) * self._amplitude
        own = self.own * matern52(X, self.margin_X, self.margin_length)
        return self.deviation * shared, self.correlation * shared + torch.nn.functional.pad(own, (len(self.cost_X), 0))

    def joint(self, X: Tensor) -> Joint:
        """Posterior of cost and margin at `... x d`, differentiable in X."""
        found = self.point_moments(X.reshape(-1, X.shape[-1]))
        return Joint(*(one.reshape(X.shape[:-1]) for one in found))

    def moments(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of the cost at `... x d`, each `...`, in its own units."""
        mean, variance = self._cost(X.reshape(-1, X.shape[-1])).reshape(2, *X.shape[:-1])
        return self.fit.offset + self.fit.scale * mean, self.fit.scale * variance.sqrt()

    def log_success(self, X: Tensor) -> Tensor:
        """Log probability that the margin at `... x d` stays below its threshold."""
        return self.predict(X).log_success

    def predict(self, X: Tensor) -> Prediction:
        """Everything at `... x d` in one look."""
        there, fit = self.joint(X), self.fit
        slack = (fit.coupling.threshold - there.margin) / there.margin_variance.sqrt()
        mean, deviation = fit.offset + fit.scale * there.cost, fit.scale * there.cost_variance.sqrt()
        return Prediction(mean, deviation, torch.special.log_ndtr(slack))

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> PointPosterior:
        """BoTorch's entry for the cost at single points, `b x 1 x d`."""
        mean, deviation = self.moments(X)
        return PointPosterior(mean.unsqueeze(-1), deviation.square().unsqueeze(-1))

    @torch.no_grad()
    def sample_paths(self, count: int, generator: torch.Generator, *, features: int = 512) -> "CoupledPaths":
        """Draw pairs of functions, cost and margin, by pathwise conditioning (see `Predictor.sample_paths`)."""
        shared, own = (
            random_features(length, 2.5, features, count, generator)
            for length in (self.cost_length, self.margin_length)
        )
        noise = torch.randn(count, len(self.targets), dtype=torch.float64, generator=generator)
        k, rest = len(self.cost_X), math.sqrt(self.own)
        values = self._amplitude * shared(self._both)
        values[:, k:] += rest * own(self.margin_X)
        gap = self.targets - values - self.variances.sqrt() * noise
        update = torch.cholesky_solve(gap.mT, self.factor).mT
        return CoupledPaths(
            self,
            _Path(shared, self._both, self.cost_length, self._amplitude * update),
            _Path(own, self.margin_X, self.margin_length, rest * update[:, k:]),
        )


@dataclass(frozen=True)
class _Path:
    """Draws of one latent (`s` of them): prior draws and their corrections towards what is known.

    Attributes:
        prior: random features.
        points: `m x d`, where something is known.
        lengthscale: `d`.
        update: `s x m`.
    """

    prior: Features
    points: Tensor
    lengthscale: Tensor
    update: Tensor

    def __call__(self, X: Tensor) -> Tensor:
        """Evaluate at `p x d` or `s x p x d`, `s x p`."""
        flat, prior = X.reshape(-1, X.shape[-1]), self.prior
        waves = torch.addmm(prior.phases, flat, prior.frequencies.mT).cos_()
        # Distances from inner products: their rounding is harmless to a kernel that is smooth at 0.
        r = torch.cdist(flat / self.lengthscale, self.points / self.lengthscale).mul_(math.sqrt(5))
        known = r.square().div_(3).add_(r).add_(1).mul_(r.neg_().exp_())
        rows = torch.cat([waves, known], -1)
        return combine(rows, X, torch.cat([prior.weights, self.update], -1))


@dataclass(frozen=True)
class CoupledPaths:
    """Pairs of functions drawn from a posterior (`s` of them).

    Attributes:
        predictor: the model they come from.
        shared, own: draws of f / s and of h.
    """

    predictor: CoupledPredictor
    shared: _Path
    own: _Path

    @torch.no_grad()
    def latent(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Standardised cost and margin at `p x d` or `s x p x d`, `s x p` each."""
        model, shared = self.predictor, self.shared(X)
        return model.deviation * shared, model.correlation * shared + math.sqrt(model.own) * self.own(X)

    def __call__(self, X: Tensor) -> Tensor:
        """Costs at `p x d` or `s x p x d`, `s x p`, in their own units."""
        return self.with_violation(X)[0]

    def with_violation(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Cost in its own units, and by how much the margin exceeds its threshold, 0 where it does not."""
        cost, margin = self.latent(X)
        fit = self.predictor.fit
        return fit.offset + fit.scale * cost, (margin - fit.coupling.threshold).clamp_min(0.0)


def matern52(X: Tensor, other: Tensor, lengthscale: Tensor) -> Tensor:
    """Matern correlation of smoothness 5/2, `... x m x n`."""
    r = math.sqrt(5) * torch.cdist(X / lengthscale, other / lengthscale, compute_mode="donot_use_mm_for_euclid_dist")
    return (1 + r + r.square() / 3) * torch.exp(-r)
