"""How far EP is from the truth on a user's own data."""

import math
from dataclasses import dataclass, replace

import torch
from botorch.utils.probability.lin_ess import LinearEllipticalSliceSampler
from torch import Tensor

from crashbo.inference.base import BaseGaussian
from crashbo.inference.ep import Labels
from crashbo.inference.exact import exact_truncation
from crashbo.models.gpcr import GPCR
from crashbo.models.threshold import make_labels

_CHAINS = 256
_BURN_IN = 300  # steps per chain before samples count
_EXACT_UP_TO = 20


@dataclass(frozen=True)
class EPCheck:
    """EP beside samples of the exact posterior at the trials.

    Attributes:
        mean, standard_deviation: `n`, sampled, in the costs' own units.
        mean_error: largest |EP mean - sampled mean|, in sampled standard deviations.
        deviation_error: largest relative error of EP's standard deviations.
        sampling_error: largest standard error of the sampled means, in standard deviations.
        log_partition_error: EP's log Z minus the exact integral; None beyond 20 trials.
    """

    mean: Tensor
    standard_deviation: Tensor
    mean_error: float
    deviation_error: float
    sampling_error: float
    log_partition_error: float | None

    def __str__(self) -> str:
        mass = "" if self.log_partition_error is None else f"; log Z off by {self.log_partition_error:+.4f}"
        return (
            f"EP's means are within {self.mean_error:.3f} standard deviations of the exact posterior's "
            f"(sampling error {self.sampling_error:.3f}), its deviations within {self.deviation_error:.1%}{mass}."
        )


def sample_truncated(base: BaseGaussian, labels: Labels, start: Tensor, samples: int, *, seed: int = 0) -> Tensor:
    """Draw from N(base) restricted by Heaviside labels, rejection-free.

    BoTorch's linear elliptical slice sampler, many chains side by side.

    Args:
        base: unbatched.
        labels: `n`; their width is ignored.
        start: `n`, any point that satisfies the labels strictly.
        samples: at least this many draws.
        seed: of the sampler; torch's global generator is left as it was.

    Returns:
        `chains x draws x n`.
    """
    n = len(base.mean)
    jitter = 1e-12 * base.covariance.diagonal().max()
    factor = torch.linalg.cholesky(base.covariance + jitter * torch.eye(n).to(base.mean))
    sign = labels.sign.to(base.mean).expand(n)
    bound = (sign * (labels.limit - base.mean)).unsqueeze(-1)
    white = torch.linalg.solve_triangular(factor, (start - base.mean).unsqueeze(-1), upper=False)
    draws_per_chain = math.ceil(samples / _CHAINS)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sampler = LinearEllipticalSliceSampler(
            inequality_constraints=(sign.unsqueeze(-1) * factor, bound),
            interior_point=white,
            burnin=_BURN_IN,
            num_chains=_CHAINS,
        )
        steps = [sampler.step().mT.clone() for _ in range(draws_per_chain)]
    return base.mean + torch.stack(steps, 1) @ factor.mT


def check_ep(model: GPCR, *, samples: int = 50_000, seed: int = 0) -> EPCheck:
    """Compare a model's EP posterior with samples of the exact one at its trials.

    Args:
        model: any GPCR. Labels with a `label_width` are sampled with their own noise.
        samples: draws of the slice sampler.
        seed: of sampler and integration.
    """
    ep, width, sign = model.ep, model.given.label_width, model.trials.sign
    with torch.no_grad():
        base = model.base()
        # A probit label is a Heaviside label on a latent with that much more variance.
        extra = width**2 * torch.eye(len(sign)).to(sign)
        noisy = replace(base, covariance=base.covariance + extra)
        margin = noisy.covariance.diagonal().max().sqrt()
        limit = ep.mean.new_tensor(model.internal_threshold)
        if not limit.isfinite():
            limit = ep.mean.max() + 100 * margin
        gap = torch.maximum(sign * (limit - ep.mean), 1e-3 * margin)
        chains = sample_truncated(noisy, make_labels(sign, limit, 0.0), limit - sign * gap, samples, seed=seed)
        draws = chains.flatten(0, 1)
        gain = torch.linalg.solve(noisy.covariance, base.covariance) if width else torch.eye(len(sign)).to(sign)
        mean = base.mean + (draws.mean(0) - base.mean) @ gain
        spread = base.covariance - base.covariance @ gain if width else torch.zeros_like(base.covariance)
        deviation = (spread + gain.mT @ torch.cov(draws.mT) @ gain).diagonal().clamp_min(0).sqrt()
        error = chains.mean(1).std(0) / math.sqrt(_CHAINS)
        exact = None
        if len(sign) <= _EXACT_UP_TO:
            floor = 1e-6 * float(margin)  # keeps near-duplicates integrable
            exact = exact_truncation(base.mean, base.covariance, make_labels(sign, limit, max(width, floor)), seed=seed)
    return EPCheck(
        mean=model.to_costs(mean),
        standard_deviation=model.to_costs(deviation) - model.to_costs(torch.zeros_like(deviation)),
        mean_error=float(((ep.mean - mean).abs() / deviation).max()),
        deviation_error=float((ep.variance.sqrt() / deviation - 1).abs().max()),
        sampling_error=float((error / deviation).max()),
        log_partition_error=None if exact is None else float(ep.log_partition) - exact.log_partition,
    )
