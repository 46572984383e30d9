"""How far EP is from the truth on a user's own data."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from botorch.utils.probability.lin_ess import LinearEllipticalSliceSampler
from torch import Tensor

from crashbo.adapters.botorch.data import to_numpy
from crashbo.adapters.botorch.gpcr import GPCR
from crashbo.model.ep import Labels
from crashbo.model.exact import exact_truncation
from crashbo.problem.arrays import Array, Indices

_CHAINS = 256
_BURN_IN = 300  # steps per chain before samples count
_EXACT_UP_TO = 20


@dataclass(frozen=True)
class EPCheck:
    """EP compared with samples of the exact posterior at the trials.

    Attributes:
        mean, standard_deviation: `n`, of the samples, in the units of the costs.
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


def sample_truncated(
    mean: Array, covariance: Array, sign: Array, limit: float, start: Array, samples: int, *, seed: int = 0
) -> Array:
    """Draw from N(mean, covariance) cut off at a limit, rejection-free.

    BoTorch's linear elliptical slice sampler, many chains side by side.

    Args:
        mean, covariance: `n`, `n x n`.
        sign: `n`, +1 where draws lie at or below the limit, -1 where above.
        limit: of all latents.
        start: `n`, any point strictly on its side.
        samples: at least this many draws.
        seed: of the sampler; torch's global generator is left as it was.

    Returns:
        `chains x draws x n`.
    """
    factor = np.linalg.cholesky(covariance + 1e-12 * np.diagonal(covariance).max() * np.eye(len(mean)))
    white = np.linalg.solve(factor, start - mean)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sampler = LinearEllipticalSliceSampler(
            inequality_constraints=(
                torch.as_tensor(sign[:, None] * factor),
                torch.as_tensor(sign * (limit - mean))[:, None],
            ),
            interior_point=torch.as_tensor(white)[:, None],
            burnin=_BURN_IN,
            num_chains=_CHAINS,
        )
        steps = [sampler.step().mT.numpy().copy() for _ in range(math.ceil(samples / _CHAINS))]
    return np.asarray(mean + np.stack(steps, 1) @ factor.T)


def check_ep(model: GPCR, *, samples: int = 50_000, seed: int = 0) -> EPCheck:
    """Compare a model's EP posterior with samples of the exact posterior at its trials.

    Args:
        model: any GPCR. Labels with a `label_width` are sampled with that noise; relaxed labels count as lapses.
        samples: number of draws of the slice sampler.
        seed: seed of sampling and integration.
    """
    state, width = model.fit, model.given.label_width
    ep, given = state.solution.ep, state.solution.given
    kept = np.setdiff1d(np.arange(len(model.trials.X)), state.estimate.relaxed)
    sign = to_numpy(model.trials.sign)
    # A probit label is a step on a latent with that much more variance.
    noisy = given.covariance[0] + width**2 * np.eye(len(sign))
    margin = math.sqrt(np.diagonal(noisy).max())
    limit = model.internal_threshold
    if not math.isfinite(limit):
        limit = float(ep.mean.max()) + 100 * margin
    chains = _chains(given.mean[0], noisy, sign, limit, ep.mean[0], kept, samples, seed)
    draws = chains.reshape(-1, len(kept))
    gain = np.linalg.solve(noisy[np.ix_(kept, kept)] + 1e-14 * margin**2 * np.eye(len(kept)), given.covariance[0][kept])
    mean = given.mean[0] + (draws.mean(0) - given.mean[0][kept]) @ gain
    left = given.covariance[0] - given.covariance[0][:, kept] @ gain
    spread = np.diagonal(left) + np.einsum("ki,kl,li->i", gain, np.cov(draws.T, ddof=1).reshape(len(kept), -1), gain)
    deviation = np.sqrt(np.maximum(spread, 0.0))
    error = chains.mean(1).std(0, ddof=1) / math.sqrt(_CHAINS)
    exact = None
    if len(sign) <= _EXACT_UP_TO:
        floor = 1e-6 * margin  # keeps near-duplicates integrable
        labels = Labels(sign, limit, max(width, floor), state.estimate.rates)
        exact = exact_truncation(given.mean[0], given.covariance[0], labels, seed=seed)
    return EPCheck(
        mean=torch.as_tensor(state.offset + state.scale * mean).to(model.trials.X),
        standard_deviation=torch.as_tensor(state.scale * deviation).to(model.trials.X),
        mean_error=float((np.abs(ep.mean[0] - mean) / deviation).max()),
        deviation_error=float(np.abs(np.sqrt(ep.variance[0]) / deviation - 1).max()),
        sampling_error=float((error / deviation[kept]).max()),
        log_partition_error=None if exact is None else float(ep.log_partition[0]) - exact.log_partition,
    )


def _chains(
    mean: Array, covariance: Array, sign: Array, limit: float, near: Array, kept: Indices, samples: int, seed: int
) -> Array:
    """Draws of the labels that are kept, from a start near `near` on the right sides."""
    margin = 1e-3 * math.sqrt(np.diagonal(covariance).max())
    side = sign[kept]
    start = limit - side * np.maximum(side * (limit - near[kept]), margin)
    return sample_truncated(mean[kept], covariance[np.ix_(kept, kept)], side, limit, start, samples, seed=seed)
