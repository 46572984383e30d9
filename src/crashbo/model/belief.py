"""Models of all outputs, averaged over their hyperparameters."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import compress
from typing import Generic, Self, TypeVar, Unpack

import numpy as np
from scipy.special import ndtr

from crashbo.errors import InputError
from crashbo.model.average import ModelSet, reweighted_for_limits, sites_by_place, start_at
from crashbo.model.ep import Effort
from crashbo.model.inference import infer
from crashbo.model.moments import Moments, log_held
from crashbo.model.numbers import RANDOM, RELATED
from crashbo.model.prediction import Prediction, Predictor
from crashbo.model.reasons import Reasons
from crashbo.model.surrogate import Limit, Place, Relation
from crashbo.model.warp import Warp
from crashbo.problem.arrays import Array, Bools
from crashbo.problem.history import OBJECTIVE

AnyOutput = TypeVar("AnyOutput", bound="Output")


@dataclass(frozen=True)
class Output:
    """The models of one output, and which margins it has."""

    models: ModelSet
    reasons: Reasons = field(default_factory=Reasons)

    @property
    def weights(self) -> Array:
        return self.models.weights

    @cached_property
    def predictor(self) -> Predictor:
        return Predictor(self.models.posterior)

    @property
    def thresholds(self) -> Array:
        """`b x margins x 1`."""
        return self.models.posterior.at.threshold[:, 1:, None]

    @property
    def not_lapsed(self) -> Array:
        """`b x 1`, probability that nothing strikes at random: every margin may lapse."""
        return (1 - self.models.posterior.at.lapse[:, None]) ** max(self.models.block.margins, 1)

    def moments(self, X: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the value at `p x d`, in its own units: moments of the mixture."""
        return self.moments_of(self.predictor(X))

    def moments_of(self, q: Prediction) -> tuple[Array, Array]:
        """The same of a prediction, `p` each."""
        means, deviations = _unwarped(self.models.warps, q.mean[:, 0], np.sqrt(q.variance[:, 0]))
        mean = self.weights @ means
        return mean, np.sqrt(self.weights @ (np.square(deviations) + np.square(means - mean)))

    def log_held(self, q: Prediction) -> Array:
        """Log probability that every margin is within its limit, `b x p`, lapses aside."""
        return log_held(Moments.of(q), self.thresholds)

    def success(self, X: Array, *, lapsing: bool = True) -> Array:
        """Probability of success at `p x d`; without lapses, of what the place decides."""
        return self.success_of(self.predictor(X), lapsing=lapsing) if self.models.block.margins else np.ones(len(X))

    def success_of(self, q: Prediction, *, lapsing: bool = True) -> Array:
        """The same of a prediction, `p`."""
        if not self.models.block.margins:
            return np.ones(len(q.X))
        held = np.exp(self.log_held(q))
        return np.asarray(self.weights @ (held * self.not_lapsed if lapsing else held))

    def noise_share(self) -> float:
        """Standard deviation of the noise, relative to the spread of the values."""
        return float(self.weights @ np.sqrt(self.models.posterior.at.noise[:, 0]))

    def limit(self) -> Limit | None:
        """The most probable limit of the value, where it has one: of the models in which crashes are high values."""
        block = self.models.block
        if block.threshold is not None:
            return Limit(block.threshold)
        if not len(block.above) or not len(block.values):
            return None
        models = reweighted_for_limits(self.models) if block.self_limited else self.models
        related = models.correlation[:, 0] > RELATED
        share = float(models.weights[related].sum())
        if share < 0.5:
            return None
        mixing, (means, spreads) = models.posterior.at.mixing[related], models.limits()
        scale = mixing[:, 0, 0] / mixing[:, 1, 0]
        z, spread = scale * means[related, 0], scale * spreads[related, 0]
        values, deviations = _unwarped(compress(models.warps, related), z, spread)
        least = float(block.values.max()) if block.self_limited else -math.inf  # no limit lies below a value that held
        return _limit_of_mixture(values, deviations, models.weights[related] / share, least)

    def with_pending(self, X: Array) -> Self:
        """These models with points under way that end as expected: with the mean, or with the likelier label."""
        held = np.exp(self.weights @ self.log_held(self.predictor(X))) >= 0.5
        return self._assuming(X, held, tolerance=1e-3, max_sweeps=60)

    def _assuming(self, X: Array, held: Bools, *, labelled: bool = True, **effort: Unpack[Effort]) -> Self:
        """These models with more points, where the value is its mean if it held; also with labels or without."""
        if not len(X):
            return self
        models, block = self.models, self.models.block
        new = len(block.X) + np.arange(len(X))
        below, above = (new[held], new[~held]) if labelled else (new[:0], new[:0])
        grown = replace(
            block,
            X=np.concatenate([block.X, X]),
            value_point=np.concatenate([block.value_point, new[held]]),
            below=np.concatenate([block.below, below]),
            above=np.concatenate([block.above, above]),
            above_margin=np.concatenate([block.above_margin, np.zeros_like(above)]),
        )
        values = np.stack([warp(block.values) for warp in models.warps])
        rows = grown.rows(np.concatenate([values, self.predictor(X).mean[:, 0, held]], -1))
        effort["start"] = start_at(rows, sites_by_place(models.posterior))
        return replace(self, models=replace(models, posterior=infer(rows, models.posterior.at, **effort)))


