"""Exact references for small n, to check expectation propagation against."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from crashbo.errors import InputError, NumericalError
from crashbo.inference.ep import Labels

_LARGEST = 50


@dataclass(frozen=True)
class ExactTruncation:
    """A truncated Gaussian by quasi-Monte Carlo integration.

    Attributes:
        log_partition: log probability that all labels hold.
        standard_error: of `log_partition`, from independent scrambles.
        mean, standard_deviation: `n`, moments given that they hold.
    """

    log_partition: float
    standard_error: float
    mean: Tensor
    standard_deviation: Tensor


def _log_quantile(log_p: Tensor) -> Tensor:
    """Invert log Phi for any log_p < 0 (Newton on a concave function)."""
    direct = torch.special.ndtri(log_p.exp().clamp(1e-300, 1 - 1e-16))
    x = torch.where(log_p < -30, -(-2 * log_p).sqrt(), direct)
    for _ in range(4):
        log_phi = -0.5 * x.square() - 0.5 * math.log(2 * math.pi)
        log_cdf = torch.special.log_ndtr(x)
        x = torch.where(log_p < -30, x - (log_cdf - log_p) * torch.exp(log_cdf - log_phi), x)
    return x


def _integrate(bound: Tensor, factor: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """Separate the variables of P(L w <= bound); returns log weights and the points w."""
    points: list[Tensor] = []
    log_weight = uniform.new_zeros(len(uniform))
    for i in range(len(bound)):
        above = sum((factor[i, j] * w for j, w in enumerate(points)), uniform.new_zeros(()))
        log_mass = torch.special.log_ndtr((bound[i] - above) / factor[i, i])
        log_weight = log_weight + log_mass
        points.append(_log_quantile(uniform[:, i].log() + log_mass))
    return log_weight, torch.stack(points, -1)


@torch.no_grad()
def exact_truncation(
    mean: Tensor, covariance: Tensor, labels: Labels, *, samples: int = 8192, repeats: int = 8, seed: int = 0
) -> ExactTruncation:
    """Integrate N(mean, covariance) over the orthant the labels allow, in the log domain.

    Genz's separation of variables over scrambled Sobol points; good to about 1e-4 in log Z
    for n up to 10 and far into the tails, slowly worse beyond. A probit width is part of the
    integral (it acts as variance); with Heaviside labels the covariance must be definite.

    Args:
        mean: `n`.
        covariance: `n x n`.
        labels: `n` or broadcastable.
        samples: points per scramble, best a power of two.
        repeats: independent scrambles.
        seed: of the scrambles.

    Raises:
        InputError: n is above 50.
        NumericalError: the covariance is not positive definite.
    """
    n = len(mean)
    if not 1 <= n <= _LARGEST:
        raise InputError(f"`mean` must have 1 to {_LARGEST} entries for exact integration; got {n}.")
    sign = labels.sign.to(mean).expand(n)
    distance = sign * (labels.limit - mean)
    widened = covariance + torch.diag_embed(labels.width.to(mean).expand(n).square())
    # The least likely labels first: their variables then carry the least weight variation.
    order = torch.argsort(distance / widened.diagonal().sqrt())
    signed = (sign.unsqueeze(-1) * widened * sign)[order][:, order]
    factor, info = torch.linalg.cholesky_ex(signed)
    if info.any():
        raise NumericalError("`covariance` must be positive definite for exact integration; give the labels a width.")
    weights, points = [], []
    for repeat in range(repeats):
        sobol = torch.quasirandom.SobolEngine(n, scramble=True, seed=seed + repeat)
        uniform = sobol.draw(samples, dtype=mean.dtype).to(mean).clamp(1e-15, 1 - 1e-15)
        log_weight, point = _integrate(distance[order], factor, uniform)
        weights.append(log_weight)
        points.append(point)
    log_weight, w = torch.stack(weights), torch.cat(points)
    per_repeat = log_weight.logsumexp(-1) - math.log(samples)
    total = per_repeat.logsumexp(0) - math.log(repeats)
    error = (per_repeat - total).expm1().std() / math.sqrt(repeats)
    # w lives in the widened, signed, ordered space: regress back onto the latent itself.
    share = torch.softmax(log_weight.reshape(-1), 0)
    cross = (covariance * sign)[:, order]
    gain = torch.linalg.solve_triangular(factor, cross.mT, upper=False).mT
    mean_w = share @ w
    centred = w - mean_w
    spread = centred.mT @ (share.unsqueeze(-1) * centred)
    variance = covariance.diagonal() - gain.square().sum(-1) + (gain @ spread * gain).sum(-1)
    return ExactTruncation(float(total), float(error), mean + gain @ mean_w, variance.clamp_min(0).sqrt())
