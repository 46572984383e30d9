"""Failure-aware acquisition (`eq:failoptic`): weight by success, or first look for success."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.utils.transforms import t_batch_mode_transform
from torch import Tensor

from crashbo.acquisition.entropy import MinValueEntropySearch, believe

LogSuccess = Callable[[Tensor], Tensor]


def total_log_success(constraints: Sequence[LogSuccess], X: Tensor) -> Tensor:
    """Sum of log success probabilities at `... x d`, `...`; constraints are independent."""
    total = X.new_zeros(X.shape[:-1])
    for constraint in constraints:
        total = total + constraint(X)
    return total


class FailureAware(AcquisitionFunction):
    """Any log-valued acquisition, weighted by the probability that all constraints hold.

    With `MinValueEntropySearch` on samples of the constrained minimum this is mESCO
    (`eq:mesco`); with `LogExpectedImprovement` it is constrained EI.

    Math: log a(x) + sum_j log Pr(g_j(x) <= c_j)     where success is likely enough somewhere
          sum_j log Pr(g_j(x) <= c_j)                 otherwise
    """

    _log = True

    def __init__(
        self, acquisition: AcquisitionFunction | None, constraints: Sequence[LogSuccess], *, success_only: bool = False
    ) -> None:
        """Combine.

        Args:
            acquisition: log-valued, q = 1; may be None if `success_only`.
            constraints: each maps `... x d` to a log success probability `...`.
            success_only: the second mode: look for success first.
        """
        model: Any = getattr(acquisition, "model", None)
        super().__init__(model=model)
        self.acquisition = acquisition
        self._plain = model
        self.constraints = list(constraints)
        self.success_only = success_only or acquisition is None

    def set_X_pending(self, X_pending: Tensor | None = None) -> None:
        """Pass pending points on to the acquisition."""
        self.X_pending: Tensor | None = X_pending  # type: ignore[assignment]
        if isinstance(self.acquisition, MinValueEntropySearch):
            self.acquisition.set_X_pending(X_pending)
        elif self.acquisition is not None:
            # Analytic acquisitions of BoTorch refuse pending points; their model can believe in them.
            self.acquisition.model = self._plain
            if X_pending is not None and len(X_pending):
                self.acquisition.model = believe(self._plain, X_pending)

    @t_batch_mode_transform(expected_q=1)  # type: ignore[arg-type]
    def forward(self, X: Tensor) -> Tensor:
        """Evaluate at `b x 1 x d`, returning `b`."""
        success = total_log_success(self.constraints, X.squeeze(-2))
        if self.success_only or self.acquisition is None:
            return success
        value: Any = self.acquisition(X)
        return success + value


def mesco(model: Any, minima: Tensor, constraints: Sequence[LogSuccess], *, success_only: bool = False) -> FailureAware:
    """mESCO (`eq:mesco`): min-value entropy search with unknown constraints.

    Args:
        model: of the objective.
        minima: `S`, samples of the constrained minimum.
        constraints: log success probabilities.
        success_only: whether no point is likely enough to succeed yet.
    """
    acquisition = None if success_only else MinValueEntropySearch(model, minima)
    return FailureAware(acquisition, constraints, success_only=success_only)


def success_somewhere(constraints: Sequence[LogSuccess], candidates: Tensor, delta: float) -> bool:
    """Whether any candidate succeeds with probability 1 - delta or more (`eq:failoptic`)."""
    with torch.no_grad():
        best = total_log_success(constraints, candidates).max()
    return bool(best >= torch.log1p(best.new_tensor(-delta)))
