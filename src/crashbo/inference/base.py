"""The Gaussian part of the posterior: prior times the observed costs (`eq:my_post`)."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from crashbo.errors import NumericalError

NOISE_FLOOR = 1e-8  # smallest noise variance relative to the prior variance
WIDTH_FLOOR = 1e-4  # smallest label width relative to the prior standard deviation


@dataclass(frozen=True)
class BaseGaussian:
    """N(mean, covariance) over all latents, and the evidence of the costs that shaped it.

    Attributes:
        mean: `... x n`, the paper's m~.
        covariance: `... x n x n`, the paper's Sigma~.
        log_evidence: `...`, the paper's log alpha.
        smallest_width: `... x 1`, label width below which rounding would decide.
    """

    mean: Tensor
    covariance: Tensor
    log_evidence: Tensor
    smallest_width: Tensor


def condition_on_costs(prior: Tensor, observed: Tensor, costs: Tensor, noise_variance: Tensor) -> BaseGaussian:
    """Multiply a zero-mean prior by the Gaussian likelihood of the observed costs.

    Uses one Cholesky factorisation of the observed block and no inverse. Noise below
    `NOISE_FLOOR` prior variances acts as that floor. Differentiable in everything real.

    Math (Appendix A, corrected; s = observed):
        A = K_ss + noise_variance I
        mean       = K_:s A^-1 y
        covariance = K - K_:s A^-1 K_s:
        log_evidence = log N(y; 0, A)

    Args:
        prior: `... x n x n`, K.
        observed: `n_s`, indices of the rows with a cost.
        costs: `n_s`.
        noise_variance: `...` (one per batch element) or `... x n_s`.

    Raises:
        NumericalError: A is not positive definite to double precision.
    """
    variance = prior.diagonal(dim1=-2, dim2=-1).mean(-1)
    width = WIDTH_FLOOR * variance.detach().sqrt().unsqueeze(-1)
    if observed.numel() == 0:
        return BaseGaussian(prior.new_zeros(prior.shape[:-1]), prior, prior.new_zeros(prior.shape[:-2]), width)
    rows = prior.index_select(-2, observed)
    floor = NOISE_FLOOR * variance
    if noise_variance.dim() <= prior.dim() - 2:
        noise_variance = torch.maximum(noise_variance, floor).unsqueeze(-1)
    else:
        noise_variance = torch.maximum(noise_variance, floor.unsqueeze(-1))
    noise_variance = noise_variance.expand(*noise_variance.shape[:-1], len(observed))
    block = rows.index_select(-1, observed) + torch.diag_embed(noise_variance)
    factor, info = torch.linalg.cholesky_ex(block)
    if info.any():
        raise NumericalError(
            "the covariance of the observed costs is not positive definite to double precision. "
            "Raise `noise_std`, or shorten the kernel's lengthscale."
        )
    half = torch.linalg.solve_triangular(factor, rows, upper=False)
    white = torch.linalg.solve_triangular(factor, costs.expand(block.shape[:-1]).unsqueeze(-1), upper=False)
    mean = (half.mT @ white).squeeze(-1)
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_evidence = -0.5 * (white.square().sum((-2, -1)) + log_det + len(observed) * math.log(2 * math.pi))
    return BaseGaussian(mean, prior - half.mT @ half, log_evidence, width)
