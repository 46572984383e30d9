"""What trials reveal, as rows of one joint Gaussian: values of outputs, and on which side of their limit they lie."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from crashbo.gp.kernel import Kernels, latent_correlation

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
NOISE_FLOOR = 1e-8  # smallest noise variance relative to the output's prior variance


@dataclass(frozen=True)
class Rows:
    """Values first, then labels. Each row belongs to a point and to an output.

    Attributes:
        X: `n x d`, points in the unit cube.
        value_point, value_output: `k`, where and of which output there is a value.
        values: `k`, or `b x k` where hyperparameters come with a scaling of their own.
        label_point, label_output: `m`, where and of which output there is a label.
        sign: `m`, +1 at or below the output's limit, -1 above.
        soft: `m`, labels at or below a limit that are as likely to be true as to say nothing; None: none.
    """

    X: Array
    value_point: Indices
    value_output: Indices
    values: Array
    label_point: Indices
    label_output: Indices
    sign: Array
    soft: NDArray[np.bool_] | None = None

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
        found = np.zeros((len(self.point), len(self.X)))
        found[np.arange(len(self.point)), self.point] = 1.0
        return found


@dataclass(frozen=True)
class Hyperparameters:
    """`b` settings of the model: outputs are linear mixes of independent latents of variance 1.

    Math: output_o(x) = sum_l mixing_ol latent_l(x),  latent_l ~ GP(0, correlation with lengthscale_l)

    Attributes:
        lengthscale: `b x l x d`.
        mixing: `b x o x l`.
        noise: `b x o`, noise variance of an output's values.
        threshold: `b x o`, limit of an output's labels.
        lapse: `b`, probability that a trial within its limits is labelled as beyond one.
        kernel: of all latents; or one for each of the `b` settings.
    """

    lengthscale: Array
    mixing: Array
    noise: Array
    threshold: Array
    lapse: Array
    kernel: Kernels = "matern52"

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

    def row_noise(self, rows: Rows) -> Array:
        """`b x k`, noise variance of every value, above a floor relative to the output's prior variance."""
        variance = np.einsum("bol,bol->bo", self.mixing, self.mixing)
        return np.maximum(self.noise, NOISE_FLOOR * variance)[:, rows.value_output]


def joint_covariance(rows: Rows, at: Hyperparameters) -> Array:
    """Prior covariance of all rows, `b x r x r`, without noise.

    Math: sum_l mixing_(o_r, l) mixing_(o_s, l) correlation_l(x_r, x_s)
    """
    total: float | Array = 0.0
    for latent in range(at.mixing.shape[-1]):
        shape, _ = latent_correlation(rows.X, rows.X, at.lengthscale[:, latent], at.kernel)
        weight = at.mixing[:, rows.output, latent]
        total = total + shape[:, rows.point[:, None], rows.point] * weight[:, :, None] * weight[:, None, :]
    return np.asarray(total)


@dataclass(frozen=True)
class Gradient:
    """Derivatives of a scalar by hyperparameters, shaped like these; lengthscales and noise by their logs."""

    log_lengthscale: Array
    mixing: Array
    log_noise: Array
    threshold: Array


def covariance_gradient(rows: Rows, at: Hyperparameters, slope: Array) -> tuple[Array, Array]:
    """Derivatives by log lengthscales `b x l x d` and mixing `b x o x l`, given those by the joint covariance.

    Args:
        rows, at: as in `joint_covariance`.
        slope: `b x r x r`, symmetric.
    """
    b, outputs, latents = at.mixing.shape
    by_length, by_mixing = np.zeros_like(at.lengthscale), np.zeros((b, outputs, latents))
    member = (rows.output[None, :] == np.arange(outputs)[:, None]).astype(np.float64)  # o x r
    for latent in range(latents):
        length = at.lengthscale[:, latent]
        shape, fall = latent_correlation(rows.X, rows.X, length, at.kernel)
        weight = at.mixing[:, rows.output, latent]
        placed = rows.incidence.T @ (slope * weight[:, :, None] * weight[:, None, :]) @ rows.incidence * fall
        for j in range(rows.X.shape[-1]):
            squares = np.square(rows.X[:, j, None] - rows.X[None, :, j])
            by_length[:, latent, j] = np.einsum("bmn,mn->b", placed, squares) / np.square(length[:, j])
        reach = (slope * shape[:, rows.point[:, None], rows.point]) @ weight[..., None]
        by_mixing[:, :, latent] = 2 * reach[..., 0] @ member.T
    return by_length, by_mixing
