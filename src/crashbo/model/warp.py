"""Values far above the others, brought closer before they are modelled."""

import math
from dataclasses import dataclass, replace

import numpy as np

from crashbo.model.numbers import UNWARPED_BEYOND, WARPED_FROM
from crashbo.problem.arrays import Array


@dataclass(frozen=True)
class Warp:
    """Logarithmic growth above a knee, nothing changed below it, then an affine scaling.

    Order and minimum stay what they are. Its Jacobian takes part in the evidence, so that warps can be compared.

    Math: v = y for y <= knee, knee + (width / strength) log(1 + strength (y - knee) / width) above;
        z = (v - offset) / scale
    """

    knee: float = math.inf  # where growth slows down; inf changes nothing
    width: float = 1.0  # over which distance
    strength: float = 0.0
    offset: float = 0.0
    scale: float = 1.0
    farthest: float = 0.0  # exponent up to which the warp is undone; beyond, growth goes on linearly

    def __call__(self, values: Array) -> Array:
        """Warp and standardise."""
        return (self._bend(values) - self.offset) / self.scale

    def _bend(self, values: Array) -> Array:
        if not self.strength:
            return values
        above = np.maximum(values - self.knee, 0.0)
        slow = self.width / self.strength * np.log1p(self.strength * above / self.width)
        return np.where(above > 0, self.knee + slow, values)

    def log_jacobian(self, values: Array) -> float:
        """Sum of log dz / dy."""
        above = np.maximum(values - self.knee, 0.0)
        return -float(np.log1p(self.strength * above / self.width).sum()) - len(values) * math.log(self.scale)

    def undo(self, z: Array) -> Array:
        """The value that becomes `z`."""
        return self.undo_moments(np.asarray(z, dtype=np.float64), np.zeros(np.shape(z)))[0]

    def undo_moments(self, mean: Array, deviation: Array) -> tuple[Array, Array]:
        """Mean and standard deviation of the value, to first order, of a Gaussian `z`."""
        bent = self.offset + self.scale * mean
        if not self.strength:
            return bent, self.scale * deviation
        exponent = np.maximum(self.strength * (bent - self.knee) / self.width, 0.0)
        within = np.minimum(exponent, self.farthest)
        slope = np.exp(within)
        above = self.width / self.strength * (np.expm1(within) + slope * (exponent - within))
        return np.where(exponent > 0, self.knee + above, bent), self.scale * slope * deviation


def make_warp(values: Array, strength: float) -> Warp | None:
    """The warp of some strength that suits values; None where there is too little to tell what is usual."""
    warp = Warp()
    if strength:
        if len(values) < WARPED_FROM:
            return None
        knee = float(np.median(values))
        width = knee - float(values.min())
        if not width > max(1e-9 * float(np.abs(values).max()), 1e-100):
            return None
        farthest = math.log1p(strength * (float(values.max()) - knee) / width) + UNWARPED_BEYOND
        warp = Warp(knee, width, strength, farthest=farthest)
    bent = warp._bend(values)
    return replace(warp, offset=float(bent.mean()) if len(bent) else 0.0, scale=spread_of(bent))


def spread_of(values: Array) -> float:
    """Standard deviation; with one value, or equal ones, their size stands in for it; without any, 1."""
    if not len(values):
        return 1.0
    size = float(np.abs(values).max())
    spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    if spread <= 1e-9 * size:
        spread = size
    return spread if spread > 1e-100 else 1.0
