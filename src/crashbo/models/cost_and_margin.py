"""Cost and margin as the two outputs of a BoTorch model."""

from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from linear_operator import to_linear_operator
from torch import Tensor

from crashbo.data import check_bounds, check_trials
from crashbo.errors import InputError
from crashbo.models.coupled import CoupledFit, Relation, fit_coupled
from crashbo.models.coupled_predictor import CoupledPredictor, matern52


class CostAndMargin(Model):
    """A Gaussian process for costs, and one for the margin that decides whether a trial crashes.

    Output 0 is the cost in its own units, output 1 the margin: a trial succeeds while that stays at or below
    `threshold`. How far the two are related is learned (`correlation`). Any BoTorch acquisition with outcome
    constraints works on it:

        model = CostAndMargin(train_X, train_Y, crashed)
        qLogExpectedImprovement(
            model,
            best_f=-best,
            objective=GenericMCObjective(lambda Z, X=None: -Z[..., 0]),
            constraints=[lambda Z: Z[..., 1] - model.threshold],
        )
    """

    num_outputs = 2

    def __init__(
        self,
        train_X: Tensor,
        train_Y: Tensor,
        crashed: Tensor,
        *,
        bounds: Tensor | None = None,
        relation: Relation = "coupled",
    ) -> None:
        """Fit the model; the constructed object is ready to use.

        Args:
            train_X: `n x d`, in the unit cube or in `bounds`.
            train_Y: `n x 1`, ignored where crashed.
            crashed: `n`, bool; at least one trial crashed and one did not.
            bounds: `2 x d`, domain of train_X; None is the unit cube.
            relation: "coupled" learns how crashes and costs are related, "separate" says they are not.

        Raises:
            InputError: names the argument, the rule and the value.
        """
        super().__init__()
        data = check_trials(train_X, train_Y, crashed, bounds)
        if bool(data.crashed.all()) or not bool(data.crashed.any()):
            raise InputError(
                f"`crashed` must have crashed trials and others; got {int(data.crashed.sum())} of {len(data.crashed)}. "
                "Use GPCR for labels alone, SingleTaskGP for costs alone."
            )
        self._domain = None if bounds is None else check_bounds(bounds, data.X.shape[-1]).to(data.X)
        self.train_inputs = (train_X,)
        self._points = CoupledPredictor(fit_coupled(data, relation=relation))

    @property
    def fit(self) -> CoupledFit:
        """The fitted state."""
        return self._points.fit

    @property
    def threshold(self) -> float:
        """Margin up to which a trial succeeds."""
        return self.fit.coupling.threshold

    @property
    def correlation(self) -> float:
        """Of crashes and costs: 1 if a crash is a high cost, 0 if unrelated, below 0 if costs are low there."""
        return self.fit.correlation

    def success_probability(self, X: Tensor) -> Tensor:
        """Probability that the margin at `... x d` stays below the threshold, `...`."""
        return self._points.log_success(self._inside(X)).exp()

    def _inside(self, X: Tensor) -> Tensor:
        return X if self._domain is None else (X - self._domain[0]) / (self._domain[1] - self._domain[0])

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> GPyTorchPosterior:
        """Cost and margin at `... x q x d`, jointly over points and outputs."""
        inside = self._inside(X)
        mean, covariance = _joint(self._points, inside.reshape(-1, *inside.shape[-2:]))
        q, shape = inside.shape[-2], inside.shape[:-2]
        scale = self.fit.scale
        units = torch.cat([mean.new_full((q,), scale), mean.new_ones(q)])
        mean = mean * units + torch.cat([mean.new_full((q,), self.fit.offset), mean.new_zeros(q)])
        covariance = covariance * units * units.unsqueeze(-1)
        mean, covariance = mean.reshape(*shape, 2 * q), covariance.reshape(*shape, 2 * q, 2 * q)
        if kwargs.get("posterior_transform") is not None:
            return kwargs["posterior_transform"](_gaussian(mean, covariance))
        return _gaussian(mean, covariance)


def _gaussian(mean: Tensor, covariance: Tensor) -> GPyTorchPosterior:
    """A posterior of two outputs from `... x 2q`, all costs before all margins."""
    joint = MultivariateNormal(mean, to_linear_operator(covariance))
    q = mean.shape[-1] // 2
    stacked = mean.reshape(*mean.shape[:-1], 2, q).mT
    return GPyTorchPosterior(MultitaskMultivariateNormal(stacked, joint.lazy_covariance_matrix, interleaved=False))


def _joint(model: CoupledPredictor, X: Tensor) -> tuple[Tensor, Tensor]:
    """Mean `b x 2q` and covariance `b x 2q x 2q` of cost and margin at `b x q x d`, standardised."""
    b, q, d = X.shape
    cost, margin = (one.reshape(b, q, -1) for one in model.cross(X.reshape(-1, d)))
    cross = torch.cat([cost, margin], -2)
    shared = matern52(X, X, model.cost_length)
    own = matern52(X, X, model.margin_length)
    s, rho = model.deviation, model.correlation
    top = torch.cat([s**2 * shared, rho * s * shared], -1)
    bottom = torch.cat([rho * s * shared, rho**2 * shared + model.own * own], -1)
    half = torch.linalg.solve_triangular(model.factor, cross.mT, upper=False)
    left = torch.cat([top, bottom], -2) - half.mT @ half
    jitter = 1e-10 * torch.cat([X.new_full((q,), s**2), X.new_ones(q)])
    return (cross @ model.weights).squeeze(-1), left + torch.diag(jitter)
