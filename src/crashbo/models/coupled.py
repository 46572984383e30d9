"""Costs and crashes with a learned relation, from "a crash is a high cost" to "unrelated to cost".

The margin `g(x) = rho f(x) / s + sqrt(1 - rho^2) h(x)` of a trial decides: it succeeds while the
margin stays at or below a threshold. See `crashbo.inference.coupled_small` for the maths.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize

from crashbo.data import HybridData, cost_scale
from crashbo.errors import NumericalError
from crashbo.inference.coupled_small import Coupling, SmallCoupled
from crashbo.inference.ep_small import SmallResult
from crashbo.models.costs import cost_bounds, learn_costs, log_cost_prior, usual_costs
from crashbo.models.hyperparameters import log_lengthscale_prior

Array = NDArray[np.float64]
Relation = Literal["coupled", "separate"]

# Of the margin, whose prior variance is 1: an unexplored point succeeds with probability 0.87 or so.
_THRESHOLD_PRIOR = (1.6, 1.0)
_THRESHOLD_RANGE = (-6.0, 8.0)
_CORRELATION_PRIOR = 0.5  # power of 1 - rho^2 below 0: a few crashes are no proof that the lowest costs crash
_STARTS = {"coupled": (-0.9, 0.95), "separate": (0.0,)}  # of the correlation
_EFFORT = {"ftol": 1e-5, "gtol": 1e-3}  # of L-BFGS-B: far finer than the posterior is wide
_ROUGH, _FINE = 1e-2, 1e-4  # tolerance of EP while hyperparameters are learned, and of its result
_FIRST = 12  # iterations from each start, before the likelier one goes on


@dataclass(frozen=True)
class CoupledFit:
    """A fitted pair of latents. Costs are `offset + scale * f`.

    Attributes:
        data: trials, costs standardised.
        coupling: hyperparameters.
        ep: the result for the margins, relative to the threshold.
        offset, scale: of the costs.
        rival: the hyperparameters if crashes had a place, where they strike at random (see
            `crashbo.models.chance`) and `coupling` has none for them; else None.
    """

    data: HybridData
    coupling: Coupling
    ep: SmallResult
    offset: float
    scale: float
    rival: Coupling | None = None

    def with_trials(self, new: HybridData) -> "CoupledFit":
        """Return the fit after more trials: hyperparameters and scale stay.

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
        return replace(self, data=data, ep=_solve(data, self.coupling, self.ep))

    def with_lengthscales(self, factor: float) -> "CoupledFit":
        """Return the fit with other lengthscales of the cost, all else as it is: labels say what they said."""
        return replace(self, coupling=replace(self.coupling, cost_lengthscale=factor * self.coupling.cost_lengthscale))

    @property
    def placed(self) -> Coupling:
        """The hyperparameters to learn on from, crashes having a place."""
        return self.rival or self.coupling

    @property
    def chance(self) -> float:
        """Probability that a trial crashes wherever it is made; 0 if crashes have a place."""
        return 0.0 if self.rival is None else (int(self.data.crashed.sum()) + 1) / (len(self.data.X) + 5)

    @property
    def correlation(self) -> float:
        """Of cost and margin: 1 if a crash is a high cost, 0 if unrelated, below 0 if costs are low there."""
        return self.coupling.correlation

    @property
    def threshold(self) -> float:
        """Cost above which a trial is more likely to crash, in the costs' own units; +inf if unrelated."""
        rho = self.coupling.correlation
        if rho < 0.5:
            return math.inf
        return self.offset + self.scale * math.sqrt(self.coupling.cost_variance) * self.coupling.threshold / rho


def fit_coupled(data: HybridData, *, relation: Relation = "coupled", start: Coupling | None = None) -> CoupledFit:
    """Fit both latents to trials by MAP: hyperparameters, correlation and threshold together.

    L-BFGS-B on log evidence plus log priors from one start per relation; after a few iterations the
    likelier one goes on. EP runs inside, warm-started.

    Args:
        data: trials, at least one cost and one crash, costs in their own units.
        relation: "coupled" learns the correlation, "separate" fixes it at 0.
        start: hyperparameters of nearly the same trials, to begin there and nowhere else.

    Raises:
        NumericalError: no hyperparameters gave a sound model.
    """
    offset, scale = cost_scale(data)
    scaled = data.scaled(offset, scale)
    search = _Search(_evidence(scaled, _ROUGH), data.X.shape[-1], fixed=relation == "separate")
    if start is not None:
        search.descend(_pack(start))
    else:
        first = search.guess(scaled)
        for correlation in _STARTS[relation]:
            search.descend(_pack(replace(first, correlation=correlation)), iterations=_FIRST)
        if search.best is not None:
            search.descend(search.best)
    if search.best is None:
        raise NumericalError("the crash model could not be fitted: expectation propagation did not converge.")
    coupling = _unpack(search.best)
    return CoupledFit(scaled, coupling, _solve(scaled, coupling, search.ep), offset, scale)


