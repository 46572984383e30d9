"""Expectation propagation for a Gaussian with one-sided labels (`eq:my_post`).

The base Gaussian is arbitrary, so the labels may sit on the cost itself or on any other
latent. Sites are stored relative to their limit: a Gaussian `exp(shift u - precision u^2/2)`
in `u = f - limit`, which makes them good starting points when only the limit moves.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from crashbo.errors import InputError, NumericalError
from crashbo.inference.ep_small import SmallSettings, ep_small
from crashbo.inference.tilted import match_moments

_STIFF = 1e5  # precision * prior variance beyond which variances come from leave-one-out forms
SMALL = 300  # trials up to which one problem on the CPU goes to the NumPy twin
_ROUNDING_AFTER = 30  # sweeps after which rounding may be what is left of the mismatch


@dataclass(frozen=True)
class Labels:
    """One-sided labels: f_i <= limit_i where `sign` is +1, f_i >= limit_i where -1.

    Attributes:
        sign: `... x n`, +1 or -1.
        limit: `... x 1` or `... x n`; +inf with sign +1 says nothing.
        width: probit width, `... x 1` or `... x n`; 0 is the paper's Heaviside.
    """

    sign: Tensor
    limit: Tensor
    width: Tensor


@dataclass(frozen=True)
class EPOptions:
    """Stopping rule and step control.

    Attributes:
        tolerance: largest mismatch between tilted and marginal moments, in marginal
            standard deviations (means) and relative (variances), at which EP has converged.
        max_sweeps: sweeps before EP gives up and says so.
        damping: first step length, in (0, 1].
        memory: past sweeps combined by Anderson acceleration.
        width_floor: smallest probit width relative to the largest base standard
            deviation. It keeps contradicting labels at one point a proper distribution.
    """

    tolerance: float = 1e-6
    max_sweeps: int = 200
    damping: float = 0.9
    memory: int = 6
    width_floor: float = 1e-4


@dataclass(frozen=True)
class EPResult:
    """The Gaussian approximation and how it was reached.

    Attributes:
        site_precision, site_shift: `... x n`, sites relative to the limits.
        mean, variance: `... x n`, marginal moments of the approximation.
        gradient: `... x n`, derivative of log Z with respect to the base mean.
        log_partition: `...`, log Z_EP, never above 0.
        sweeps: sweeps made.
        last_change: `...`, moment mismatch at the end.
        converged: `...`, bool.
    """

    site_precision: Tensor
    site_shift: Tensor
    mean: Tensor
    variance: Tensor
    gradient: Tensor
    log_partition: Tensor
    sweeps: int
    last_change: Tensor
    converged: Tensor


@dataclass(frozen=True)
class _Marginals:
    mean: Tensor
    variance: Tensor
    gradient: Tensor
    cavity_mean: Tensor
    cavity_variance: Tensor
    log_normaliser: Tensor


def _variances(covariance: Tensor) -> Tensor:
    """The diagonal, kept above zero: a latent that cannot vary still has a distribution."""
    diagonal = covariance.diagonal(dim1=-2, dim2=-1)
    return torch.maximum(diagonal, 1e-16 * diagonal.amax(-1, keepdim=True)).clamp_min(1e-200)


def _factor(covariance: Tensor, root: Tensor) -> Tensor:
    """Cholesky factor of B = I + S^(1/2) Sigma S^(1/2), eigenvalues >= 1 up to rounding."""
    b = root.unsqueeze(-1) * covariance * root.unsqueeze(-2)
    b.diagonal(dim1=-2, dim2=-1).add_(1.0)
    factor, info = torch.linalg.cholesky_ex(b)
    if info.any():
        raise NumericalError(
            "`covariance` must be positive semi-definite to double precision; the "
            "factorisation broke down. Add noise or a label width, or remove near-duplicates."
        )
    return factor


def _marginals(mean: Tensor, covariance: Tensor, precision: Tensor, shift: Tensor) -> _Marginals:
    """Condition the base Gaussian on all sites; only sites with precision > 0 are factored.

    Math: (r = S^(-1/2) shift - S^(1/2) mean, g = S^(1/2) B^-1 r)
        posterior mean     = mean + Sigma g
        posterior variance = diag(Sigma - Sigma S^(1/2) B^-1 S^(1/2) Sigma)
        cavity variance    = variance / (1 - precision * variance)
        cavity mean        = posterior mean - cavity variance * g
        log normaliser     = -(log|B| + r' B^-1 r) / 2 + sum (log(1 + precision v) + g^2 (v + 1/precision)) / 2
    """
    prior = _variances(covariance)
    batch = precision.shape[:-1]
    active = (precision > 0).reshape(-1, precision.shape[-1]).any(0).nonzero().squeeze(-1)
    if active.numel() == 0:
        mean = mean.expand(precision.shape)
        variance = prior.expand(precision.shape)
        return _Marginals(mean, variance, torch.zeros_like(precision), mean, variance, precision.new_zeros(batch))
    everything = active.numel() == precision.shape[-1]
    rows = covariance if everything else covariance.index_select(-2, active)
    block = covariance if everything else rows.index_select(-1, active)
    tau = precision.index_select(-1, active)
    positive = tau > 0
    safe = torch.where(positive, tau, 1.0)
    root = tau.sqrt()
    factor = _factor(block, root)
    half = torch.linalg.solve_triangular(factor, root.unsqueeze(-1) * rows, upper=False)
    residual = torch.where(
        positive, shift.index_select(-1, active) / safe.sqrt() - root * mean.index_select(-1, active), 0.0
    )
    whitened = torch.linalg.solve_triangular(factor, residual.unsqueeze(-1), upper=False)
    gradient_active = root * torch.linalg.solve_triangular(factor.mT, whitened, upper=True).squeeze(-1)
    gradient = torch.zeros_like(precision).index_copy(-1, active, gradient_active)
    # Rounding may push a variance to 0 or below where sites are stiff; those are redone next.
    variance = (prior - half.square().sum(-2)).clamp_min(1e-14 * prior)
    cavity_variance = variance / (1 - precision * variance).clamp_min(1e-14)
    stiff = tau * prior.index_select(-1, active) > _STIFF
    if stiff.any():
        inverse = torch.linalg.solve_triangular(
            factor, torch.eye(len(active), dtype=factor.dtype, device=factor.device).expand_as(factor), upper=False
        )
        b = inverse.square().sum(-2)
        loo = ((1 - b).clamp_min(1e-16) / (safe * b)).clamp_max(prior.index_select(-1, active))
        current = cavity_variance.index_select(-1, active)
        cavity_variance = cavity_variance.index_copy(-1, active, torch.where(stiff, loo, current))
    cavity_variance = torch.minimum(cavity_variance, prior)
    variance = cavity_variance / (1 + precision * cavity_variance)
    posterior_mean = mean + (gradient_active.unsqueeze(-2) @ rows).squeeze(-2)
    v = cavity_variance.index_select(-1, active)
    local = torch.log1p(tau * v) + gradient_active.square() * (v + torch.where(positive, 1 / safe, 0.0))
    log_det = 2 * factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_normaliser = 0.5 * (local.sum(-1) - log_det - whitened.square().sum((-2, -1)))
    cavity_mean = posterior_mean - cavity_variance * gradient
    return _Marginals(posterior_mean, variance, gradient, cavity_mean, cavity_variance, log_normaliser)


class _Anderson:
    """Anderson acceleration of the site updates, each batch element on its own.

    Math: with site parameters x, update steps f(x) and their last differences dX, dF,
        x+ = x + eta f - (dX + eta dF) gamma,   gamma = argmin |f - dF gamma|
    in coordinates scaled by the marginal variances. A batch element whose mismatch grows
    goes back to its best sites, forgets its history and takes shorter steps.
    """

    def __init__(self, options: EPOptions, like: Tensor) -> None:
        self.memory = options.memory
        self.step = torch.full((*like.shape[:-1], 1), options.damping, dtype=like.dtype, device=like.device)
        self.best = torch.full_like(self.step, torch.inf)
        self.best_x: Tensor | None = None
        self.best_f: Tensor | None = None
        self.last: tuple[Tensor, Tensor] | None = None
        self.dx: list[Tensor] = []
        self.df: list[Tensor] = []

    def propose(self, x: Tensor, f: Tensor, scale: Tensor, mismatch: Tensor) -> tuple[Tensor, Tensor]:
        """Return the next parameters and the plain damped ones (`... x 2n` each)."""
        mismatch = mismatch.unsqueeze(-1)
        if self.best_x is None or self.best_f is None or self.last is None:
            failed = torch.zeros_like(mismatch, dtype=torch.bool)
        else:
            self.dx.append(x - self.last[0])
            self.df.append(f - self.last[1])
            failed = mismatch > 3 * self.best
            x = torch.where(failed, self.best_x, x)
            f = torch.where(failed, self.best_f, f)
            self.step = torch.where(failed, 0.5 * self.step, (1.1 * self.step).clamp_max(0.9))
            keep = (~failed).to(x)
            self.dx = [keep * d for d in self.dx[-self.memory :]]
            self.df = [keep * d for d in self.df[-self.memory :]]
        improved = (mismatch <= self.best) & ~failed
        self.best_x = x if self.best_x is None else torch.where(improved, x, self.best_x)
        self.best_f = f if self.best_f is None else torch.where(improved, f, self.best_f)
        self.best = torch.where(improved, mismatch, self.best)
        self.last = (x, f)
        plain = x + self.step * f
        if not self.df:
            return plain, plain
        dx, df = torch.stack(self.dx, -1), torch.stack(self.df, -1)
        scaled = df * scale.unsqueeze(-1)
        gram = scaled.mT @ scaled
        ridge = 1e-10 * gram.diagonal(dim1=-2, dim2=-1).amax(-1) + 1e-300
        gram.diagonal(dim1=-2, dim2=-1).add_(ridge.unsqueeze(-1))
        gamma = torch.linalg.solve_ex(gram, scaled.mT @ (f * scale).unsqueeze(-1))[0].nan_to_num(0.0, 0.0, 0.0)
        return plain - ((dx + self.step.unsqueeze(-1) * df) @ gamma).squeeze(-1), plain


def _check(mean: Tensor, covariance: Tensor, labels: Labels) -> None:
    n = mean.shape[-1]
    if mean.dtype != torch.float64 or covariance.dtype != torch.float64:
        raise InputError(f"`mean` and `covariance` must be float64; got {mean.dtype}, {covariance.dtype}.")
    if covariance.shape[-2:] != (n, n):
        raise InputError(f"`covariance` must be ... x {n} x {n}; got {tuple(covariance.shape)}.")
    if not (mean.isfinite().all() and covariance.isfinite().all()):
        raise InputError("`mean` and `covariance` must be finite; got NaN or infinity.")
    if labels.limit.isnan().any() or not (labels.width >= 0).all():
        raise InputError("`labels.limit` must not be NaN and `labels.width` must be >= 0.")


@torch.no_grad()
def expectation_propagation(
    mean: Tensor,
    covariance: Tensor,
    labels: Labels,
    *,
    start: EPResult | None = None,
    options: EPOptions | None = None,
) -> EPResult:
    """Approximate N(f; mean, covariance) times one-sided labels by a Gaussian.

    Parallel sweeps with Anderson acceleration; batch elements are independent of each
    other and stop changing when they have converged. `start` reuses the sites of an earlier
    result of the same shape. Labels that say nothing cost nothing.

    Args:
        mean: `... x n`.
        covariance: `... x n x n`, positive semi-definite.
        labels: broadcast against `... x n`.
        start: sites to begin from.
        options: stopping rule and step control.

    Raises:
        InputError: wrong shapes, types or non-finite input.
        NumericalError: the covariance is not positive semi-definite to double precision.
    """
    options = options or EPOptions()
    _check(mean, covariance, labels)
    n = mean.shape[-1]
    batch = torch.broadcast_shapes(mean.shape[:-1], covariance.shape[:-2], labels.limit.shape[:-1])
    shape = (*batch, n)
    # An infinite limit is a label that always holds; any very large one says the same.
    largest = _variances(covariance).amax(-1, keepdim=True) if n else mean.new_ones(1)
    huge = 1e3 * (largest.sqrt() + mean.abs().amax(-1, keepdim=True)) if n else mean.new_ones(())
    limit = torch.where(labels.limit.isinf(), labels.limit.sign() * huge, labels.limit)
    centred = (mean - limit).expand(shape)
    sign = labels.sign.to(mean).expand(shape)
    width = labels.width.to(mean).clamp_min(options.width_floor * largest.sqrt()).expand(shape)

    if start is None:
        precision, shift = mean.new_zeros(shape), mean.new_zeros(shape)
    else:
        precision, shift = start.site_precision.expand(shape).clone(), start.site_shift.expand(shape).clone()
    if not batch and n <= SMALL and mean.device.type == "cpu":
        return _small(centred, covariance, sign, width, (precision, shift), options, limit)
    accelerator = _Anderson(options, precision)
    done = torch.zeros(batch, dtype=torch.bool, device=mean.device)
    sweeps = 0
    while True:
        marginals = _marginals(centred, covariance, precision, shift)
        site = match_moments(marginals.cavity_mean, marginals.cavity_variance, sign, width)
        change = _mismatch(marginals, site.precision, site.shift)
        sweeps += 1
        done = done | (change <= options.tolerance)
        if sweeps >= _ROUNDING_AFTER:
            done = done | (change <= _rounding(covariance, marginals))
        if bool(done.all()) or sweeps >= options.max_sweeps:
            break
        precision, shift = _step(accelerator, marginals, (precision, shift), (site.precision, site.shift), change, done)
    raw = site.log_mass.sum(-1) + marginals.log_normaliser
    return EPResult(
        site_precision=precision,
        site_shift=shift,
        mean=marginals.mean + limit,
        variance=marginals.variance,
        gradient=marginals.gradient,
        log_partition=raw.clamp_max(0.0),
        sweeps=sweeps,
        last_change=change,
        converged=done & (raw <= 1e-6),
    )


def small_settings(options: EPOptions) -> SmallSettings:
    """The constants of this module, for the NumPy twin."""
    return SmallSettings(options, _STIFF, _ROUNDING_AFTER)


def _small(
    mean: Tensor,
    covariance: Tensor,
    sign: Tensor,
    width: Tensor,
    start: tuple[Tensor, Tensor],
    options: EPOptions,
    limit: Tensor,
) -> EPResult:
    """Hand one small problem to the NumPy twin."""
    settings = small_settings(options)
    sites = (start[0].numpy(), start[1].numpy())
    matrix = covariance.contiguous().numpy()
    found = ep_small(mean.numpy(), matrix, sign.numpy(), width.numpy(), sites, settings)
    return EPResult(
        site_precision=torch.from_numpy(found.site_precision),
        site_shift=torch.from_numpy(found.site_shift),
        mean=torch.from_numpy(found.mean) + limit,
        variance=torch.from_numpy(found.variance.copy()),
        gradient=torch.from_numpy(found.gradient),
        log_partition=mean.new_tensor(min(found.log_partition, 0.0)),
        sweeps=found.sweeps,
        last_change=mean.new_tensor(found.last_change),
        converged=torch.tensor(found.converged and found.log_partition <= 1e-6),
    )


def _mismatch(marginals: _Marginals, precision: Tensor, shift: Tensor) -> Tensor:
    """Summed difference between tilted and marginal moments, `...`.

    A sum, because sites at nearby points err together: n small gaps can hide a large one.
    """
    v = marginals.cavity_variance
    kept = 1 + v * precision
    tilted_mean = marginals.cavity_mean + v * (shift - precision * marginals.cavity_mean) / kept
    mean_gap = (tilted_mean - marginals.mean).abs() / marginals.variance.sqrt()
    variance_gap = (v / kept / marginals.variance - 1).abs()
    return torch.maximum(mean_gap, variance_gap).sum(-1)


def _rounding(covariance: Tensor, marginals: _Marginals) -> Tensor:
    """Mismatch that rounding alone can cause where opposing labels nearly coincide, `...`."""
    error = 1e-15 * (covariance.abs() @ marginals.gradient.abs().unsqueeze(-1)).squeeze(-1)
    return (error / marginals.variance.sqrt()).sum(-1).clamp_max(1e-4)


def _step(
    accelerator: _Anderson,
    marginals: _Marginals,
    sites: tuple[Tensor, Tensor],
    targets: tuple[Tensor, Tensor],
    change: Tensor,
    done: Tensor,
) -> tuple[Tensor, Tensor]:
    """Move the sites of every unfinished batch element one accelerated step."""
    n = sites[0].shape[-1]
    x, target = torch.cat(sites, -1), torch.cat(targets, -1)
    scale = torch.cat([marginals.variance, marginals.variance.sqrt()], -1)
    proposal, plain = accelerator.propose(x, target - x, scale, change)
    # A site precision must stay non-negative; where the extrapolation leaves the safe side,
    # that site takes the plain damped step. A weak site with a flat target becomes exactly flat.
    low = 0.2 * torch.minimum(plain[..., :n], targets[0])
    bad = (proposal[..., :n] < low) | ~proposal[..., :n].isfinite() | ~proposal[..., n:].isfinite()
    flat = (targets[0] == 0) & (sites[0] * marginals.variance < 1e-3)
    frozen = done.unsqueeze(-1)
    precision = torch.where(bad, plain[..., :n], proposal[..., :n])
    shift = torch.where(bad, plain[..., n:], proposal[..., n:])
    precision = torch.where(flat, 0.0, precision.clamp_min(0.0))
    shift = torch.where(flat, 0.0, shift)
    return torch.where(frozen, sites[0], precision), torch.where(frozen, sites[1], shift)


def log_partition(mean: Tensor, covariance: Tensor, labels: Labels, result: EPResult) -> Tensor:
    """Return log Z_EP of a converged `result`, differentiable in its inputs (`...`).

    EP's fixed point is stationary in the sites, so the gradient is that of the explicit
    dependence alone; it is right where `result.converged`. The label width is a constant.

    Math: (g = result.gradient, G = S^(1/2) B^-1 S^(1/2))
        d log Z / d mean = g,  d log Z / d limit = -g,  d log Z / d covariance = (g g' - G) / 2
    """
    g = result.gradient
    moved = (mean - mean.detach()) - torch.nan_to_num(labels.limit - labels.limit.detach())
    value = result.log_partition + (g * moved).sum(-1)
    if not covariance.requires_grad:
        return value
    with torch.no_grad():
        root = result.site_precision.sqrt()
        factor = _factor(covariance.detach(), root)
        half = torch.linalg.solve_triangular(factor, torch.diag_embed(root), upper=False)
        slope = 0.5 * (g.unsqueeze(-1) * g.unsqueeze(-2) - half.mT @ half)
    return value + (slope * (covariance - covariance.detach())).sum((-2, -1))
