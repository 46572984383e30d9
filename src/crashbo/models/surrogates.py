"""One model per output of a trial; the paper's four cases follow from what was told."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from crashbo.data import HybridData
from crashbo.errors import InputError
from crashbo.models.chance import fit_crashes, with_trials
from crashbo.models.compression import Compression, choose_compression
from crashbo.models.coupled_predictor import CoupledPredictor
from crashbo.models.fit import Fit, ModelSettings, fit
from crashbo.models.hyperparameters import KernelName, make_kernel
from crashbo.models.predictor import Predictor
from crashbo.outcome import Constraint, Trial

OBJECTIVE = "objective"
CrashModel = Literal["absorb", "separate", "coupled"]


@dataclass(frozen=True)
class FixedModel:
    """Hyperparameters that stay as they are, in the output's own units (the paper's way).

    Attributes:
        lengthscale: in the unit cube, one for all inputs.
        variance: prior variance around 0.
        noise_std: standard deviation of the noise.
        threshold_prior: mean and standard deviation of the threshold's hyperprior; None: ML.
        kernel: "matern32", "matern52" or "rbf".
    """

    lengthscale: float
    variance: float
    noise_std: float = 0.01
    threshold_prior: tuple[float, float] | None = (0.0, 5.0)
    kernel: KernelName = "matern32"

    def __post_init__(self) -> None:
        for name in ("lengthscale", "variance", "noise_std"):
            value = getattr(self, name)
            if not (isinstance(value, (int, float)) and math.isfinite(value) and value > 0):
                raise InputError(f"`{name}` must be a finite number > 0; got {value!r}.")

    def settings(self, dimension: int, threshold: float | None) -> ModelSettings:
        """The model settings that say the same."""
        kernel = make_kernel(dimension, self.kernel)
        kernel.base_kernel.lengthscale = self.lengthscale
        with torch.no_grad():
            kernel.raw_outputscale.fill_(self.variance)
        return ModelSettings(self.noise_std, kernel, threshold, self.threshold_prior)


@dataclass(frozen=True)
class Surrogates:
    """The models of all outputs, minimising.

    Attributes:
        objective: GPCR; cost and margin where crashes are not absorbed; a standard GP (threshold +inf)
            while only constraints fail.
        constraints: GPCR each, or a standard GP with a known limit.
        limits: per constraint, the threshold its success is judged by.
        any_stable: whether any trial has a cost.
        compression: of the costs, before the objective's model sees them.
        told: the objective's trials before that.
    """

    objective: Predictor | CoupledPredictor
    constraints: Mapping[str, Predictor] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)
    any_stable: bool = True
    compression: Compression = field(default_factory=Compression)
    told: HybridData | None = None

    def moments(self, X: Tensor, output: str = OBJECTIVE) -> tuple[Tensor, Tensor]:
        """Mean and standard deviation of an output at `... x d`, each `...`, in the units it was told in."""
        if output != OBJECTIVE:
            return self.constraints[output].moments(X)
        return self.compression.expand_moments(*self.objective.moments(X))

    @property
    def thresholds(self) -> dict[str, float]:
        """The current thresholds of all outputs that have one."""
        found = {OBJECTIVE: self.compression.expand(self.objective.threshold), **self.limits}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def expected_thresholds(self) -> dict[str, float]:
        """Posterior means of the thresholds: what to report as the learned limits."""
        found = {name: self.constraints[name].fit.expected_threshold() for name in self.limits}
        if self.chance:
            return found
        if isinstance(self.objective, CoupledPredictor):
            # What a cost alone would have to exceed, whatever else makes trials crash.
            return {OBJECTIVE: self.absorbed().expected_threshold(), **found}
        if math.isfinite(self.objective.threshold):
            found = {OBJECTIVE: self.compression.expand(self.objective.fit.expected_threshold()), **found}
        return {name: value for name, value in found.items() if math.isfinite(value)}

    def absorbed(self) -> Fit:
        """The objective's trials as if crashes were high costs (the paper's model)."""
        if self.told is None:
            raise InputError("`told` must hold the objective's trials; got none.")
        return fit(self.told, ModelSettings())

    @property
    def correlation(self) -> float | None:
        """Of crashes and costs, 1 if crashes are absorbed; None while there is nothing to tell it from."""
        if isinstance(self.objective, CoupledPredictor):
            return self.objective.correlation
        return 1.0 if self.any_stable and bool(self.objective.fit.data.crashed.any()) else None

    @property
    def chance(self) -> float:
        """Probability that a trial crashes wherever it is made, where crashes have no place; else 0."""
        return self.objective.fit.chance if isinstance(self.objective, CoupledPredictor) else 0.0

    def success(self, X: Tensor) -> Tensor:
        """Probability that nothing fails at `... x d`."""
        return (1 - self.chance) * self.log_success(X).exp()

    def log_success(self, X: Tensor) -> Tensor:
        """Log probability that nothing fails at `... x d` because of the place: what a search can avoid."""
        return self.objective.log_success(X) + self.log_constraints(X)

    def log_weight(self, X: Tensor) -> Tensor:
        """Log probability that acquisitions are weighted by (`eq:failoptic`), at `... x d`.

        A crash that is absorbed by the objective lies in its mean already.
        """
        own = isinstance(self.objective, CoupledPredictor)
        return self.log_success(X) if own else self.log_constraints(X)

    @property
    def weighted(self) -> bool:
        """Whether `log_weight` is anything but 0."""
        return bool(self.constraints) or isinstance(self.objective, CoupledPredictor)

    def log_constraints(self, X: Tensor) -> Tensor:
        """Log probability that all constraints hold at `... x d`."""
        total = X.new_zeros(X.shape[:-1])
        for name, model in self.constraints.items():
            total = total + model.log_success(X, threshold=self.limits[name])
        return total


def build_surrogates(
    points: Tensor,
    trials: Sequence[Trial],
    constraints: Sequence[Constraint],
    *,
    sign: float = 1.0,
    fixed: Mapping[str, FixedModel] | None = None,
    crashes: CrashModel = "absorb",
    earlier: Surrogates | None = None,
    relearn: bool = False,
) -> Surrogates:
    """Fit a model to every output.

    The objective is a GPCR if it ever crashed or if nothing else can fail (cases 1, 2 and 4), else
    a standard GP (case 3). A constraint with unknown limit is a GPCR with its own threshold; with a
    known limit the threshold is fixed, and values on both sides make it a standard GP.

    Args:
        points: `n x d`, where the trials were made, in the unit cube.
        trials: `n`, at least one.
        constraints: declared ones.
        sign: -1 to maximise.
        fixed: hyperparameters that are not learned, by output.
        crashes: "absorb" takes a crash for a high cost (the paper), "separate" gives crashes a latent of
            their own, "coupled" learns how far they are related.
        earlier: models of the first of these trials, whose hyperparameters are kept where they were
            learned; thresholds and posteriors follow the new trials.
        relearn: learn those hyperparameters anew, beginning with the earlier ones.
    """
    told = [None if trial.objective is None else sign * trial.objective for trial in trials]
    crashed = any(trial.crashed for trial in trials)
    fixed = fixed or {}
    if OBJECTIVE in fixed or crashes == "absorb":
        compression = Compression()
    elif earlier is not None:
        compression = earlier.compression
    else:
        seen = [i for i, value in enumerate(told) if value is not None]
        compression = choose_compression(points[seen].numpy(), [value for value in told if value is not None])
    values = [None if value is None else compression(value) for value in told]
    before = earlier.objective if earlier is not None else None
    data = _data(points, values)
    objective: Predictor | CoupledPredictor
    if crashes != "absorb" and crashed and data.observed.numel():
        kept = before.fit if isinstance(before, CoupledPredictor) else None
        if kept is None or relearn:
            pair = fit_crashes(data, relation=crashes, start=None if kept is None else kept.placed)
        else:
            pair = with_trials(kept, _rest(data, kept.data))
        objective = CoupledPredictor(pair)
    else:
        known = None if crashed or not constraints else math.inf
        objective = _single(data, _settings(data, fixed.get(OBJECTIVE), known), before, relearn=relearn)
    models: dict[str, Predictor] = {}
    for constraint in constraints:
        rows = [i for i, trial in enumerate(trials) if constraint.name in trial.constraints]
        if rows:
            data = _data(points[rows], [trials[i].constraints[constraint.name] for i in rows], constraint.threshold)
            settings = _settings(data, fixed.get(constraint.name), constraint.threshold)
            before = earlier.constraints.get(constraint.name) if earlier is not None else None
            models[constraint.name] = _single(data, settings, before, relearn=relearn)
    limits = {name: model.threshold for name, model in models.items()}
    any_stable = any(not trial.crashed for trial in trials)
    return Surrogates(objective, models, limits, any_stable, compression, _data(points, told))


def _single(
    data: HybridData, settings: ModelSettings, before: Predictor | CoupledPredictor | None, *, relearn: bool
) -> Predictor:
    """The model of one output; the hyperparameters of an earlier one that learned them from costs are kept."""
    kept = before.fit if isinstance(before, Predictor) and settings.kernel is None else None
    if kept is None or not kept.data.observed.numel():
        return Predictor(fit(data, settings))
    if relearn:
        return Predictor(fit(data, settings, start=kept))
    same_rule = (kept.given.rule.fixed is None) == (settings.threshold is None)
    return Predictor(kept.with_trials(_rest(data, kept.data)) if same_rule else fit(data, settings))


def _rest(data: HybridData, before: HybridData) -> HybridData:
    """The trials that came after those of `before`."""
    n, k = len(before.X), before.observed.numel()
    return HybridData(data.X[n:], data.crashed[n:], data.observed[k:] - n, data.costs[k:])


def _data(X: Tensor, values: Sequence[float | None], threshold: float | None = None) -> HybridData:
    """Trials of one output; a value above a known limit is seen, and above it."""
    limit = math.inf if threshold is None else threshold
    above = torch.tensor([value is None or value > limit for value in values])
    observed = torch.tensor([i for i, value in enumerate(values) if value is not None], dtype=torch.long)
    costs = torch.tensor([value for value in values if value is not None], dtype=torch.float64)
    return HybridData(X, above, observed, costs)


def _settings(data: HybridData, fixed: FixedModel | None, threshold: float | None) -> ModelSettings:
    dimension = data.X.shape[-1]
    if fixed is not None:
        return fixed.settings(dimension, threshold)
    if data.observed.numel() == 0:
        # Labels of one kind teach no lengthscale: explore with one that shrinks with the gaps between
        # trials, so that the largest gap stays the likeliest place of a success.
        kernel = make_kernel(dimension, "matern32")
        gap = len(data.X) ** (-1.0 / dimension)
        kernel.base_kernel.lengthscale = max(0.03, 0.25 * math.sqrt(dimension) * gap)
        return ModelSettings(kernel=kernel, threshold=threshold, standardize=False)
    return ModelSettings(threshold=threshold)