def _evidence(data: HybridData, tolerance: float) -> SmallCoupled:
    arrays = data.X.numpy(), data.sign.numpy(), data.observed.numpy(), data.costs.numpy()
    return SmallCoupled(*arrays, tolerance=tolerance)


def _solve(data: HybridData, coupling: Coupling, start: SmallResult | None) -> SmallResult:
    """EP at given hyperparameters."""
    evidence = _evidence(data, _FINE)
    if start is not None:
        evidence.remember(start)
    return evidence.solve(coupling)


class _Search:
    """Descends the negative log posterior, remembering the best point seen."""

    def __init__(self, evidence: SmallCoupled, dimension: int, *, fixed: bool) -> None:
        self.evidence, self.dimension, self.fixed = evidence, dimension, fixed
        self.best: Array | None = None
        self.value = math.inf
        self.ep: SmallResult | None = None

    def guess(self, data: HybridData) -> Coupling:
        """Half-way to what the costs alone suggest, which is quick to find, for it takes no EP.

        All the way would often end at the edge of what double precision can invert, where a descent gets stuck.
        """
        d = self.dimension
        seen = learn_costs(data.X[data.observed].numpy(), data.costs.numpy()).theta
        logs = 0.5 * (usual_costs(d) + seen)
        length = np.full(d, 0.3 * math.sqrt(d))
        return Coupling(np.exp(logs[:d]), length, math.exp(logs[d]), math.exp(logs[d + 1]), 0.0, _THRESHOLD_PRIOR[0])

    def descend(self, start: Array, *, iterations: int = 60) -> None:
        correlation = start[-2]
        *lengths, variance, noise = cost_bounds(self.dimension)
        rho = (correlation, correlation) if self.fixed else (-0.999, 0.999)
        bounds = [*lengths, *lengths, variance, noise, rho, _THRESHOLD_RANGE]
        self.evidence.forget()
        if self.ep is not None and start is self.best:
            self.evidence.remember(self.ep)
        effort = {**_EFFORT, "maxiter": iterations}
        minimize(self.negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=effort)

    def negative(self, theta: Array) -> tuple[float, Array]:
        """Negative log posterior and its gradient."""
        try:
            found = self.evidence(_unpack(theta))
        except NumericalError:
            self.evidence.forget()
            return 1e12, np.zeros_like(theta)
        prior, slope = _log_prior(theta)
        value = -found.value - prior
        if value < self.value and found.ep.converged:
            self.value, self.best, self.ep = value, theta.copy(), found.ep
        return value, -found.gradient - slope


def _pack(at: Coupling) -> Array:
    """Logs of lengthscales (cost, margin), of cost variance and noise, then correlation and threshold."""
    lengths = np.log(np.concatenate([at.cost_lengthscale, at.margin_lengthscale]))
    rest = [math.log(at.cost_variance), math.log(at.noise_variance), at.correlation, at.threshold]
    return np.concatenate([lengths, rest])


def _unpack(theta: Array) -> Coupling:
    d = (len(theta) - 4) // 2
    variance, noise, correlation, threshold = theta[2 * d :].tolist()
    return Coupling(
        np.exp(theta[:d]), np.exp(theta[d : 2 * d]), math.exp(variance), math.exp(noise), correlation, threshold
    )


def _log_prior(theta: Array) -> tuple[float, Array]:
    """Log prior of `_pack`ed hyperparameters up to a constant, and its gradient."""
    d = (len(theta) - 4) // 2
    slope = np.zeros_like(theta)
    of_cost = [*range(d), 2 * d, 2 * d + 1]
    cost, slope[of_cost] = log_cost_prior(theta[of_cost])
    margin, slope[d : 2 * d] = log_lengthscale_prior(theta[d : 2 * d])
    rho = min(theta[-2], 0.0)
    own = 1 - rho**2
    slope[-2] = -2 * _CORRELATION_PRIOR * rho / own
    z = (theta[-1] - _THRESHOLD_PRIOR[0]) / _THRESHOLD_PRIOR[1]
    slope[-1] = -z / _THRESHOLD_PRIOR[1]
    return cost + margin + _CORRELATION_PRIOR * math.log(own) - 0.5 * z**2, slope
