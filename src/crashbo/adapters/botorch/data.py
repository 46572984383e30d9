"""Trials as the model sees them: a cost, or the bare label "crashed". All checks live here."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crashbo.errors import InputError
from crashbo.model.warp import spread_of

_LARGEST_COST = 1e100
_EDGE = 1e-9  # rounding allowed at the borders of the unit cube


@dataclass(frozen=True)
class HybridData:
    """Trials with costs where they succeeded and labels everywhere.

    Attributes:
        X: `n x d`, in the unit cube.
        crashed: `n`, bool.
        observed: `n_s`, indices of the rows that have a cost.
        costs: `n_s`, their costs.
    """

    X: Tensor
    crashed: Tensor
    observed: Tensor
    costs: Tensor

    @property
    def sign(self) -> Tensor:
        """`n`, +1 where the latent lies below the threshold, -1 where above."""
        return 1.0 - 2.0 * self.crashed.to(self.X)

    def scaled(self, offset: float, scale: float) -> "HybridData":
        """Return the same trials with costs `(cost - offset) / scale`."""
        return HybridData(self.X, self.crashed, self.observed, (self.costs - offset) / scale)


def as_double(value: object, name: str) -> Tensor:
    """Convert to a detached float64 tensor; refuse what is not numeric."""
    try:
        tensor = value if isinstance(value, Tensor) else torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"`{name}` must be a tensor or an array of numbers; got {type(value).__name__}.") from error
    if tensor.is_complex():
        raise InputError(f"`{name}` must be real; got {tensor.dtype}.")
    return tensor.detach().to(torch.float64)


def check_bounds(bounds: object, dimension: int) -> Tensor:
    """Validate `2 x d` bounds, lower row below upper row."""
    tensor = as_double(bounds, "bounds")
    if tensor.shape != (2, dimension):
        raise InputError(f"`bounds` must be 2 x {dimension}; got shape {tuple(tensor.shape)}.")
    if not (tensor.isfinite().all() and (tensor[1] > tensor[0]).all()):
        raise InputError(f"`bounds` must be finite with lower < upper; got {tensor.tolist()}.")
    return tensor


def check_trials(train_X: object, train_Y: object | None, crashed: object, bounds: object | None = None) -> HybridData:
    """Validate trials and map their inputs to the unit cube.

    Args:
        train_X: `n x d`; in the unit cube, or in `bounds`.
        train_Y: `n x 1`, ignored where crashed; None for labels without any cost.
        crashed: `n`, bool.
        bounds: `2 x d`, or None for the unit cube; see `check_bounds`.

    Raises:
        InputError: names the argument, the rule and the value that broke it.
    """
    X = as_double(train_X, "train_X")
    if X.dim() != 2:
        raise InputError(f"`train_X` must be n x d; got shape {tuple(X.shape)}.")
    n, d = X.shape
    if n == 0 or d == 0:
        raise InputError(f"`train_X` must hold at least one trial; got shape {tuple(X.shape)}.")
    try:
        labels = crashed if isinstance(crashed, Tensor) else torch.as_tensor(crashed)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"`crashed` must be a boolean tensor or array; got {crashed!r}.") from error
    if labels.shape != (n,):
        raise InputError(
            f"`crashed` must have shape ({n},), one label per row of `train_X`; got {tuple(labels.shape)}."
        )
    if labels.dtype != torch.bool:
        if not ((labels == 0) | (labels == 1)).all():
            raise InputError(f"`crashed` must be boolean; got values of {labels.dtype} other than 0 and 1.")
        labels = labels.bool()
    labels = labels.to(X.device)
    X = _unit_cube(X, None if bounds is None else check_bounds(bounds, d).to(X))
    observed = (~labels).nonzero().squeeze(-1)
    if train_Y is None:
        return HybridData(X, labels, observed[:0], X.new_zeros(0))
    Y = as_double(train_Y, "train_Y").to(X.device)
    if Y.shape != (n, 1):
        raise InputError(f"`train_Y` must be {n} x 1, one cost per row of `train_X`; got shape {tuple(Y.shape)}.")
    costs = Y[observed, 0]
    bad = ~costs.isfinite() | (costs.abs() > _LARGEST_COST)
    if bad.any():
        row = int(observed[bad][0])
        raise InputError(
            f"`train_Y` must be finite and below {_LARGEST_COST:g} in size where not crashed; got "
            f"{float(Y[row, 0])} in row {row}. Mark a trial without a cost as crashed."
        )
    return HybridData(X, labels, observed, costs)


def _unit_cube(X: Tensor, bounds: Tensor | None) -> Tensor:
    if not X.isfinite().all():
        raise InputError("`train_X` must be finite; got NaN or infinity.")
    unit = X if bounds is None else (X - bounds[0]) / (bounds[1] - bounds[0])
    outside = (unit < -_EDGE) | (unit > 1 + _EDGE)
    if outside.any():
        row, column = (int(i) for i in outside.nonzero()[0])
        where = "the unit cube [0, 1]^d" if bounds is None else "`bounds`"
        raise InputError(
            f"`train_X` must lie in {where}; got {float(X[row, column])} in row {row}, column {column}. "
            + ("Rescale it, or pass `bounds`." if bounds is None else "Check the bounds.")
        )
    return unit.clamp(0.0, 1.0)


def cost_scale(data: HybridData) -> tuple[float, float]:
    """Return offset and scale that standardise the costs of the stable trials; without any, (0, 1)."""
    costs = to_numpy(data.costs)
    return (float(costs.mean()) if len(costs) else 0.0), spread_of(costs)


def to_numpy(tensor: Tensor) -> NDArray[np.float64]:
    """A tensor on any device as an array."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)
