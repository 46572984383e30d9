"""The trials of one output as rows of the model, and the hyperparameters that go with them."""

from dataclasses import dataclass, replace

import numpy as np

from crashbo.model.kernel import CONSTANT, Kernels, squared_distance
from crashbo.model.rows import Hyperparameters, Rows
from crashbo.problem.arrays import Array, Batch, Indices
from crashbo.problem.options import FixedModel


@dataclass(frozen=True)
class Relations(Batch):
    """`b` ways in which margins relate to the value."""

    correlation: Array  # b x margins, rho
    lengthscale: Array  # b x margins x d, of the margins' own latents
    lapse: Array  # b, rate of random crashes
    log_prior: Array | float = 0.0  # b, of all this


@dataclass(frozen=True)
class Block:
    """An output with its limits. Output 0 of the model is its value, outputs 1, 2, ... are the margins of its limits.

    A trial succeeds while every margin stays at or below its limit. A limit that is not known is a latent like any
    other, constant over the points and Gaussian a priori, so that the posterior integrates over it.

    Math: margin_j(x) = rho_j value(x) / s + sqrt(1 - rho_j^2) own_j(x) - limit_j
        (s^2 the value's variance; own_j of variance 1; limit_j ~ N(0, limit deviation^2) around `threshold`)
    """

    X: Array  # n x d, points in the unit cube
    value_point: Indices  # k, where there is a value
    values: Array  # k, in their own units
    below: Indices  # points where every margin is within its limit
    above: Indices  # points where a margin is beyond its limit
    above_margin: Indices  # which one
    margins: int = 1  # how many limits; 0 for a standard GP
    self_limited: bool = False  # whether the only margin is the value itself, rho = 1 (GPCR)
    threshold: float | None = None  # of a self-limited value, where it is known, in its own units
    fixed: FixedModel | None = None  # hyperparameters of the value that are not learned

    def rows(self, values: Array) -> Rows:
        """Everything seen, with the values as they are modelled, `k` or `b x k`.

        Of several margins a trial that crashed for one reason was beyond that margin's limit. Beyond another's as
        well it would have been called by either name: such a label has a lapse rate of 0.5.
        """
        labels = []
        for output in range(1, 1 + self.margins):
            mine = self.above_margin == output - 1
            labels += [(point, output, 1, False) for point in self.below.tolist()]
            labels += [(point, output, -1, False) for point in self.above[mine].tolist()]
            labels += [(point, output, 1, True) for point in self.above[~mine].tolist()]
        points, outputs, signs, soft = np.array(labels, dtype=np.int64).reshape(-1, 4).T
        may_lapse = soft.astype(bool) if self.margins > 1 else None
        value_output = np.zeros(len(self.value_point), dtype=np.int64)
        return Rows(self.X, self.value_point, value_output, values, points, outputs, signs.astype(float), may_lapse)

    def single(self, margin: int) -> "Block":
        """The same trials with one of the margins alone."""
        mine = self.above_margin == margin
        return replace(self, above=self.above[mine], above_margin=np.zeros(int(mine.sum()), dtype=np.int64), margins=1)

    def thinned(self, most: int) -> "Block":
        """The same with at most so many labels: of the successes those closest to a failure, which say most."""
        room = max(most - len(self.above), most // 2)
        if len(self.below) <= room:
            return self
        if not len(self.above):
            return replace(self, below=self.below[:room])
        gaps = squared_distance(self.X[self.below], self.X[self.above], np.ones(self.X.shape[-1])).min(-1)
        return replace(self, below=self.below[np.sort(np.argsort(gaps, kind="stable")[:room])])

    def hyperparameters(
        self, theta: Array, relation: Relations, threshold: Array, limit_deviation: float, kernel: Kernels
    ) -> Hyperparameters:
        """Settings of the model.

        Latents are the value's own, one for every margin that is not the value itself, and one for every unknown limit.

        Args:
            theta: `b x (d + 2)`, logs of the value's lengthscales, variance and noise variance.
            threshold: `b x margins`, known limits or the prior's mean of unknown ones.
            limit_deviation: prior standard deviation of the limits; 0 if they are known.
        """
        b, d, m = len(theta), theta.shape[-1] - 2, self.margins
        own, limits = 0 if self.self_limited else m, m if limit_deviation else 0
        mixing = np.zeros((b, 1 + m, 1 + own + limits))
        lengthscale = np.full((b, 1 + own + limits, d), CONSTANT)
        mixing[:, 0, 0] = np.exp(0.5 * theta[:, -2])
        lengthscale[:, 0] = np.exp(theta[:, :-2])
        mixing[:, 1:, 0] = relation.correlation
        margin = np.arange(m)
        if own:
            mixing[:, 1 + margin, 1 + margin] = np.sqrt(1 - np.square(relation.correlation))
            lengthscale[:, 1 : 1 + own] = relation.lengthscale
        if limits:
            mixing[:, 1 + margin, 1 + own + margin] = -limit_deviation
        noise = np.concatenate([np.exp(theta[:, -1:]), np.ones((b, m))], -1)
        limit = np.concatenate([np.zeros((b, 1)), threshold], -1)
        return Hyperparameters(lengthscale, mixing, noise, limit, relation.lapse, kernel)

    def with_threshold(self, theta: Array, threshold: Array, kernel: Kernels) -> Hyperparameters:
        """Settings of a value that nothing limits but itself, `threshold` being `b`, in its own prior deviations."""
        b, m, d = len(theta), self.margins, self.X.shape[-1]
        itself = Relations(np.ones((b, m)), np.ones((b, m, d)), np.zeros(b))
        return self.hyperparameters(theta, itself, np.repeat(threshold[:, None], m, -1), 0.0, kernel)
