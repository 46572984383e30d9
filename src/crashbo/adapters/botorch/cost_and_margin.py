"""Cost and margin as the two outputs of a BoTorch model."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.posteriors.gpytorch import GPyTorchPosterior
from gpytorch.distributions import MultitaskMultivariateNormal, MultivariateNormal
from gpytorch.kernels import Kernel
from linear_operator import to_linear_operator
from torch import Tensor

from crashbo.adapters.botorch.data import HybridData, check_bounds, check_trials, to_numpy
from crashbo.adapters.botorch.kernels import base_kernel
from crashbo.errors import InputError
from crashbo.model.average import ModelSet, learn, weigh
from crashbo.model.block import Block
from crashbo.model.inference import Posterior
from crashbo.model.numbers import NUMBERS, Numbers
from crashbo.model.threads import few_threads
from crashbo.model.warp import Warp

Relation = Literal["coupled", "separate"]
_JITTER = 1e-10  # of a joint covariance, relative to the prior's variances


class CostAndMargin(Model):
    """A Gaussian process for costs, and one for the margin that decides whether a trial crashes.

    Output 0 is the cost in its own units. Output 1 is the margin, in its prior standard deviations: a trial succeeds
    if the margin is at or below `threshold`. The limit and the correlation of cost and margin are learned. The
    limit is uncertain, and the margin is measured from it. This model has the most probable hyperparameters, while the
    optimizer averages over several. Any BoTorch acquisition function with outcome constraints works with it:

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
        if relation not in ("coupled", "separate"):
            raise InputError(f"`relation` must be 'coupled' or 'separate'; got {relation!r}.")
        data = check_trials(train_X, train_Y, crashed, bounds)
        if bool(data.crashed.all()) or not bool(data.crashed.any()):
            raise InputError(
                f"`crashed` must have crashed trials and others; got {int(data.crashed.sum())} of {len(data.crashed)}. "
                "Use GPCR for labels alone, SingleTaskGP for costs alone."
            )
        self._domain = None if bounds is None else check_bounds(bounds, data.X.shape[-1]).to(data.X)
        self.train_inputs = (train_X,)
        with few_threads(len(data.X)):
            self._models = _most_probable(data, relation)
        self._joint = _Joint.of(self._models.posterior, data.X)

    @property
    def models(self) -> ModelSet:
        """The optimizer's model with one set of hyperparameters."""
        return self._models

    @property
    def _warp(self) -> Warp:
        return self._models.warps[0]

    @property
    def threshold(self) -> float:
        """Margin up to which a trial succeeds."""
        return float(self._models.posterior.at.threshold[0, 1])

    @property
    def correlation(self) -> float:
        """Correlation of crashes and costs: 1 if a crash is a high cost, 0 if unrelated, < 0 if costs are low there."""
        return float(self._models.correlation[0, 0])

    @property
    def lapse(self) -> float:
        """Probability that a trial crashes at random, whatever its margin."""
        return float(self._models.posterior.at.lapse[0])

    def success_probability(self, X: Tensor) -> Tensor:
        """Probability that a trial at `... x d` does not crash, `...`.

        Math: (1 - lapse) Phi((threshold - margin mean) / margin deviation)
        """
        mean, covariance = self._joint(self._inside(X).unsqueeze(-2))
        z = (self.threshold - mean[..., 1]) / covariance[..., 1, 1].sqrt()
        return (1 - self.lapse) * torch.special.ndtr(z)

    def _inside(self, X: Tensor) -> Tensor:
        return X if self._domain is None else (X - self._domain[0]) / (self._domain[1] - self._domain[0])

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: PosteriorTransform | None = None,
    ) -> Any:
        """Cost and margin at `... x q x d`, jointly over points and outputs."""
        mean, covariance = self._joint(self._inside(X))
        q = X.shape[-2]
        units = torch.cat([mean.new_full((q,), self._warp.scale), mean.new_ones(q)])
        offset = torch.cat([mean.new_full((q,), self._warp.offset), mean.new_zeros(q)])
        found = _gaussian(mean * units + offset, covariance * units * units.unsqueeze(-1))
        return found if posterior_transform is None else posterior_transform(found)