def _unwarped(warps: Iterable[Warp], means: Array, deviations: Array) -> tuple[Array, Array]:
    """Means and standard deviations under each of `b` models, `b x ...`, in the value's own units."""
    each = [warp.undo_moments(mean, spread) for warp, mean, spread in zip(warps, means, deviations, strict=True)]
    values, spreads = zip(*each, strict=True)
    return np.stack(values), np.stack(spreads)


def _limit_of_mixture(means: Array, deviations: Array, weights: Array, least: float) -> Limit:
    """A limit whose density is a mixture of `b` Gaussians, no less than `least`.

    The mode is found between their means, to one part in a thousand, quantiles to a twentieth of the deviations.
    """
    grid = np.linspace(means.min(), means.max(), 1001)
    wide = np.maximum(deviations, max(grid[1] - grid[0], 1e-300))[:, None]
    density = weights @ (np.exp(-0.5 * np.square((grid - means[:, None]) / wide)) / wide)
    mode = float(grid[density.argmax()])
    grid = np.unique(means + np.linspace(-5.0, 5.0, 201)[:, None] * deviations)
    below = weights @ ndtr((grid - means[:, None]) / np.maximum(deviations, 1e-300)[:, None])
    lowest, low, high, highest = np.interp((0.025, 0.16, 0.84, 0.975), below, grid).tolist()
    return Limit(max(mode, least), (high - low) / 2, (max(lowest, least), max(highest, least)))


@dataclass(frozen=True)
class Averaged(Generic[AnyOutput]):
    """Models of all outputs; see `Surrogate`."""

    objective: AnyOutput  # cost and crash margins
    constraints: Mapping[str, AnyOutput]  # each with its own limit

    @property
    def any_cost(self) -> bool:
        return len(self.objective.models.block.values) > 0

    @property
    def outputs(self) -> tuple[str, ...]:
        return (OBJECTIVE, *self.constraints)

    def _of(self, output: str) -> AnyOutput:
        if output not in self.outputs:
            raise InputError(f"`output` must be one of {', '.join(map(repr, self.outputs))}; got {output!r}.")
        return self.objective if output == OBJECTIVE else self.constraints[output]

    def moments(self, X: Array, output: str = OBJECTIVE) -> tuple[Array, Array]:
        return self._of(output).moments(X)

    def success(self, X: Array, output: str | None = None) -> Array:
        if output is not None:
            return self._of(output).success(X)
        return self.objective.success(X) * self.constraints_hold(X)

    def success_without_lapses(self, X: Array) -> Array:
        """Success probability at `p x d` with random crashes left aside, which no choice of the point avoids."""
        return self.objective.success(X, lapsing=False) * self.constraints_hold(X)

    def outlook(self, X: Array) -> tuple[Array, Array, Array]:
        """Moments of the objective, and success probability without lapses, at `p x d`: one prediction for all."""
        q = self.objective.predictor(X)
        success = self.objective.success_of(q, lapsing=False) * self.constraints_hold(X)
        return *self.objective.moments_of(q), success

    def constraints_hold(self, X: Array) -> Array:
        """Probability that all constraints hold at `p x d`."""
        each = [one.success(X, lapsing=False) for one in self.constraints.values()]
        return np.prod([np.ones(len(X)), *each], 0)

    @property
    def limits(self) -> dict[str, Limit]:
        found = {name: self._of(name).limit() for name in self.outputs}
        return {name: limit for name, limit in found.items() if limit is not None}

    @property
    def relation(self) -> Relation | None:
        crashes = self.objective.models.block.above_margin
        return self._relation(int(np.bincount(crashes).argmax())) if self.any_cost and len(crashes) else None

    def _relation(self, margin: int) -> Relation:
        models = self.objective.models
        weights, rho, lapse = models.weights, models.correlation[:, margin], models.posterior.at.lapse
        random = lapse >= RANDOM
        high, low = ~random & (rho > RELATED), ~random & (rho < -RELATED)
        kinds = (high, ~(random | high | low), low, random)
        is_high, unrelated, is_low, is_random = (float(weights[kind].sum()) for kind in kinds)
        rate = float(weights[random] @ lapse[random]) / is_random if is_random else 0.0
        rarer = min(len(models.block.above), len(models.block.values))
        return Relation(is_high, unrelated, is_low, is_random, rate, rarer)

    def places(self) -> list[Place]:
        """Which named reasons have a place of their own, and where: the crash most probably beyond that margin."""
        output, found = self.objective, list[Place]()
        block, reasons = output.models.block, output.reasons
        for margin, name in enumerate(reasons.names):
            points = block.X[block.above[block.above_margin == margin]]
            if name and len(points):
                q = output.predictor(points)
                z = (output.thresholds[:, margin] - q.mean[:, 1 + margin]) / np.sqrt(q.variance[:, 1 + margin])
                risk = 1 - output.weights @ ndtr(z)
                top = int(risk.argmax())
                found.append(Place(name, len(points), self._relation(margin), points[top], float(risk[top])))
        return found

    def with_pending(self, X: Array) -> Self:
        """These models with points under way that end as expected."""
        constraints = {name: one.with_pending(X) for name, one in self.constraints.items()}
        return replace(self, objective=self.objective.with_pending(X), constraints=constraints)
