"""Whether crashes have a place, or strike at random: then no point is safer than another, and none is to be avoided."""

import math
from dataclasses import replace

import numpy as np
from scipy.special import log_ndtr

from crashbo.data import HybridData
from crashbo.inference.coupled_small import Coupling
from crashbo.inference.ep_small import SmallResult
from crashbo.models.costs import learn_costs
from crashbo.models.coupled import CoupledFit, Relation, fit_coupled

_ENOUGH = 15  # trials before crashes may be called random: two or three of them always seem to have a place
_MOST = 0.5  # share of crashes above which it is success that has a place, even where so few cannot show it
_EXPLAINED = 1 / 3  # share of the labels' surprise that a place must explain
_SURE = 8.0  # threshold of the margin, in its standard deviations, beyond which nothing crashes


def fit_crashes(data: HybridData, *, relation: Relation = "coupled", start: Coupling | None = None) -> CoupledFit:
    """Fit both latents, unless their margins do not tell which trials crash: then the costs alone.

    Args:
        data, relation, start: see `fit_coupled`.
    """
    return _judge(fit_coupled(data, relation=relation, start=start))


def with_trials(fit: CoupledFit, new: HybridData) -> CoupledFit:
    """The fit after more trials, hyperparameters kept; crashes that struck at random may turn out to have a place.

    Args:
        fit: of all earlier trials.
        new: the new trials only, costs in their own units.
    """
    if fit.rival is None:
        return fit.with_trials(new)
    return _judge(replace(fit, coupling=fit.rival, rival=None).with_trials(new), alone=fit.coupling)


def _judge(placed: CoupledFit, *, alone: Coupling | None = None) -> CoupledFit:
    """The fit, or the one without places if those explain too little.

    Args:
        placed: crashes have a place.
        alone: hyperparameters of the costs alone; None: learn them.
    """
    n, crashes = len(placed.data.X), int(placed.data.crashed.sum())
    if n < _ENOUGH or crashes > _MOST * n or explained(placed) >= _EXPLAINED:
        return placed
    coupling = _learn_alone(placed) if alone is None else alone
    return replace(placed, coupling=coupling, ep=SmallResult.silent(len(placed.data.X)), rival=placed.coupling)


def explained(fit: CoupledFit) -> float:
    """How much better margins tell each label, given all others, than the share of crashes does; 1 is perfect.

    Math: 1 - sum_i log p(label_i | place, other labels) / sum_i log p(label_i | share of crashes)

    The evidence says the same less clearly, for it has to be compared at learned hyperparameters.
    """
    ep, crashed = fit.ep, fit.data.crashed.numpy()
    cavity_variance = ep.variance / np.maximum(1 - ep.site_precision * ep.variance, 1e-12)
    cavity_mean = ep.mean - cavity_variance * ep.gradient
    by_place = log_ndtr(np.where(crashed, 1.0, -1.0) * cavity_mean / np.sqrt(cavity_variance))
    n, k = len(crashed), int(crashed.sum())
    by_share = k * math.log((k - 0.5) / n) + (n - k) * math.log((n - k - 0.5) / n)
    return 1 - float(by_place.sum()) / by_share


def _learn_alone(placed: CoupledFit) -> Coupling:
    """Hyperparameters of costs that crashes say nothing about, and of margins that never crash."""
    data, d = placed.data, placed.data.X.shape[-1]
    theta = np.exp(learn_costs(data.X[data.observed].numpy(), data.costs.numpy()).theta)
    variance, noise = theta[d:].tolist()
    return Coupling(theta[:d], placed.coupling.margin_lengthscale, variance, noise, 0.0, _SURE)
