"""The crash threshold c as a model parameter: fixed, maximum likelihood, or MAP."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from scipy.optimize import brentq
from torch import Tensor

from crashbo.errors import InputError
from crashbo.inference.base import BaseGaussian
from crashbo.inference.ep import EPOptions, EPResult, Labels, expectation_propagation

_PRECISION = 1e-5  # of the threshold, in prior standard deviations
_ROUGH = EPOptions(tolerance=1e-4, max_sweeps=50)


@dataclass(frozen=True)
class ThresholdRule:
    """How the threshold is found.

    Attributes:
        fixed: a known threshold; nothing is searched.
        prior: mean and standard deviation of the Gaussian hyperprior (MAP, `eq:c_opti_map`);
            None is maximum likelihood (`eq:c_opti`).
        floor: the highest value seen to hold, below which a searched threshold cannot lie. The paper has
            none: there a noisy value may lie above the threshold while the latent one does not.
    """

    fixed: float | None = None
    prior: tuple[float, float] | None = None
    floor: float = -math.inf

    def with_floor(self, values: Tensor) -> "ThresholdRule":
        """This rule after more values were seen to hold."""
        return self if values.numel() == 0 else replace(self, floor=max(self.floor, float(values.max())))

    def without_search(self, crashed: Tensor) -> float | None:
        """Return the threshold where the paper prescribes it, None where it must be searched.

        No stable trial: 0, with or without a hyperprior. No data: the hyperprior's mean.
        Only stable trials under maximum likelihood: +inf.
        """
        if self.fixed is not None:
            return self.fixed
        if crashed.numel() == 0:
            return self.prior[0] if self.prior else 0.0
        if crashed.all():
            return 0.0
        if self.prior is None and not crashed.any():
            return math.inf
        return None

    def log_density(self, threshold: Tensor) -> Tensor:
        """Log hyperprior up to a constant (0 without one)."""
        if self.prior is None:
            return torch.zeros_like(threshold)
        return -0.5 * ((threshold - self.prior[0]) / self.prior[1]).square()

    def slope(self, threshold: float) -> float:
        """Derivative of the log hyperprior."""
        return 0.0 if self.prior is None else (self.prior[0] - threshold) / self.prior[1] ** 2


def check_rule(threshold: float | None, prior: tuple[float, float] | None) -> ThresholdRule:
    """Validate the user's threshold arguments."""
    if threshold is not None and (not isinstance(threshold, (int, float)) or math.isnan(threshold)):
        raise InputError(f"`threshold` must be a number or None; got {threshold!r}.")
    if prior is not None:
        try:
            mean, deviation = (float(value) for value in prior)
        except (TypeError, ValueError) as error:
            raise InputError(f"`threshold_prior` must be (mean, standard deviation) or None; got {prior!r}.") from error
        if not (math.isfinite(mean) and math.isfinite(deviation) and deviation > 0):
            raise InputError(f"`threshold_prior` must be finite with a standard deviation > 0; got {prior!r}.")
        prior = (mean, deviation)
    return ThresholdRule(None if threshold is None else float(threshold), prior)


@dataclass(frozen=True)
class ThresholdEstimate:
    """A threshold and the approximation that belongs to it.

    Attributes:
        threshold: may be infinite (maximum likelihood, one kind of label only).
        ep: the EP result at `threshold`.
        solves: EP solves the search took.
    """

    threshold: float
    ep: EPResult
    solves: int


def make_labels(sign: Tensor, threshold: Tensor | float, width: float, base: BaseGaussian | None = None) -> Labels:
    """Labels of all trials against one threshold, no narrower than `base` can resolve."""
    limit = threshold if isinstance(threshold, Tensor) else sign.new_tensor(threshold)
    widths = sign.new_tensor([width])
    if base is not None:
        widths = torch.maximum(widths, base.smallest_width)
    return Labels(sign, limit.reshape(-1) if limit.dim() == 0 else limit, widths)


