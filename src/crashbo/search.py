"""From models to a decision: the next point to try, and the best guess."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from torch import Tensor

from crashbo.acquisition.entropy import MinValueEntropySearch
from crashbo.acquisition.failures import FailureAware, success_somewhere
from crashbo.acquisition.improvement import ConstrainedMinValueEntropySearch
from crashbo.acquisition.maximise import Effort, Maximum, Round, maximise, sobol
from crashbo.acquisition.minimum import Limit, MinimumSampler, PathwiseMinimum, VirtualMinimum
from crashbo.errors import InputError
from crashbo.models.surrogates import OBJECTIVE, CrashModel, FixedModel, Surrogates
from crashbo.outcome import is_number
from crashbo.space import Space

_SAMPLERS: dict[str, MinimumSampler] = {"pathwise": PathwiseMinimum(), "virtual": VirtualMinimum()}


@dataclass(frozen=True)
class Options:
    """How the optimizer searches; the defaults need no tuning.

    Attributes:
        initial: quasi-random trials before the models decide; None: 2 d, at least 3, at most 10.
        random_start: draw the initial trials uniformly instead (the paper's way).
        delta: accepted probability of failure of the best guess, and of the mode switch.
        samples: of the minimum, for mES and mESCO.
        sampler: "pathwise", or "virtual" for the paper's virtual evaluations.
        fixed: hyperparameters that are not learned, by output ("objective" or a constraint).
        crashes: what a crash says about the cost. "absorb": it is a high cost (the paper's way);
            "separate": nothing; "coupled": learn it from the trials. "auto" is "coupled" where the
            hyperparameters are learned.
        raw: quasi-random points looked at when an acquisition is maximised.
    """

    initial: int | None = None
    random_start: bool = False
    delta: float = 0.05
    samples: int = 10
    sampler: str = "pathwise"
    fixed: Mapping[str, FixedModel] = field(default_factory=dict)
    crashes: Literal["auto", "absorb", "separate", "coupled"] = "auto"
    raw: int = 512

    def __post_init__(self) -> None:
        for name in ("initial", "samples", "raw"):
            value = getattr(self, name)
            allowed = value is None and name == "initial"
            if not allowed and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                rule = "an integer >= 1 or None" if name == "initial" else "an integer >= 1"
                raise InputError(f"`{name}` must be {rule}; got {value!r}.")
        if not (is_number(self.delta) and 0 < self.delta < 1):
            raise InputError(f"`delta` must lie between 0 and 1; got {self.delta!r}.")
        if self.sampler not in _SAMPLERS:
            raise InputError(f"`sampler` must be one of {sorted(_SAMPLERS)}; got {self.sampler!r}.")
        if self.crashes not in ("auto", "absorb", "separate", "coupled"):
            rule = "'auto', 'absorb', 'separate' or 'coupled'"
            raise InputError(f"`crashes` must be {rule}; got {self.crashes!r}.")
        if self.crashes in ("separate", "coupled") and self._needs_absorption:
            raise InputError(
                f"`crashes` must be 'absorb' with fixed hyperparameters of the objective or virtual evaluations; "
                f"got {self.crashes!r}. Leave it at 'auto'."
            )

    @property
    def _needs_absorption(self) -> bool:
        return OBJECTIVE in self.fixed or self.sampler == "virtual"

    @property
    def crash_model(self) -> CrashModel:
        """`crashes` with "auto" decided."""
        if self.crashes == "auto":
            return "absorb" if self._needs_absorption else "coupled"
        return self.crashes


@dataclass(frozen=True)
class Search:
    """A search over a space with given models.

    Attributes:
        models: of all outputs.
        options: how to search.
        seed: of everything random.
        pending: `m x d`, points under way.
        failed: `k x d`, points that failed; they are not tried again.
        round_: of discrete coordinates, None if there are none.
    """

    models: Surrogates
    options: Options
    seed: int
    pending: Tensor
    failed: Tensor
    round_: Round | None

    @property
    def _dimension(self) -> int:
        return int(self.models.objective.X.shape[-1])

    @property
    def _floor(self) -> float:
        """Log of the success probability that counts as likely enough."""
        return math.log1p(-self.options.delta)

    def next(self, acquisition: str) -> tuple[Maximum, str]:
        """Maximise the acquisition, or the success probability while nothing is safe (`eq:failoptic`).

        Returns:
            The point and the mode: "success" or the acquisition's name.
        """
        models = _believing(self.models, self.pending)
        if not models.any_stable:
            return self._explore(models), "success"
        if not self._safe_somewhere():
            found = self._maximise(models.log_success)
            if found.value < self._floor:
                return found, "success"
        score = self._build(acquisition, models)
        return self._maximise(lambda x: score(x.unsqueeze(-2))), acquisition

    def _explore(self, models: Surrogates) -> Maximum:
        """Maximise the success probability while nothing has succeeded, away from the faces.

        Crashes alone make the corners look best, being farthest from all of them. Keeping half a
        cell's distance, a cell being the share of each trial, covers the cube like a grid does.
        """
        tried = len(self.failed) + len(self.pending)
        margin = min(0.25, 0.5 * (tried + 2) ** (-1.0 / self._dimension))

        def inside(points: Tensor) -> Tensor:
            moved = margin + (1 - 2 * margin) * points
            return moved if self.round_ is None else self.round_(moved)

        found = self._maximise(lambda x: models.log_success(inside(x)))
        point = inside(found.point.unsqueeze(0)).squeeze(0)
        return Maximum(point, found.value)

    def _safe_somewhere(self) -> bool:
        """A first look whether any point is likely enough to succeed."""
        models = self.models
        # Absorbed crashes are part of the objective's mean; others are not.
        safety = models.log_weight if models.weighted else models.log_success
        looked = torch.cat([sobol(self.options.raw, self._dimension, self.seed), self._guesses()])
        return success_somewhere([safety], looked if self.round_ is None else self.round_(looked), self.options.delta)

    def _build(self, name: str, models: Surrogates) -> AcquisitionFunction:
        """The acquisition, on models that already believe in pending points."""
        if name == "logei":
            stable = models.objective.X[models.objective.fit.data.observed]
            with torch.no_grad():
                mean = models.objective.moments(stable)[0]
                safe = models.log_success(stable) >= math.log(0.5)
            best = mean[safe].min() if bool(safe.any()) else mean.min()
            improvement = LogExpectedImprovement(models.objective, best_f=best, maximize=False)
            return FailureAware(improvement, [models.log_success])
        limited = {} if name == "mes" else models.constraints
        limits = [Limit(model, models.limits[key]) for key, model in limited.items()]
        sampler = _SAMPLERS[self.options.sampler]
        minima = sampler(models.objective, limits, self.options.samples, self.seed, self.round_)
        noise = None if self.options.fixed else models.objective.noise_variance
        if name == "cmes":
            independent = models.log_constraints if models.constraints else None
            return ConstrainedMinValueEntropySearch(
                models.objective, minima, independent, noise_variance=models.objective.noise_variance
            )
        entropy = MinValueEntropySearch(models.objective, minima, noise_variance=noise)
        return FailureAware(entropy, [models.log_weight] if models.weighted else [])

    def _maximise(self, score: Any) -> Maximum:
        avoid = torch.cat([self.failed, self.pending])

        def allowed(points: Tensor) -> Tensor:
            if not len(avoid):
                return torch.ones(len(points), dtype=torch.bool)
            return torch.cdist(points, avoid).amin(-1) > 1e-6

        return maximise(
            score,
            self._dimension,
            seed=self.seed,
            extra=self._guesses(),
            round_=self.round_,
            effort=Effort(raw=self.options.raw),
            allowed=allowed,
        )

    def _guesses(self) -> Tensor:
        """The trials and points around them, near and far, `3n x d`."""
        X = self.models.objective.X
        noise = torch.randn(2, *X.shape, dtype=X.dtype, generator=torch.Generator().manual_seed(self.seed))
        around = (X + X.new_tensor([0.02, 0.1]).reshape(2, 1, 1) * noise).clamp(0.0, 1.0).flatten(0, 1)
        return torch.cat([X, around if self.round_ is None else self.round_(around)])

    def best(self) -> tuple[Tensor, bool]:
        """Lowest expected objective where success is likely enough (`eq:min_cost_cons_boc`).

        Returns:
            The point, and whether success is likely enough there; if nowhere, the likeliest point.
        """
        models, guesses = self.models, self._guesses()
        safest = maximise(models.log_success, self._dimension, seed=self.seed, extra=guesses, round_=self.round_)
        if safest.value < self._floor or not models.any_stable:
            return safest.point, safest.value >= self._floor
        scale = models.objective.unit

        def score(points: Tensor) -> Tensor:
            shortfall = (models.log_success(points) - self._floor).clamp_max(0.0)
            return -models.objective.moments(points)[0] / scale + 1e3 * shortfall

        def allowed(points: Tensor) -> Tensor:
            with torch.no_grad():
                return models.log_success(points) >= self._floor

        found = maximise(
            score,
            self._dimension,
            seed=self.seed,
            extra=torch.cat([guesses, safest.point.unsqueeze(0)]),
            round_=self.round_,
            effort=Effort(raw=1024, starts=8, iterations=60),
            allowed=allowed,
        )
        return found.point, True


def make_round(space: Space) -> Round | None:
    """Rounding of discrete coordinates, gradients of the continuous ones kept; None if none are."""
    discrete = [one for one in space.coordinates if one.kind != "continuous"]
    if not discrete:
        return None

    def rounded(X: Tensor) -> Tensor:
        result = X.clone()
        for one in discrete:
            block = X[..., one.start : one.stop].detach().clamp(0.0, 1.0).numpy()
            result[..., one.start : one.stop] = torch.from_numpy(np.ascontiguousarray(one.round(block)))
        return result

    return rounded


def _believing(models: Surrogates, pending: Tensor) -> Surrogates:
    """The models with pending points believed to return their means."""
    if not len(pending):
        return models
    constraints = {name: model.believing(pending) for name, model in models.constraints.items()}
    return Surrogates(models.objective.believing(pending), constraints, models.limits, models.any_stable)
