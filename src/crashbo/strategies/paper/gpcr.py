"""A Gaussian process for classified regression, or a standard GP, of one output."""

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from crashbo.gp.inference import Posterior, condition_on_values, infer
from crashbo.gp.kernel import KernelName
from crashbo.gp.prediction import Prediction, Predictor
from crashbo.gp.rows import Hyperparameters, joint_covariance
from crashbo.gp.truncation import truncation
from crashbo.learning.threshold import ThresholdEstimate, ThresholdRule, estimate_threshold, threshold_deviation
from crashbo.learning.warp import Warp
from crashbo.strategies.base import Limit
from crashbo.strategies.paper.data import Data

Array = NDArray[np.float64]
_AS_TOLD = Warp()


@dataclass(frozen=True)
class Prior:
    """The zero-mean prior of one output, in units of its scaling.

    Attributes:
        lengthscale: `d`.
        variance: of the latent.
        noise: variance of a value's noise.
        threshold: mean and standard deviation of the threshold's hyperprior; None: maximum likelihood.
        kernel: of the latent.
        scaling: from the output's own units; none where hyperparameters are fixed.
    """

    lengthscale: Array
    variance: float
    noise: float
    threshold: tuple[float, float] | None
    kernel: KernelName
    scaling: Warp = _AS_TOLD

    def settings(self, threshold: float) -> Hyperparameters:
        """The engine's, with a threshold."""
        return Hyperparameters(
            self.lengthscale[None, None, :],
            np.full((1, 1, 1), math.sqrt(self.variance)),
            np.full((1, 1), self.noise),
            np.full((1, 1), threshold),
            np.zeros(1),
            self.kernel,
        )


@dataclass(frozen=True)
class GPCR:
    """The Gaussian q(f) of equations (10) and (14), with its threshold.

    Attributes:
        data: the trials.
        prior: hyperparameters.
        rule: how the threshold was found.
        estimate: of the threshold, in units of the scaling; +inf of an output that cannot fail.
        posterior: b = 1, in those units.
    """

    data: Data
    prior: Prior
    rule: ThresholdRule
    estimate: ThresholdEstimate
    posterior: Posterior

    @classmethod
    def fit(cls, data: Data, prior: Prior) -> "GPCR":
        """Estimate the threshold, then infer; a label that conflicts with the rest is relaxed where it stands."""
        rows, at = data.rows(prior.scaling(data.values)), prior.settings(0.0)
        given = condition_on_values(joint_covariance(rows, at), rows.values, at.row_noise(rows))
        rule = cls._rule(data, prior)
        found = estimate_threshold(given, data.sign, rule)
        relaxed = found.rates if found.rates.any() else None
        posterior = infer(rows, prior.settings(found.threshold), relaxed=relaxed, start=found.start.sites)
        return cls(data, prior, rule, found, posterior)

    @staticmethod
    def _rule(data: Data, prior: Prior) -> ThresholdRule:
        """Known, or searched for; 0 while there is no stable point."""
        if data.limit is not None:
            return ThresholdRule(fixed=float(prior.scaling(np.array(data.limit))))
        return ThresholdRule(prior=prior.threshold) if data.any_stable else ThresholdRule(fixed=0.0)

    @property
    def threshold(self) -> float:
        """In units of the scaling."""
        return self.estimate.threshold

    @property
    def estimated(self) -> bool:
        """Whether the threshold says something: learned from stable points, and finite."""
        return self.data.limit is None and self.data.any_stable and math.isfinite(self.threshold)

    @property
    def noise(self) -> float:
        """Noise variance as modelled, above the engine's floor."""
        return max(self.prior.noise, 1e-8 * self.prior.variance)

    @cached_property
    def limit(self) -> Limit | None:
        """The threshold in the output's own units, with its spread; None where it says nothing."""
        if self.data.limit is not None:
            return Limit(self.data.limit) if math.isfinite(self.data.limit) else None
        if not self.estimated:
            return None
        spread = threshold_deviation(self.posterior.given, self.data.sign, self.rule, self.estimate)
        scaling = self.prior.scaling
        return Limit(float(scaling.undo(np.array(self.threshold))), scaling.scale * spread)

    @cached_property
    def predictor(self) -> Predictor:
        """Of the latent, in units of the scaling."""
        return Predictor(self.posterior)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and standard deviation at `p x d`, in the output's own units."""
        q = self.predictor(X)
        return self.prior.scaling.undo_moments(q.mean[0, 0], np.sqrt(q.variance[0, 0]))

    def log_success(self, q: Prediction) -> Array:
        """Log probability of equation (17), `p`.

        Math: log Phi(z),  z = (c - mean) / deviation
        """
        return log_ndtr(self._z(q))

    def log_success_slope(self, q: Prediction) -> Array:
        """Gradient of `log_success` by the points, `p x d`."""
        if not math.isfinite(self.threshold):
            return np.zeros_like(q.X)
        z, deviation = self._z(q), np.sqrt(q.variance[0, 0])
        hazard = truncation(z).hazard
        by_mean = -hazard / deviation
        by_variance = -0.5 * hazard * z / q.variance[0, 0]
        return q.pull(by_mean[None, None], by_variance[None, None])

    def _z(self, q: Prediction) -> Array:
        return (self.threshold - q.mean[0, 0]) / np.sqrt(q.variance[0, 0])

    def believing(self, X: Array) -> "GPCR":
        """This model with points under way `q x d` that return their mean; the threshold stays."""
        if not len(X):
            return self
        mean = self.predictor(X).mean[0, 0]
        rows = self.data.rows(self.prior.scaling(self.data.values), X, mean)
        sites = self.posterior.ep.precision, self.posterior.ep.shift
        return replace(self, posterior=infer(rows, self.posterior.at, start=sites))
