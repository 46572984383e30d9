"""What people build from BoTorch's parts: LogEI with a penalty, and LogEI times a classifier's probability."""

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models.approximate_gp import SingleTaskVariationalGP
from botorch.models.gp_regression import SingleTaskGP
from botorch.optim.optimize import optimize_acqf, optimize_acqf_mixed
from botorch.utils.transforms import t_batch_mode_transform
from gpytorch.likelihoods import BernoulliLikelihood
from gpytorch.mlls import ExactMarginalLogLikelihood, VariationalELBO
from torch import Tensor

from benchmarks.suite.methods.base import Sequential, worst
from benchmarks.suite.problem import Problem

_RESTARTS, _RAW, _ITERATIONS = 4, 256, 30  # few, so that a hundred runs take minutes
_FIRST_STEPS, _LATER_STEPS = 150, 40  # of Adam, for the classifier


class _BoTorch(Sequential, ABC):
    """Data in the unit cube, and the maximisation of an acquisition over it."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._space, self._seed = problem.space, seed
        self._points: list[np.ndarray] = []
        self._costs: list[float | None] = []

    def ask(self) -> dict[str, Any]:
        torch.manual_seed(1000 * self._seed + len(self._costs))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            point = self._maximise(self._acquisition())
        return self._space.decode(point.clamp(0.0, 1.0).numpy())

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._points.append(self._space.encode(params))
        self._costs.append(cost)

    @abstractmethod
    def _acquisition(self) -> AcquisitionFunction:
        """What to maximise, given all trials so far."""

    @property
    def _X(self) -> Tensor:
        return torch.from_numpy(np.array(self._points))

    def _maximise(self, acquisition: AcquisitionFunction) -> Tensor:
        """Maximise over the cube; with a choice, over the cube of each of its values."""
        bounds = torch.stack([torch.zeros(self._space.dimension), torch.ones(self._space.dimension)]).double()
        settings: dict[str, Any] = {
            "q": 1,
            "num_restarts": _RESTARTS,
            "raw_samples": _RAW,
            "options": {"maxiter": _ITERATIONS},
            "retry_on_optimization_warning": False,
        }
        choices = [one for one in self._space.coordinates if one.kind == "one-hot"]
        if not choices:
            return optimize_acqf(acquisition, bounds, **settings)[0][0]
        block = choices[0]  # the suite has problems with one choice only
        fixed = [
            {index: float(index == chosen) for index in range(block.start, block.stop)}
            for chosen in range(block.start, block.stop)
        ]
        return optimize_acqf_mixed(acquisition, bounds, fixed_features_list=fixed, **settings)[0][0]


class Penalised(_BoTorch):
    """LogEI on a GP that is told the worst cost so far for every crash."""

    def _acquisition(self) -> AcquisitionFunction:
        bad = worst(self._costs)
        if bad is None:  # nothing to learn a cost from yet
            return _Far(self._X)
        return _log_ei(self._X, torch.tensor([bad if cost is None else cost for cost in self._costs]).double())


class TwoModels(_BoTorch):
    """LogEI of a GP on the successes, times the success probability of a variational GP classifier.

    With a floor, points below that probability are taken only if there are none above. `weighted=False` leaves it at
    that, LogEI where the probability is above the floor: Anubis' feasibility-constrained acquisition. Until something
    succeeded the probability alone decides; until something crashed, LogEI alone.
    """

    def __init__(self, problem: Problem, seed: int, *, floor: float = 0.0, weighted: bool = True) -> None:
        super().__init__(problem, seed)
        self._floor, self._weighted = floor, weighted
        self._classifier: SingleTaskVariationalGP | None = None

    def ask(self) -> dict[str, Any]:
        params = super().ask()
        self.success_probability = self._probability(self._space.encode(params))
        return params

    def _acquisition(self) -> AcquisitionFunction:
        succeeded = torch.tensor([cost is not None for cost in self._costs])
        self._classifier = None if bool(succeeded.all()) else _fit_classifier(self._X, succeeded, self._classifier)
        improvement = None
        if bool(succeeded.any()):
            costs = torch.tensor([cost for cost in self._costs if cost is not None]).double()
            improvement = _log_ei(self._X[succeeded], costs)
        if self._classifier is None:
            assert improvement is not None
            return improvement
        return _TimesSuccess(improvement, self._classifier, self._floor, self._weighted)

    def _probability(self, point: np.ndarray) -> float | None:
        if self._classifier is None:
            return None
        with torch.no_grad():
            return float(_log_success(self._classifier, torch.from_numpy(point)[None, None]).exp())


def _log_ei(X: Tensor, costs: Tensor) -> LogExpectedImprovement:
    """LogEI over the lowest cost, on a GP with BoTorch's defaults."""
    model = SingleTaskGP(X, -costs.unsqueeze(-1))
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return LogExpectedImprovement(model, best_f=(-costs).max())


