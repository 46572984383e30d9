"""How much each parameter matters to the fitted model."""

from dataclasses import dataclass

import numpy as np

from crashbo.problem.arrays import Array
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.sobol import sobol
from crashbo.show.views import Source, View, modelled


@dataclass(frozen=True)
class Importance:
    """How much each parameter matters, `p` each, in the order of the space.

    Attributes:
        names: labels of the parameters.
        cost: share of the expected cost's variation.
        success: share of the success probability's variation.
        cost_change: typical change of the expected cost when this parameter alone is drawn anew.
        success_change: the same for the success probability.
        label: of the objective.
    """

    names: tuple[str, ...]
    cost: Array
    success: Array
    cost_change: Array
    success_change: Array
    label: str


def importance(source: Source, *, samples: int = 2048) -> Importance:
    """Measure how much each parameter matters to the cost and to success, by the fitted model.

    A variance-based measure: the total effect of Sobol in the form of Jansen, "how much does the
    prediction change when this parameter alone is drawn anew?". Chosen over the kernel's lengthscales
    because those say how fast a function wiggles, not how far it moves: a steep straight line has a long
    lengthscale. It also treats logarithmic, integer and categorical parameters alike, counts
    interactions, and works with one lengthscale for all. Moves count for the cost by the
    probability that both ends succeed, so that what the model only guesses behind the crash
    limit does not decide; crashing has its own measure.

    Math: effect_j = sum_i w_i (f(a_i) - f(a_i with x_j from b_i))^2 / (2 sum_i w_i),
        cost: f the posterior mean, w_i the product of both ends' success probabilities;
        success: f the success probability, w_i = 1; change_j = sqrt(effect_j); shares sum to 1.

    Args:
        source: what to draw.
        samples: of the space; the same ones every time.
    """
    seen = modelled(source)
    models = seen.models
    dimension = seen.space.dimension
    order = np.random.default_rng(0).permutation(samples)  # without it, points of one index have digits in common
    first, second = (
        seen.space.round(sobol(samples, dimension, 0)),
        seen.space.round(sobol(samples, dimension, 1)[order]),
    )
    base, likely = models.moments(first)[0], models.success(first)
    cost, success = [], []
    for block in seen.space.coordinates:
        moved = first.copy()
        moved[:, block.start : block.stop] = second[:, block.start : block.stop]
        other = models.success(moved)
        cost.append(_effect(base - models.moments(moved)[0], likely * other))
        success.append(_effect(likely - other, np.ones_like(likely)))
    return _gather(seen, np.array(cost), np.array(success))


def _effect(change: Array, weight: Array) -> float:
    return float((weight * np.square(change)).sum() / max(2 * float(weight.sum()), 1e-300))


def _gather(view: View, cost: Array, success: Array) -> Importance:
    if not view.models.any_cost:
        cost = np.zeros_like(cost)  # no cost was seen: nothing is known about it
    return Importance(
        names=tuple(view.label(name) for name in view.varying),
        cost=_shares(cost),
        success=_shares(success),
        cost_change=np.sqrt(cost),
        success_change=np.sqrt(success),
        label=view.label(OBJECTIVE),
    )


def _shares(effects: Array) -> Array:
    total = effects.sum()
    return effects / total if total > 0 else np.zeros_like(effects)
