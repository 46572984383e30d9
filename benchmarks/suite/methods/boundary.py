"""Boundary exploration with a deep ensemble, after BE-CBO (Tian et al., 2024): made from the paper's description."""

import math

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor, nn

from benchmarks.suite.methods.botorch_ import _BoTorch, _Far, _log_ei

_MEMBERS, _WIDTH, _STEPS, _LATER = (
    5,
    32,
    200,
    60,
)  # networks, units per layer, first and later steps


class Boundary(_BoTorch):
    """LogEI where an ensemble of networks is not sure of the label, the boundary of what succeeds.

    The label's probability is the networks' mean m, with their standard deviation s. Allowed are points that may well
    be on the boundary or are feasible beyond it, m + s >= 1/2, as close to it as the ensemble can tell:
    |m - 1/2| <= s. If there are none LogEI alone decides among those that are likely to succeed. The networks of all
    members are trained at once and go on from the last trial's.
    """

    _networks: "_Ensemble | None" = None

    def _acquisition(self) -> AcquisitionFunction:
        succeeded = torch.tensor([cost is not None for cost in self._costs])
        if not bool(succeeded.any()):
            return _Far(self._X)
        costs = torch.tensor([cost for cost in self._costs if cost is not None]).double()
        improvement = _log_ei(self._X[succeeded], costs)
        if bool(succeeded.all()):
            return improvement
        first = self._networks is None
        self._networks = self._networks or _Ensemble(self._space.dimension)
        self._networks.fit(self._X, succeeded.double(), _STEPS if first else _LATER)
        return _OnBoundary(improvement, self._networks)


class _Ensemble(nn.Module):
    """Small networks with two hidden layers, evaluated side by side."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        sizes = ((inputs, _WIDTH), (_WIDTH, _WIDTH), (_WIDTH, 1))
        self.weights = nn.ParameterList(torch.randn(_MEMBERS, a, b).double() / math.sqrt(a) for a, b in sizes)
        self.offsets = nn.ParameterList(torch.zeros(_MEMBERS, 1, b).double() for _, b in sizes)

    def forward(self, X: Tensor) -> Tensor:
        """Logits, `members x n`."""
        hidden = (2 * X - 1).expand(_MEMBERS, -1, -1)
        for weight, offset in zip(list(self.weights)[:-1], list(self.offsets)[:-1], strict=True):
            hidden = torch.relu(hidden @ weight + offset)
        return (hidden @ self.weights[-1] + self.offsets[-1]).squeeze(-1)

    def fit(self, X: Tensor, labels: Tensor, steps: int) -> None:
        """Go on training."""
        optimizer = torch.optim.Adam(self.parameters(), lr=0.01, weight_decay=1e-4)
        target = labels.expand(_MEMBERS, -1)
        for _ in range(steps):
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(self(X), target)
            loss.backward()
            optimizer.step()


class _OnBoundary(AcquisitionFunction):
    """LogEI, far lower where the ensemble is sure of the label, and lowest where it is sure of a crash."""

    def __init__(self, improvement: LogExpectedImprovement, networks: _Ensemble) -> None:
        super().__init__(model=improvement.model)
        self.improvement, self.networks = improvement, networks

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        chances = torch.sigmoid(self.networks(X.squeeze(-2)))
        mean, deviation = chances.mean(0), chances.std(0)
        crash = (0.5 - mean - deviation).clamp_min(0.0)
        away = ((mean - 0.5).abs() - deviation).clamp_min(0.0)
        return self.improvement(X) - 1e3 * away - 1e3 * crash
