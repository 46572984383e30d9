"""Crashes with no room for them: labels that everything else makes impossible are relaxed where they stand.

A crash next to a success, closer than the function can change, contradicts the success's value (the paper's
Discussion). Instead of noise everywhere, that crash alone may have been a lapse, and only if the evidence prefers this.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from crashbo.gp.ep import Labels
from crashbo.gp.inference import Posterior, Solution, infer
from crashbo.gp.rows import Hyperparameters, Rows

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
RATE = 1e-3  # lapse rate of a relaxed label
_AGAINST = 2.0  # log of how many times less likely than a priori the rest makes a label that is looked at


def find_conflicts(solution: Solution, labels: Labels) -> Bools:
    """Labels above a limit that other rows speak against, `b x m`: candidates to be relaxed.

    A label that is unlikely a priori, and no less likely given the rest, is a surprise but no conflict. A crash and a
    success at one point hold each other where EP cannot tell, so the values alone are asked too.

    Math: log Pr(label | rest) - log Pr(label) < -2, the rest being all other rows, or the values
    """
    sign, given = labels.sign, solution.given
    variance = np.maximum(np.einsum("bii->bi", given.covariance), np.square(given.smallest_width))
    alone = _log_mass(sign * labels.limit, given.deviation, labels.width)
    by_values = _log_mass(sign * (labels.limit - given.mean), np.sqrt(variance), labels.width)
    against = np.minimum(solution.ep.log_mass, by_values) - alone < -_AGAINST
    return np.asarray(against & (sign < 0) & (labels.lapse < RATE))


def _log_mass(gap: Array, deviation: Array, width: Array) -> Array:
    return np.asarray(log_ndtr(gap / np.hypot(deviation, width)))


def lapsed(solution: Solution, rates: Array) -> Bools:
    """Labels that were relaxed and are more likely to have lapsed than not, `b x m`."""
    return np.asarray((rates > 0) & (solution.ep.kept < 0.5))


def infer_relaxed(
    rows: Rows, at: Hyperparameters, *, width: float = 0.0, tolerance: float = 1e-6, max_sweeps: int = 200
) -> tuple[Posterior, Bools]:
    """`infer`, with labels relaxed that conflict with the rest where the evidence is higher so.

    Returns:
        The posterior, and which labels have lapsed, `b x m`.
    """

    def solve(rates: Array | None) -> Posterior:
        return infer(rows, at, width=width, relaxed=rates, tolerance=tolerance, max_sweeps=max_sweeps)

    strict = solve(None)
    b, m = strict.ep.mean.shape
    lapse = np.broadcast_to(at.lapse[:, None], (b, m))
    found = find_conflicts(strict, Labels(rows.sign, at.threshold[:, rows.label_output], np.full((b, m), width), lapse))
    if not found.any():
        return strict, found
    rates: Array = np.where(found, RATE, 0.0)
    relaxed = solve(rates)
    better = relaxed.log_evidence > strict.log_evidence
    if not better[found.any(-1)].all():
        rates = np.where(better[:, None], rates, 0.0)
        relaxed = solve(rates)
    return relaxed, lapsed(relaxed, rates)
