"""From models to a decision: the next point to try, and the best guess."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Literal

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from torch import Tensor

from crashbo.acquisition.entropy import MinValueEntropySearch, noisy_information_small
from crashbo.acquisition.failures import success_somewhere
from crashbo.acquisition.improvement import ConstrainedMinValueEntropySearch
from crashbo.acquisition.likely import LikelyGain, log_improvement_small
from crashbo.acquisition.maximise import Effort, Maximum, Round, Score, Slope, maximise, sobol
from crashbo.acquisition.minimum import Limit, MinimumSampler, PathwiseMinimum, VirtualMinimum
from crashbo.errors import InputError
from crashbo.models.coupled_predictor import CoupledPredictor
from crashbo.models.predictor import Prediction
from crashbo.models.surrogates import OBJECTIVE, CrashModel, FixedModel, Surrogates
from crashbo.outcome import is_number
from crashbo.space import Space

Gain = Callable[[Tensor, Prediction], Tensor]
Allowed = Callable[[Tensor], Tensor]
_WINDOW, _STEP = 10, 4.0  # trials whose failures count as recent, and how each one too many divides the risk taken
_LEAST = 0.01  # probability of failure that is accepted even when the budget is spent
_LITTLE = 1e-3  # expected improvement, in standard deviations of the costs, not worth a risk: a search settles
_WARNING = 0.4  # correlation of crashes and costs from which on high costs warn of crashes
_FAR_LESS = 0.3  # what safe points promise, as a share of what likely ones do, that lets a search cross over
_STRICT = 3000.0  # logs of score lost per log of success probability that a cautious search misses
_DOUBTED = 0.5  # success probability that a model must expect where one that doubts is asked in its place
_CLOSE, _LONG = 0.05, 0.4  # lengthscales within which trials are in one place, longer ones counting as 0.4
_COARSE, _BRIEF = 1e-5, 40  # relative precision of a maximum's log, and evaluations to find it
_GUESSES = 100  # trials that a search looks around
_ENTROPIES = ("mes", "mesco")
_SAMPLERS: dict[str, MinimumSampler] = {"pathwise": PathwiseMinimum(), "virtual": VirtualMinimum()}


@dataclass(frozen=True)
class Caution:
    """How much success counts in a search, beyond what `eq:failoptic` says.

    Attributes:
        power: the acquisition is weighted by the success probability to this power once more.
        floor: success probability that a suggestion must have where any point has it; 0: any.
        settled: the same once there is little left to gain.
        escape: the same, and power 0, where likely points promise far more than the safe ones; 1: never.
        budget: the same for the crash budget's sake: where no point has it, the safest are left; 0: no budget.
    """

    power: float = 0.0
    floor: float = 0.0
    settled: float = 0.0
    escape: float = 1.0
    budget: float = 0.0


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
        risk: share of trials that may fail. While that share of the last ten or more did, only points are
            suggested whose success is likely, the likelier the more failed; 1 never asks for that. Where crashes
            are high costs it counts only once little is left to gain; on fixed hyperparameters (the paper's
            way) not at all.
        crash_budget: how many trials may fail in the whole run; the fewer are left, the surer a suggestion
            must be. None: no such limit. No promise: a surprise can always crash.
        raw: quasi-random points looked at when an acquisition is maximised.
    """

    initial: int | None = None
    random_start: bool = False
    delta: float = 0.05
    samples: int = 10
    sampler: str = "pathwise"
    fixed: Mapping[str, FixedModel] = field(default_factory=dict)
    crashes: Literal["auto", "absorb", "separate", "coupled"] = "auto"
    risk: float = 0.2
    crash_budget: int | None = None
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
        if not (is_number(self.risk) and 0 < self.risk <= 1):
            raise InputError(f"`risk` must lie above 0 and not above 1; got {self.risk!r}.")
        budget = self.crash_budget
        if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 0):
            raise InputError(f"`crash_budget` must be an integer >= 0 or None; got {budget!r}.")
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

    def caution(
        self,
        failures: Sequence[bool],
        start: int = 0,
        *,
        correlation: float | None = None,
        spent: int | None = None,
    ) -> Caution:
        """How careful the next suggestion should be.

        Args:
            failures: of all trials so far, in order.
            start: the first trial that counts: while nothing is known to succeed, failures are bad luck.
            correlation: of crashes and costs. Where crashes are high costs, low costs lead away from them.
            spent: failures that count against the crash budget; None: those of `failures`.
        """
        recent, allowed = sum(failures[start:][-_WINDOW:]), self.risk * _WINDOW
        left = (
            math.inf if self.crash_budget is None else self.crash_budget - (sum(failures) if spent is None else spent)
        )
        budget = 1 - min(max(_LEAST, 0.1 * left), 1.0)
        warned = correlation is not None and correlation > _WARNING
        if self.risk == 1 or self.fixed:
            return Caution(floor=budget, budget=budget)
        settled = 1 - 0.5 * self.risk
        if not recent or warned:
            return Caution(floor=budget, settled=settled, budget=budget)
        floor = 1 - self.risk * _STEP ** (allowed - recent) if recent >= allowed else 0.0
        tempting = correlation is not None and correlation < -_WARNING  # what promises most are the crashes
        escape = max(0.5, budget) if recent < 2 * allowed and not tempting else 1.0
        return Caution(recent, max(floor, budget), settled, escape, budget)

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
        acquisition: "mes", "mesco", "logei" or "cmes".
        options: how to search.
        seed: of everything random.
        pending: `m x d`, points under way.
        failed: `k x d`, points that failed; they are not tried again.
        round_: of discrete coordinates, None if there are none.
        caution: how much success counts.
        latest: `k x d`, the last trials, the last one last. Several in one place show a model that is too sure of all
            others: the decision is then made with one that doubts, among points that the sure one expects to succeed.
        closing: the acquisition that takes over once there is little left to gain; None: no other.
    """

    models: Surrogates
    acquisition: str
    options: Options
    seed: int
    pending: Tensor
    failed: Tensor
    round_: Round | None
    caution: Caution = Caution()
    latest: Tensor | None = None
    closing: str | None = None

    @property
    def _dimension(self) -> int:
        return int(self.models.objective.X.shape[-1])

    @property
    def _floor(self) -> float:
        """Log of the success probability that counts as likely enough."""
        return math.log1p(-self.options.delta)

    def next(self) -> tuple[Maximum, str]:
        """Maximise the acquisition, or the success probability while nothing is safe (`eq:failoptic`).

        Returns:
            The point and the mode: "success" or the acquisition's name.
        """
        if not self.models.any_stable:
            return self._explore(self._believing), "success"
        if not self._safe_somewhere():
            found = self._maximise(self.score("success"))
            if found.value < self._floor:
                return found, "success"
        mode = self.acquisition if self.closing is None or not self._settled else self.closing
        return self._maximise(self.score(mode), self.slope(mode), floor=self._care.floor), mode

    def score(self, mode: str) -> Score:
        """What is maximised in a mode, "success" or an acquisition's name: `m x d` to `m`, in logs."""
        models = self._believing
        if mode == "success":
            return self._log_success
        gain = self.gain(mode)

        def weighted(X: Tensor) -> Tensor:
            there, held = self._predict(X)
            success = there.log_success + held
            # A crash that the objective absorbs lies in its mean already; EI and cMES know better.
            own = mode == "logei" or isinstance(models.objective, CoupledPredictor)
            weight = 0.0 if mode == "cmes" else success if own else held
            return gain(X, there) + weight - self._shortfall(success)

        return weighted

    def gain(self, mode: str) -> Gain:
        """What an acquisition hopes for if nothing fails: `m x d` and the predictions there to `m`, in logs."""
        models = self._believing
        if mode in _ENTROPIES:
            entropy = self._entropy(mode)
            return lambda X, there: entropy.information(there.mean, there.deviation)
        acquisition = self._bounded(models) if mode == "cmes" else self._improvement(models)
        return lambda X, there: acquisition(X.unsqueeze(-2))

    def _entropy(self, mode: str) -> MinValueEntropySearch:
        """mES on samples of the minimum, which are drawn once."""
        if mode not in self._entropies:
            models = self._believing
            noise = None if self.options.fixed else models.objective.noise_variance
            minima = self._minima(models, constrained=mode == "mesco")
            self._entropies[mode] = MinValueEntropySearch(models.objective, minima, noise_variance=noise)
        return self._entropies[mode]

    @cached_property
    def _entropies(self) -> dict[str, MinValueEntropySearch]:
        return {}

    def slope(self, mode: str) -> Slope | None:
        """A score with its gradient in one go, where there is such a way: the default without constraints."""
        models, care = self._believing, self._care
        if mode not in (*_ENTROPIES, "logei") or models.constraints or self.options.fixed:
            return None
        objective = models.objective
        if not isinstance(objective, CoupledPredictor):
            return None
        if mode == "logei":
            best = float(self._incumbent(models))
            gain = partial(log_improvement_small, best=best)
        else:
            minima = self._entropy(mode).minima.numpy()
            gain = partial(noisy_information_small, minima=minima, noise_variance=objective.noise_variance)
        floor = math.log(care.floor) if care.floor else -math.inf
        return LikelyGain(objective, gain, 1 + care.power, floor, _STRICT)

    def _shortfall(self, log_success: Tensor) -> Tensor:
        """What a point loses that is less likely to succeed than caution asks for."""
        care = self._care
        loss = -care.power * log_success
        if not care.floor:
            return loss
        return loss + _STRICT * (math.log(care.floor) - log_success).clamp_min(0.0)

    @cached_property
    @torch.no_grad()
    def _care(self) -> Caution:
        """Caution, given what there is to gain."""
        asked = self.caution
        if asked == Caution(floor=asked.floor, budget=asked.budget):
            return asked
        promise, chance = self._promise
        likely, safe = (float(torch.where(chance >= least, promise, 0.0).max()) for least in (0.5, 0.8))
        if asked.escape < 1 and safe < _FAR_LESS * likely and likely > _LITTLE:
            return Caution(floor=asked.escape)
        if float((promise * chance**asked.power).max()) < _LITTLE:
            return Caution(asked.power, max(asked.floor, asked.settled))
        return asked

    @property
    def _settled(self) -> bool:
        """Whether there is little left to gain."""
        return float(self._promise[0].max()) < _LITTLE

    @cached_property
    @torch.no_grad()
    def _promise(self) -> tuple[Tensor, Tensor]:
        """Expected improvement, in standard deviations of the costs, and success probability, at a first look."""
        models = self._believing
        there, held = self._predict(self._looked)
        u = (self._incumbent(models) - there.mean) / there.deviation
        gain = torch.exp(-0.5 * u.square()) / math.sqrt(2 * math.pi) + u * torch.special.ndtr(u)
        chance = (there.log_success + held).exp()
        return there.deviation * gain * chance / models.objective.fit.scale, chance

    def _predict(self, X: Tensor) -> tuple[Prediction, Tensor]:
        """The objective at `... x d`, and the log probability that all constraints hold there."""
        return self._seen if X is self._looked else self._predict_anew(X)

    def _predict_anew(self, X: Tensor) -> tuple[Prediction, Tensor]:
        return self._believing.objective.predict(X), self._believing.log_constraints(X)

    @cached_property
    @torch.no_grad()
    def _seen(self) -> tuple[Prediction, Tensor]:
        """Predictions at the points of the first look, which is taken several times."""
        return self._predict_anew(self._looked)

    def _log_success(self, X: Tensor) -> Tensor:
        there, held = self._predict(X)
        return there.log_success + held

    @cached_property
    def _believing(self) -> Surrogates:
        """The models with pending points believed to return their means."""
        models, pending = self.models, self.pending
        if self._repeats:
            models = replace(models, objective=models.objective.doubting(0.5**self._repeats))
        if not len(pending):
            return models
        constraints = {name: model.believing(pending) for name, model in models.constraints.items()}
        return replace(models, objective=models.objective.believing(pending), constraints=constraints)

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
        # Absorbed crashes are part of the objective's mean; others are not.
        apart = bool(self.models.constraints) and not isinstance(self.models.objective, CoupledPredictor)
        safety = (lambda X: self._predict(X)[1]) if apart else self._log_success
        return success_somewhere([safety], self._looked, self.options.delta)

    @cached_property
    def _looked(self) -> Tensor:
        """Points for a quick look: all over the cube, and around the trials."""
        return self._look(self.options.raw)

    def _look(self, raw: int) -> Tensor:
        looked = torch.cat([sobol(raw, self._dimension, self.seed), self._guesses()])
        return looked if self.round_ is None else self.round_(looked)

    def _bounded(self, models: Surrogates) -> AcquisitionFunction:
        """The information bound, which brings its own success with it."""
        independent = models.log_constraints if models.constraints else None
        noise = models.objective.noise_variance
        return ConstrainedMinValueEntropySearch(
            models.objective, self._minima(models), independent, noise_variance=noise
        )

    def _improvement(self, models: Surrogates) -> AcquisitionFunction:
        """Expected improvement on the best trial that probably works."""
        return LogExpectedImprovement(models.objective, best_f=self._incumbent(models), maximize=False)

    @torch.no_grad()
    def _incumbent(self, models: Surrogates) -> Tensor:
        """The lowest expected cost among trials that probably work."""
        stable = models.objective.X[models.objective.fit.data.observed]
        mean = models.objective.moments(stable)[0]
        safe = models.log_success(stable) >= math.log(0.5)
        return mean[safe].min() if bool(safe.any()) else mean.min()

    def _minima(self, models: Surrogates, *, constrained: bool = True) -> Tensor:
        limited = models.constraints if constrained else {}
        limits = [Limit(model, models.limits[key]) for key, model in limited.items()]
        sampler = _SAMPLERS[self.options.sampler]
        return sampler(models.objective, limits, self.options.samples, self.seed, self.round_)

    def _maximise(self, score: Score, slope: Slope | None = None, *, floor: float = 0.0) -> Maximum:
        """Maximise a score over points that may be tried.

        Args:
            score: see `score`.
            slope: see `slope`.
            floor: success probability that the point must have, if any point looked at has it.
        """
        avoid = torch.cat([self.failed, self.pending])

        def fresh(points: Tensor) -> Tensor:
            allowed = torch.ones(len(points), dtype=torch.bool)
            if len(avoid):
                allowed &= torch.cdist(points, avoid).amin(-1) > 1e-6
            return allowed

        allowed: Allowed = fresh
        for log_success, least in ((self._log_success, floor), (self.models.log_success, self._known)):
            allowed = _likely(allowed, log_success, least, self._looked)
        if floor and self.caution.budget:
            allowed = _likely(allowed, self._log_success, self.caution.budget, self._looked, relax=True)
        return maximise(score, self._looked, slope=slope, round_=self.round_, effort=self._effort(), allowed=allowed)

    @property
    def _known(self) -> float:
        """Success probability to keep to while the model doubts: it has forgotten where high costs warn of crashes.

        Not with absorbed crashes or constraints: there a model may be sure of a valley that is not the best.
        """
        coupled = isinstance(self.models.objective, CoupledPredictor) and not self.models.constraints
        return _DOUBTED if self._repeats and coupled and self.options.risk < 1 else 0.0

    @property
    def _repeats(self) -> int:
        """How many of the last trials before the last one were made in its place."""
        if self.latest is None or len(self.latest) < 2 or self.options.fixed:
            return 0
        lengths = self.models.objective.lengthscales.detach().clamp_max(_LONG)
        steps = (self.latest[:-1] - self.latest[-1]) / lengths
        close = (steps.norm(dim=-1) < _CLOSE).tolist()[::-1]
        return close.index(False) if False in close else len(close)

    def _effort(self) -> Effort:
        """Of a maximum: scores are logs, so a quick search may be coarse; the paper's is not.

        Constraints leave narrow paths between them, which take longer to follow.
        """
        if self.options.fixed:
            return Effort()
        most = Effort.evaluations if self.models.constraints else _BRIEF
        return Effort(evaluations=most, precision=_COARSE)

    def _guesses(self) -> Tensor:
        """The trials and points around them, near and far, `3n x d`; of many trials the best."""
        X, data = self.models.objective.X, self.models.objective.fit.data
        if len(X) > _GUESSES:
            ranked = data.observed[data.costs.argsort()]
            others = data.crashed.nonzero().squeeze(-1)
            X = X[torch.cat([ranked, others])[:_GUESSES]]
        noise = torch.randn(2, *X.shape, dtype=X.dtype, generator=torch.Generator().manual_seed(self.seed))
        around = (X + X.new_tensor([0.02, 0.1]).reshape(2, 1, 1) * noise).clamp(0.0, 1.0).flatten(0, 1)
        return torch.cat([X, around])

    def best(self) -> tuple[Tensor, bool]:
        """Lowest expected objective where success is likely enough (`eq:min_cost_cons_boc`).

        Returns:
            The point, and whether success is likely enough there; if nowhere, the likeliest point.
        """
        models = self.models
        safest = maximise(models.log_success, self._looked, round_=self.round_, effort=self._effort())
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
            torch.cat([self._look(1024), safest.point.unsqueeze(0)]),
            round_=self.round_,
            effort=replace(self._effort(), starts=8, iterations=60, evaluations=1000),
            allowed=allowed,
        )
        return found.point, True


@torch.no_grad()
def _likely(allowed: Allowed, log_success: Score, least: float, looked: Tensor, *, relax: bool = False) -> Allowed:
    """Allow only what succeeds with a probability, if anything does.

    Args:
        allowed: what was allowed before.
        log_success: log probability of success, `m x d` to `m`.
        least: the probability asked for; 0: any.
        looked: `k x d`, points that show what there is.
        relax: if nothing is that likely, what fails at most twice as often as the safest, instead of everything.
    """
    if not least:
        return allowed
    chances = log_success(looked)[allowed(looked)].exp()
    safest = float(chances.max()) if len(chances) else 0.0
    if safest < least and not relax:
        return allowed
    floor = least if safest >= least else max(2 * safest - 1, 0.0)

    @torch.no_grad()
    def likely(points: Tensor) -> Tensor:
        return allowed(points) & (log_success(points).exp() >= floor - 1e-6)

    return likely


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