def _fit_classifier(
    X: Tensor, succeeded: Tensor, earlier: SingleTaskVariationalGP | None = None
) -> SingleTaskVariationalGP:
    """Fit a classifier with an inducing point at every trial, going on from an earlier one of the first trials."""
    model = SingleTaskVariationalGP(
        X, likelihood=BernoulliLikelihood(), inducing_points=X.clone(), learn_inducing_points=False
    )
    if earlier is not None:
        _continue(model, earlier)
    elbo = VariationalELBO(model.likelihood, model.model, num_data=len(X))
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(_FIRST_STEPS if earlier is None else _LATER_STEPS):
        optimizer.zero_grad()
        loss = -elbo(model.model(X), succeeded.double())
        loss.backward()
        optimizer.step()
        _respect_bounds(model)
    return model.eval()


@torch.no_grad()
def _respect_bounds(model: SingleTaskVariationalGP) -> None:
    """Move hyperparameters back onto their bounds, which BoTorch leaves to its own optimizer to respect."""
    for _, parameter, constraint in model.model.named_parameters_and_constraints():
        if constraint is not None and not constraint.enforced:
            parameter.clamp_(constraint.lower_bound, constraint.upper_bound)


def _continue(model: SingleTaskVariationalGP, earlier: SingleTaskVariationalGP) -> None:
    """Start a fit where an earlier one ended.

    The variational distribution is over whitened values, so that for the trials they share it stays as it was.
    """
    model.model.covar_module.load_state_dict(earlier.model.covar_module.state_dict())
    model.model.mean_module.load_state_dict(earlier.model.mean_module.state_dict())
    strategy, before = model.model.variational_strategy, earlier.model.variational_strategy
    ours, theirs = strategy._variational_distribution, before._variational_distribution
    known = theirs.variational_mean.shape[-1]
    with torch.no_grad():
        ours.variational_mean.zero_()[:known] = theirs.variational_mean
        ours.chol_variational_covar.copy_(torch.eye(ours.variational_mean.shape[-1]))
        ours.chol_variational_covar[:known, :known] = theirs.chol_variational_covar
    strategy.variational_params_initialized.fill_(1)


def _log_success(classifier: SingleTaskVariationalGP, X: Tensor) -> Tensor:
    """Log probability of success at `b x 1 x d` points.

    Math: `log Phi(mean / sqrt(1 + variance))`
    """
    latent = classifier.posterior(
        X.squeeze(-2)
    )  # as one batch: else each point gets its own copy of the inducing points
    score = latent.mean / (1 + latent.variance).sqrt()
    return torch.special.log_ndtr(score).squeeze(-1)


class _TimesSuccess(AcquisitionFunction):
    """LogEI, plus log success probability if weighted by it, with an optional floor."""

    def __init__(
        self,
        improvement: LogExpectedImprovement | None,
        classifier: SingleTaskVariationalGP,
        floor: float,
        weighted: bool,
    ) -> None:
        super().__init__(model=classifier)
        self.improvement, self.classifier, self.floor, self.weighted = improvement, classifier, floor, weighted

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        success = _log_success(self.classifier, X)
        value = success if self.improvement is None else self.improvement(X) + self.weighted * success
        if self.floor:
            value = value + 1e3 * (success - math.log(self.floor)).clamp_max(0.0)
        return value


class _Far(AcquisitionFunction):
    """Distance from all trials, while every one of them crashed."""

    def __init__(self, tried: Tensor) -> None:
        super().__init__(model=None)  # type: ignore[arg-type]
        self.tried = tried

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        return torch.cdist(X.squeeze(-2), self.tried).amin(-1)
