"""What trials reveal, as rows of one joint Gaussian: values of outputs, and on which side of their limit they lie."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from crashbo.model.kernel import KERNELS, Kernels, Latents, square_gaps, squared_distance
from crashbo.problem.arrays import Array, Batch, Bools, Indices

_KEPT = 1_000_000  # squared differences of coordinates
NOISE_FLOOR = 1e-8  # smallest noise variance relative to the output's prior variance


@dataclass(frozen=True)
class Rows:
    """Values first, then labels. Each row belongs to a point and to an output."""

    X: Array  # n x d, points in the unit cube
    value_point: Indices  # k, where there is a value
    value_output: Indices  # k, of which output
    values: Array  # k, or b x k where hyperparameters come with a scaling of their own
    label_point: Indices  # m, where there is a label
    label_output: Indices  # m, of which output
    sign: Array  # m, +1 at or below the output's limit, -1 above
    soft: Bools | None = None  # m, labels at or below a limit that are as likely to be true as to say nothing

    @cached_property
    def point(self) -> Indices:
        """`r`, the point of every row."""
        return np.concatenate([self.value_point, self.label_point])

    @cached_property
    def output(self) -> Indices:
        """`r`, the output of every row."""
        return np.concatenate([self.value_output, self.label_output])

    @property
    def n_values(self) -> int:
        """How many rows are values."""
        return len(self.value_point)

    @cached_property
    def incidence(self) -> Array:
        """`r x n`, 1 where a row belongs to a point."""
        return np.eye(len(self.X))[self.point]

    @cached_property
    def runs(self) -> list[tuple[int, slice]]:
        """Rows of one output that follow each other."""
        ends = np.flatnonzero(np.diff(self.output)) + 1
        bounds = [0, *ends.tolist(), len(self.output)]
        return [(int(self.output[i]), slice(i, j)) for i, j in itertools.pairwise(bounds) if j > i]

    @cached_property
    def gaps(self) -> Array | None:
        """`d x n^2`, squared differences of the points' coordinates; None where that is too much to keep."""
        n, d = self.X.shape
        return square_gaps(self.X, self.X) if n * n * d <= _KEPT else None

    def squared_distances(self, precision: Array) -> Array:
        """`... x n x n`, of the points, given inverse squares of lengthscales `... x d`."""
        n = len(self.X)
        if self.gaps is None:
            return squared_distance(self.X, self.X, 1 / np.sqrt(precision))
        return (precision @ self.gaps).reshape(*precision.shape[:-1], n, n)

    def weighed_gaps(self, weights: Array) -> Array:
        """`d`, squared differences of the points' coordinates, summed with weights `n x n`."""
        if self.gaps is not None:
            return self.gaps @ weights.ravel()
        return np.array([np.einsum("mn,mn->", weights, np.square(one[:, None] - one)) for one in self.X.T])


@dataclass(frozen=True)
class Hyperparameters(Batch):
    """`b` settings of the model: outputs are linear mixes of independent latents of variance 1.

    Math: output_o(x) = sum_l mixing_ol latent_l(x),  latent_l ~ GP(0, correlation with lengthscale_l)
    """

    lengthscale: Array  # b x l x d
    mixing: Array  # b x o x l
    noise: Array  # b x o, noise variance of an output's values
    threshold: Array  # b x o, limit of an output's labels
    lapse: Array  # b, probability that a trial within its limits is labelled as beyond one
    kernel: Kernels = KERNELS["matern52"]  # of all latents; or one for each of the b settings

    @cached_property
    def latents(self) -> Latents:
        """The correlation functions."""
        return Latents.of(self.lengthscale, self.kernel)

    def row_noise(self, rows: Rows) -> Array:
        """`b x k`, noise variance of every value, above a floor relative to the output's prior variance."""
        variance = np.einsum("bol,bol->bo", self.mixing, self.mixing)
        return np.maximum(self.noise, NOISE_FLOOR * variance)[:, rows.value_output]


def joint_covariance(rows: Rows, at: Hyperparameters) -> Array:
    """Prior covariance of all rows, `b x r x r`, without noise.

    Math: sum_l mixing_(o_r, l) mixing_(o_s, l) correlation_l(x_r, x_s)
    """
    latents, b, r = at.latents, len(at), len(rows.point)
    shapes = latents.correlation(rows.squared_distances(np.square(1.0 / latents.lengthscale)))
    total = np.empty((b, r, r))
    for i, (output, own) in enumerate(rows.runs):
        for other_output, other in rows.runs[: i + 1]:
            weight = at.mixing[:, output] * at.mixing[:, other_output]
            factors = np.zeros((b, len(shapes) + 1))  # of the correlations that differ, the last of constant latents
            for latent, place in enumerate(latents.place.T):
                factors[np.arange(b), place] += weight[:, latent]
            used = np.flatnonzero(factors[:, :-1].any(0))
            picked = shapes[used][:, rows.point[own][:, None], rows.point[other]]
            block = np.tensordot(factors[:, used], picked, 1) + factors[:, -1, None, None]
            total[:, own, other] = block
            total[:, other, own] = block.swapaxes(-1, -2)
    return total
