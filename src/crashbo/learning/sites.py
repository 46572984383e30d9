"""EP's sites by place, to begin from once there are more trials."""

from dataclasses import dataclass

import numpy as np

from crashbo.arrays import Array, Indices
from crashbo.gp.inference import Posterior
from crashbo.gp.rows import Rows


@dataclass(frozen=True)
class KnownSites:
    """Site precisions and shifts of `b` posteriors, `2 x b x outputs x n`; 0 where there was no label."""

    by_place: Array

    @classmethod
    def of(cls, posterior: Posterior) -> "KnownSites":
        """Those of posteriors, by output and point."""
        rows = posterior.rows
        by_place = np.zeros((2, len(posterior), posterior.at.mixing.shape[1], len(rows.X)))
        by_place[:, :, rows.label_output, rows.label_point] = posterior.ep.sites
        return cls(by_place)

    def select(self, index: Indices) -> "KnownSites":
        """Some of the posteriors."""
        return KnownSites(self.by_place[:, index])

    def start(self, rows: Rows) -> Array:
        """For the labels of rows whose first points are those known here, `2 x b x m`; new labels begin at 0."""
        known = np.flatnonzero(rows.label_point < self.by_place.shape[-1])
        start = np.zeros((2, self.by_place.shape[1], len(rows.label_point)))
        start[..., known] = self.by_place[:, :, rows.label_output[known], rows.label_point[known]]
        return start