def _most_probable(data: HybridData, relation: Relation) -> ModelSet:
    """The most probable of the engine's hyperparameters; costs are standardised, not warped."""
    numbers: Numbers = replace(NUMBERS, warps=((0.0, 1.0),))
    if relation == "separate":
        numbers = replace(numbers, correlations=((0.0, 1.0),))
    crashed, observed = (part.cpu().numpy() for part in (data.crashed, data.observed))
    above = np.flatnonzero(crashed)
    block = Block(
        to_numpy(data.X),
        observed,
        to_numpy(data.costs),
        np.flatnonzero(~crashed),
        above,
        np.zeros(len(above), dtype=int),
    )
    candidates = learn(block, numbers)
    best = int(weigh(candidates, block).weights.argmax())
    return weigh(candidates.select(np.array([best])), block)


@dataclass(frozen=True)
class _Joint:
    """Cost and margin at several points together, in the units of the model.

    Math: E[u] = k_u' b,  Cov[u, w] = k_uw - k_u' G k_w,  k between outputs = sum_l mixing_ol mixing_pl kernel_l

    Attributes:
        X: `n x d`, the trials.
        point: `r`, of every row.
        mixing, row_mixing: `2 x l`, `r x l`.
        kernels: of the latents, `l`.
        weights, half: `r`, `r x r`.
    """

    X: Tensor
    point: Tensor
    mixing: Tensor
    row_mixing: Tensor
    kernels: tuple[Kernel, ...]
    weights: Tensor
    half: Tensor

    @classmethod
    def of(cls, posterior: Posterior, X: Tensor) -> "_Joint":
        """Of the first setting of a posterior at trials `n x d`."""
        at, rows = posterior.at, posterior.rows
        mixing, row_mixing, weights, half = (
            torch.as_tensor(part).to(X)
            for part in (at.mixing[0], at.mixing[0, rows.output], posterior.weights[0], posterior.half[0])
        )
        kernels = []
        name = (at.kernel[0] if isinstance(at.kernel, tuple) else at.kernel).name
        for lengthscale in at.lengthscale[0]:
            kernel = base_kernel(name, ard_num_dims=X.shape[-1]).to(X)
            kernel.lengthscale = torch.as_tensor(lengthscale).to(X)
            kernels.append(kernel.requires_grad_(False))
        return cls(X, torch.as_tensor(rows.point).to(X.device), mixing, row_mixing, tuple(kernels), weights, half)

    def __call__(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Mean `... x 2q` and covariance `... x 2q x 2q` at `... x q x d`, all costs before all margins."""
        cross: Any = 0.0
        prior: Any = 0.0
        for latent, kernel in enumerate(self.kernels):
            mix = self.mixing[:, latent]
            k = kernel(X, self.X).to_dense()[..., self.point] * self.row_mixing[:, latent]
            cross = cross + _stack(mix[:, None], k)
            prior = prior + _stack(mix[:, None] * mix, kernel(X, X).to_dense())
        white = cross @ self.half.mT
        left = prior - white @ white.mT
        jitter = _JITTER * prior.diagonal(dim1=-2, dim2=-1)
        return cross @ self.weights, left + torch.diag_embed(jitter)


def _stack(mix: Tensor, k: Tensor) -> Tensor:
    """Kronecker product of `o x p` and `... x q x r`."""
    blocks = mix[:, None, :, None] * k[..., None, :, None, :]
    return blocks.reshape(*k.shape[:-2], mix.shape[0] * k.shape[-2], mix.shape[1] * k.shape[-1])


def _gaussian(mean: Tensor, covariance: Tensor) -> GPyTorchPosterior:
    """A posterior of two outputs from `... x 2q`, all costs before all margins."""
    joint = MultivariateNormal(mean, to_linear_operator(covariance))
    q = mean.shape[-1] // 2
    stacked = mean.reshape(*mean.shape[:-1], 2, q).mT
    return GPyTorchPosterior(MultitaskMultivariateNormal(stacked, joint.lazy_covariance_matrix, interleaved=False))
