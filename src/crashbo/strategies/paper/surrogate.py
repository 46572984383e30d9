"""The models of all outputs at one moment, as the paper's method sees them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.errors import InputError
from crashbo.gp.prediction import Prediction
from crashbo.history import OBJECTIVE, History
from crashbo.learning.schedule import learning_size
from crashbo.strategies.averaged import Memory
from crashbo.strategies.base import Limit, Relation
from crashbo.strategies.paper.data import Data, constraint_data, objective_data
from crashbo.strategies.paper.gpcr import GPCR, Prior
from crashbo.strategies.paper.hyperparameters import fixed_prior, learned_prior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PaperModels:
    """A GPCR, or a standard GP, of every output; see `Surrogate`.

    Attributes:
        objective: absorbs crashes.
        constraints: each with its own threshold.
    """

    objective: GPCR
    constraints: Mapping[str, GPCR]

    @property
    def any_cost(self) -> bool:
        """See `Surrogate`."""
        return self.objective.data.any_stable

    @property
    def outputs(self) -> tuple[str, ...]:
        """See `Surrogate`."""
        return (OBJECTIVE, *self.constraints)

    def model(self, output: str) -> GPCR:
        """The model of one output."""
        if output == OBJECTIVE:
            return self.objective
        if output not in self.constraints:
            raise InputError(f"`output` must be one of {', '.join(map(repr, self.outputs))}; got {output!r}.")
        return self.constraints[output]

    def moments(self, X: Array, output: str = OBJECTIVE) -> tuple[Array, Array]:
        """See `Surrogate`."""
        return self.model(output).moments(X)

    def success(self, X: Array, output: str | None = None) -> Array:
        """See `Surrogate`."""
        models = [self.model(one) for one in (self.outputs if output is None else (output,))]
        return np.exp(sum((one.log_success(one.predictor(X)) for one in models), np.zeros(len(X))))

    def log_constraints(self, X: Array, *, slope: bool = False) -> tuple[Array, Array]:
        """Log probability that all constraints hold at `p x d`, and its gradient by the points if asked for.

        Math: sum_j log Pr(g_j(x) <= c_j)     (the product in equation (20))
        """
        total, gradient = np.zeros(len(X)), np.zeros_like(X)
        for one in self.constraints.values():
            q = one.predictor(X)
            total = total + one.log_success(q)
            if slope:
                gradient = gradient + one.log_success_slope(q)
        return total, gradient

    def log_success(self, X: Array, *, slope: bool = False) -> tuple[Array, Array, Prediction]:
        """The same with the objective's own crashes, and the objective's prediction."""
        q = self.objective.predictor(X)
        total, gradient = self.log_constraints(X, slope=slope)
        total = total + self.objective.log_success(q)
        return total, gradient + self.objective.log_success_slope(q) if slope else gradient, q

    @property
    def limits(self) -> dict[str, Limit]:
        """See `Surrogate`: the estimates of equations (15) or (16), each with its spread."""
        found = {name: self.model(name).limit for name in self.outputs}
        return {name: limit for name, limit in found.items() if limit is not None}

    @property
    def relation(self) -> Relation | None:
        """See `Surrogate`: a crash is a high cost, by assumption."""
        if not self.any_cost or not self.objective.data.any_crash:
            return None
        return Relation(high=1.0, unrelated=0.0, low=0.0)

    def believing(self, X: Array) -> "PaperModels":
        """These models with points under way that return their mean."""
        if not len(X):
            return self
        constraints = {name: one.believing(X) for name, one in self.constraints.items()}
        return PaperModels(self.objective.believing(X), constraints)


def model_outputs(history: History, memory: Memory) -> PaperModels:
    """Fit all outputs, a pure function of the trials."""
    if not history.trials:
        raise InputError("`trials` must hold at least one trial before there is a model; got none. Tell one.")
    key = _key(history, "models")
    known = memory.get(key)
    if isinstance(known, PaperModels):
        return known
    found = {}
    for output in (OBJECTIVE, *(one.name for one in history.constraints)):
        data = output_data(history, output)
        if data is not None:
            found[output] = GPCR.fit(data, _prior(history, output, data, memory))
    models = PaperModels(found.pop(OBJECTIVE), found)
    memory.put(key, models)
    return models


def output_data(history: History, output: str) -> Data | None:
    """The trials of one output; None while nothing was seen of it."""
    if output == OBJECTIVE:
        return objective_data(history)
    return constraint_data(history, next(one for one in history.constraints if one.name == output))


def _prior(history: History, output: str, data: Data, memory: Memory) -> Prior:
    """Fixed hyperparameters, or those learned from as many of the first trials as the schedule says."""
    fixed = history.options.fixed.get(output)
    if fixed is not None:
        return fixed_prior(fixed, history.space.dimension)
    early = history.first(learning_size(len(history.trials)))
    before = output_data(early, output)
    if before is None or _kind(before) != _kind(data):
        return learned_prior(data)
    key = _key(early, output)
    known = memory.get(key)
    if not isinstance(known, Prior):
        known = learned_prior(before)
        memory.put(key, known)
    return known


def _kind(data: Data) -> tuple[bool, bool]:
    """Trials of one kind have the same hyperparameters."""
    return data.any_stable, data.limit is not None and math.isinf(data.limit)


def _key(history: History, purpose: str) -> object:
    trials = tuple(
        (tuple(trial.params.items()), trial.objective, tuple(trial.constraints.items())) for trial in history.trials
    )
    fixed = tuple(sorted((name, repr(one)) for name, one in history.options.fixed.items()))
    return "paper", purpose, history.space, history.constraints, history.direction, fixed, trials
