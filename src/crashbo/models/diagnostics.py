"""How far EP is from the truth on a user's own data."""

import math
from dataclasses import dataclass

import torch
from botorch.utils.probability.lin_ess import LinearEllipticalSliceSampler
from torch import Tensor

from crashbo.inference.base import BaseGaussian
from crashbo.inference.ep import Labels
from crashbo.inference.exact import exact_truncation
from crashbo.models.gpcr import GPCR
from crashbo.models.threshold import make_labels

_EXACT_UP_TO = 20


@dataclass(frozen=True)
class EPCheck:
    """EP beside samples of the exact posterior at the trials.

    Attributes:
        mean, standard_deviation: `n`, sampled, in the costs' own units.
        mean_error: largest |EP mean - sampled mean|, in sampled standard deviations.
        deviation_error: largest relative error of EP's standard deviations.
        log_partition_error: EP's log Z minus the exact integral, None beyond 20 trials.
        sampling_error: Monte Carlo error of the sampled means, in standard deviations.
    """

    mean: Tensor
    standard_deviation: Tensor
    mean_error: float
    deviation_error: float
    log_partition_error: float | None
    sampling_error: float

    def __str__(self) -> str:
        mass = "" if self.log_partition_error is None else f", log Z off by {self.log_partition_error:+.4f}"
        return (
            f"EP means within {self.mean_error:.3f} and deviations within {self.deviation_error:.1%} of the "
            f"exact posterior (sampling error {self.sampling_error:.3f}){mass}."
        )


def sample_truncated(base: BaseGaussian, labels: Labels, start: Tensor, samples: int, *, seed: int = 0) -> Tensor:
    """Draw from N(base) restricted by Heaviside labels, rejection-free, `samples x n`.

    BoTorch's linear elliptical slice sampler on a unit Gaussian; successive draws are
    correlated.

    Args:
        base: unbatched.
        labels: `n`, width ignored.
        start: `n`, any point that satisfies the labels strictly.
        samples: number of draws after a tenth as many for burn-in.
        seed: of the sampler.
    """
    n = len(base.mean)
    jitter = 1e-12 * base.covariance.diagonal().max()
    factor = torch.linalg.cholesky(base.covariance + jitter * torch.eye(n).to(base.mean))
    sign = labels.sign.to(base.mean).expand(n)
    bound = (sign * (labels.limit - base.mean)).unsqueeze(-1)
    white = torch.linalg.solve_triangular(factor, (start - base.mean).unsqueeze(-1), upper=False)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sampler = LinearEllipticalSliceSampler(
            inequality_constraints=(sign.unsqueeze(-1) * factor, bound), interior_point=white, burnin=samples // 10
        )
        draws: Tensor = sampler.draw(samples)
    return base.mean + draws.to(base.mean) @ factor.mT


def check_ep(model: GPCR, *, samples: int = 20_000, seed: int = 0) -> EPCheck:
    """Compare a model's EP posterior with samples of the exact one at its trials.

    Args:
        model: any GPCR; with a `label_width` the labels' own noise is sampled too.
        samples: draws of the slice sampler.
        seed: of sampler and integration.
    """
    with torch.no_grad():
        base = model.base()
        labels = make_labels(model.trials.sign, model._estimate.threshold, 0.0)
        width = model.given.label_width
        # A probit label is a Heaviside label on a latent with that much more variance.
        widened = BaseGaussian(
            base.mean, base.covariance + width**2 * torch.eye(len(base.mean)).to(base.mean), base.log_evidence
        )
        sign = labels.sign
        margin = 1e-3 * widened.covariance.diagonal().max().sqrt()
        limit = labels.limit if bool(labels.limit.isfinite().all()) else base.mean.abs().max() * 10 + 10 * margin * 1e3
        labels = make_labels(sign, limit, 0.0)
        gap = torch.maximum(sign * (limit - model.ep.mean), margin.expand_as(sign))
        draws = sample_truncated(widened, labels, limit - sign * gap, samples, seed=seed)
        if width:
            gain = torch.linalg.solve(widened.covariance, base.covariance)
            mean = base.mean + (draws.mean(0) - base.mean) @ gain
            spread = base.covariance - base.covariance @ gain + gain.mT @ torch.cov(draws.mT) @ gain
            deviation = spread.diagonal().clamp_min(0).sqrt()
        else:
            mean, deviation = draws.mean(0), draws.std(0)
        halves = (draws[: samples // 2].mean(0) - draws[samples // 2 :].mean(0)).abs() / 2
        exact = None
        if len(mean) <= _EXACT_UP_TO:
            exact = exact_truncation(
                base.mean, base.covariance, make_labels(sign, limit, max(width, 1e-6 * float(margin))), seed=seed
            )
    ep = model.ep
    return EPCheck(
        mean=model._offset + model._scale * mean,
        standard_deviation=model._scale * deviation,
        mean_error=float(((ep.mean - mean).abs() / deviation).max()),
        deviation_error=float((ep.variance.sqrt() / deviation - 1).abs().max()),
        log_partition_error=None if exact is None else float(ep.log_partition) - exact.log_partition,
        sampling_error=float((halves / deviation).max()),
    )
