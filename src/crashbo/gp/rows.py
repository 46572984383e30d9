"""What trials reveal, as rows of one joint Gaussian: values of outputs, and on which side of their limit they lie."""

import itertools
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lapack

from crashbo.arrays import Array, Bools, Indices
from crashbo.errors import NumericalError
from crashbo.gp.kernel import Kernels, Latents, correlation, square_gaps, squared_distance

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
        """`q x n x n`, of the points, given inverse squares of lengthscales `q x d`."""
        n = len(self.X)
        if self.gaps is None:
            return squared_distance(self.X, self.X, 1 / np.sqrt(precision))
        return (precision @ self.gaps).reshape(len(precision), n, n)


@dataclass(frozen=True)
class Hyperparameters:
    """`b` settings of the model: outputs are linear mixes of independent latents of variance 1.

    Math: output_o(x) = sum_l mixing_ol latent_l(x),  latent_l ~ GP(0, correlation with lengthscale_l)
    """

    lengthscale: Array  # b x l x d
    mixing: Array  # b x o x l
    noise: Array  # b x o, noise variance of an output's values
    threshold: Array  # b x o, limit of an output's labels
    lapse: Array  # b, probability that a trial within its limits is labelled as beyond one
    kernel: Kernels = "matern52"  # of all latents; or one for each of the b settings

    def __len__(self) -> int:
        return len(self.lengthscale)

    def select(self, index: Indices | slice) -> "Hyperparameters":
        """Some of the settings."""
        return Hyperparameters(
            self.lengthscale[index],
            self.mixing[index],
            self.noise[index],
            self.threshold[index],
            self.lapse[index],
            self.kernel if isinstance(self.kernel, str) else tuple(np.array(self.kernel)[index].tolist()),
        )

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
    shapes = correlation(rows.squared_distances(np.square(1.0 / latents.lengthscale)), latents.kernels)
    total = np.empty((b, r, r))
    for i, (output, own) in enumerate(rows.runs):
        for other_output, other in rows.runs[: i + 1]:
            block = _shared(latents, at.mixing[:, output] * at.mixing[:, other_output], shapes, rows, own, other)
            total[:, own, other] = block
            if other is not own:
                total[:, other, own] = block.swapaxes(-1, -2)
    return total


def _shared(latents: Latents, weight: Array, shapes: Array, rows: Rows, own: slice, other: slice) -> Array:
    """Covariance of two runs of rows, `b x rows x rows`, whose outputs share latents by weights `b x l`."""
    factors = np.zeros((len(weight), len(shapes) + 1))  # the last is of constant latents
    for latent, place in enumerate(latents.place.T):
        factors[np.arange(len(weight)), place] += weight[:, latent]
    used = np.flatnonzero(factors[:, :-1].any(0))
    rows_own, rows_other = rows.point[own], rows.point[other]
    size = len(rows_own), len(rows_other)
    picked = shapes[used][:, rows_own[:, None], rows_other].reshape(len(used), size[0] * size[1])
    block = (factors[:, used] @ picked).reshape(len(weight), *size)
    return block + factors[:, -1, None, None]


def factor_values(covariance: Array, noise: Array | float) -> Array:
    """Cholesky factor of the covariance of values with their noise.

    Raises:
        NumericalError: it is not positive definite to double precision.
    """
    noisy, n = covariance.copy(), len(covariance)
    noisy.flat[:: n + 1] += noise
    factor, info = lapack.dpotrf(noisy.T, lower=1, clean=1, overwrite_a=1) if n else (noisy, 0)
    if info:
        raise NumericalError(
            "the covariance of the observed values is not positive definite to double precision. "
            "Raise the noise, or shorten the lengthscales."
        )
    return factor


def weighed_gaps(rows: Rows, weights: Array) -> Array:
    """`b x d`, squared differences of the points' coordinates, summed with weights `b x n x n`."""
    if rows.gaps is not None:
        return weights.reshape(len(weights), -1) @ rows.gaps.T
    squares = (np.square(one[:, None] - one) for one in rows.X.T)
    return np.stack([np.einsum("bmn,mn->b", weights, square) for square in squares], -1)
