"""The trials of one output as rows of the model, and the hyperparameters that go with them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from crashbo.gp.rows import Hyperparameters, Rows

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Block:
    """An output with its limits. Output 0 of the model is its value, outputs 1, 2, ... are the margins of its limits.

    A trial succeeds while every margin stays at or below its threshold.

    Math: margin_j(x) = rho_j value(x) / s + sqrt(1 - rho_j^2) own_j(x)     (variance 1; s^2 the value's variance)

    Attributes:
        X: `n x d`, points in the unit cube.
        value_point, values: `k`, where there is a value, and which, in its own units.
        below: points where every margin is within its limit.
        above, above_margin: points where a margin is beyond its limit, and which one.
        margins: how many limits; 0 for a standard GP.
        self_limited: whether the only margin is the value itself, rho = 1 (GPCR).
        threshold: of a self-limited value, where it is known, in its own units.
    """

    X: Array
    value_point: Indices
    values: Array
    below: Indices
    above: Indices
    above_margin: Indices
    margins: int = 1
    self_limited: bool = False
    threshold: float | None = None

    @property
    def latents(self) -> int:
        """The value's, and one for every margin that is not the value itself."""
        return 1 if self.self_limited else 1 + self.margins

    def rows(self, values: Array) -> Rows:
        """Everything seen, with the values as they are modelled, `k` or `b x k`."""
        points, outputs, signs = [], [], []
        for margin in range(self.margins):
            beyond = self.above[self.above_margin == margin]
            points += [self.below, beyond]
            outputs.append(np.full(len(self.below) + len(beyond), 1 + margin))
            signs += [np.ones(len(self.below)), -np.ones(len(beyond))]
        none = np.zeros(0, dtype=np.int64)
        return Rows(
            self.X,
            self.value_point,
            np.zeros(len(self.value_point), dtype=np.int64),
            values,
            np.concatenate([none, *points]).astype(np.int64),
            np.concatenate([none, *outputs]).astype(np.int64),
            np.concatenate([np.zeros(0), *signs]),
        )

    def single(self, margin: int) -> "Block":
        """The same trials with one of the margins alone."""
        mine = self.above_margin == margin
        return Block(
            self.X, self.value_point, self.values, self.below, self.above[mine], np.zeros(int(mine.sum()), dtype=np.int64)
        )

    def hyperparameters(
        self, theta: Array, correlation: Array, margin_lengthscale: Array, threshold: Array, lapse: Array
    ) -> Hyperparameters:
        """Settings of the model.

        Args:
            theta: `b x (d + 2)`, logs of the value's lengthscales, variance and noise variance.
            correlation: `b x margins`, rho.
            margin_lengthscale: `b x margins x d`.
            threshold: `b x margins`.
            lapse: `b`.
        """
        b, m = len(theta), self.margins
        mixing = np.zeros((b, 1 + m, self.latents))
        mixing[:, 0, 0] = np.exp(0.5 * theta[:, -2])
        mixing[:, 1:, 0] = correlation
        lengthscale = np.exp(theta[:, None, :-2])
        if not self.self_limited and m:
            own = np.sqrt(1 - np.square(correlation))
            mixing[:, 1 + np.arange(m), 1 + np.arange(m)] = own
            lengthscale = np.concatenate([lengthscale, margin_lengthscale], 1)
        noise = np.concatenate([np.exp(theta[:, -1:]), np.ones((b, m))], -1)
        limit = np.concatenate([np.zeros((b, 1)), threshold], -1)
        return Hyperparameters(lengthscale, mixing, noise, limit, lapse)