@torch.no_grad()
def estimate_threshold(
    base: BaseGaussian,
    sign: Tensor,
    rule: ThresholdRule,
    *,
    width: float = 0.0,
    start: ThresholdEstimate | None = None,
    options: EPOptions | None = None,
) -> ThresholdEstimate:
    """Find the threshold that maximises log Z_EP(c) plus the log hyperprior.

    The exact log Z is concave in c, so the maximum is the single zero of a decreasing
    slope, which EP gives with every solve: bracket it, then Brent's method. Every solve
    starts from the sites of the one before.

    Args:
        base: unbatched base Gaussian of n latents.
        sign: `n`, +1 stable, -1 crashed.
        rule: fixed, maximum likelihood or MAP.
        width: probit width of the labels.
        start: an estimate on the same trials to begin from.
        options: EP's stopping rule.
    """
    options = options or EPOptions()
    rough = replace(options, tolerance=max(options.tolerance, 1e-5), max_sweeps=min(options.max_sweeps, 60))
    ep = start.ep if start is not None else None
    solves = 0

    def solve(threshold: float, how: EPOptions) -> EPResult:
        nonlocal ep, solves
        labels = make_labels(sign, threshold, width, base)
        ep = expectation_propagation(base.mean, base.covariance, labels, start=ep, options=how)
        solves += 1
        return ep

    def slope(threshold: float) -> float:
        return rule.slope(threshold) - float(solve(threshold, rough).gradient.sum())

    known = rule.without_search(sign < 0)
    if known is None:
        deviation = float(base.covariance.diagonal().max().sqrt())
        known = max(_zero_of_decreasing(slope, _first_guess(base, sign, start), deviation), rule.floor)
    return ThresholdEstimate(known, solve(known, options), solves)


@torch.no_grad()
def expected_threshold(
    base: BaseGaussian, sign: Tensor, rule: ThresholdRule, mode: ThresholdEstimate, *, width: float
) -> float:
    """Return the posterior mean of the threshold, a better guess of the true limit than its mode.

    The posterior of c rises steeply at the highest stable cost and falls slowly above it, so the
    mode hugs that cost whatever the limit is. Integrated by the trapezoid rule on steps that widen
    away from the mode; each EP solve starts from the one before.

    Math: E[c] = int c Z_EP(c) p(c) dc / int Z_EP(c) p(c) dc

    Args:
        base, sign, rule, width: as in `estimate_threshold`.
        mode: its result.
    """
    if rule.without_search(sign < 0) is not None:
        return mode.threshold
    deviation = float(base.covariance.diagonal().max().sqrt())

    def walk(step: float) -> list[tuple[float, float]]:
        """Log posterior on one side of the mode, until it is negligible."""
        ep, c, points = mode.ep, mode.threshold, []
        for _ in range(60):
            if c + step < rule.floor:
                break
            c += step
            step *= 1.3
            ep = expectation_propagation(
                base.mean, base.covariance, make_labels(sign, c, width, base), start=ep, options=_ROUGH
            )
            points.append((c, float(ep.log_partition + rule.log_density(base.mean.new_tensor(c)))))
            if points[-1][1] < peak - 8:
                break
        return points

    peak = float(mode.ep.log_partition + rule.log_density(base.mean.new_tensor(mode.threshold)))
    left, right = walk(-0.003 * deviation), walk(0.02 * deviation)
    nodes = [*reversed(left), (mode.threshold, peak), *right]
    c = torch.tensor([node[0] for node in nodes], dtype=torch.float64)
    density = (torch.tensor([node[1] for node in nodes], dtype=torch.float64) - peak).exp()
    return float(torch.trapezoid(c * density, c) / torch.trapezoid(density, c))


def _first_guess(base: BaseGaussian, sign: Tensor, start: ThresholdEstimate | None) -> float:
    """One standard deviation above the highest stable latent, or the earlier estimate."""
    if start is not None and math.isfinite(start.threshold):
        return start.threshold
    upper = base.mean + base.covariance.diagonal().clamp_min(0).sqrt()
    return float(upper[sign > 0].max())


def _zero_of_decreasing(slope: Callable[[float], float], guess: float, deviation: float) -> float:
    """Bracket by doubling steps, then refine."""
    precision = _PRECISION * deviation + 1e-14 * abs(guess)
    known: dict[float, float] = {}

    def cached(threshold: float) -> float:
        # The ends of the bracket keep their signs, whatever a warm start changes in the last digits.
        if threshold not in known:
            known[threshold] = slope(threshold)
        return known[threshold]

    here, value = guess, cached(guess)
    if value == 0.0:
        return here
    step = math.copysign(0.1 * deviation + 1e-9 * abs(guess), value)
    for _ in range(200):
        there = here + step
        if cached(there) * value <= 0:
            return float(brentq(cached, min(here, there), max(here, there), xtol=precision, rtol=1e-14))
        here, step = there, 3 * step
    return here
