"""The non-Gaussian predictive density of Appendix B, for analysis and plots."""

from dataclasses import replace

import torch
from torch import Tensor

from crashbo.inference.base import condition_on_costs
from crashbo.inference.ep import EPOptions, Labels, expectation_propagation

_CHUNK = 4096  # EP problems solved at once


@torch.no_grad()
def predictive_density(
    prior: Tensor,
    cross: Tensor,
    cross_variance: Tensor,
    observed: Tensor,
    costs: Tensor,
    noise_variance: Tensor,
    labels: Labels,
    grid: Tensor,
) -> Tensor:
    """Evaluate p(f*) of `eq:pred_nonGaussian_int` on a grid, one EP per point and value.

    Closer to the truth than q(f*) next to crashes, and far more expensive: for pictures and
    checks, not for search.

    Math:
        p(f*) proportional to N(f*; m*, v*) Z_EP(a(f*), B)
        a(f*) = m_f + s (f* - m*) / v*,  B = Sigma_ff - s s' / v*
    with all moments of the joint base Gaussian of (f, f*).

    Args:
        prior: `n x n`, K at the trials.
        cross: `m x n`, K between test points and trials.
        cross_variance: `m`, prior variance at the test points.
        observed, costs, noise_variance: as in `condition_on_costs`.
        labels: `n`, labels of the trials.
        grid: `g`, increasing values of f*.

    Returns:
        `m x g`, densities that integrate to 1 over the grid (trapezoid rule).
    """
    n, m = len(prior), len(cross)
    step = max(1, _CHUNK // max(1, len(grid)))
    densities = []
    for first in range(0, m, step):
        k, v = cross[first : first + step], cross_variance[first : first + step]
        joint = prior.new_zeros(len(k), n + 1, n + 1)
        joint[:, :n, :n] = prior
        joint[:, n, :n] = joint[:, :n, n] = k
        joint[:, n, n] = v
        base = condition_on_costs(joint, observed, costs, noise_variance.expand(len(k)))
        centre = base.mean[:, n, None]
        variance = base.covariance[:, n, n, None].clamp_min(1e-12 * v.unsqueeze(-1))
        slope = base.covariance[:, :n, n] / variance
        conditional = base.covariance[:, :n, :n] - slope.unsqueeze(-1) * base.covariance[:, n, None, :n]
        mean = base.mean[:, None, :n] + slope.unsqueeze(1) * (grid - centre).unsqueeze(-1)
        resolved = replace(labels, width=torch.maximum(labels.width, base.smallest_width.unsqueeze(1)))
        ep = expectation_propagation(mean, conditional.unsqueeze(1), resolved, options=EPOptions(tolerance=1e-4))
        log_density = ep.log_partition - 0.5 * (grid - centre).square() / variance
        densities.append((log_density - log_density.amax(-1, keepdim=True)).exp())
    density = torch.cat(densities)
    return density / torch.trapezoid(density, grid, dim=-1).unsqueeze(-1)
