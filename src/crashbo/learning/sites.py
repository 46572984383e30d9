"""EP's sites by place, to begin from once there are more trials."""

from dataclasses import dataclass

import numpy as np

from crashbo.arrays import Array, Indices
from crashbo.gp.inference import Posterior
from crashbo.gp.rows import Rows


@dataclass(frozen=True)
class KnownSites:
    """Site precisions and shifts of `b` posteriors, `b x outputs x n` each; 0 where there was no label."""

    precision: Array
    shift: Array

    @classmethod
    def of(cls, posterior: Posterior) -> "KnownSites":
        """Those of posteriors, by output and point."""
        rows, ep = posterior.rows, posterior.ep
        precision, shift = np.zeros((2, len(posterior), posterior.at.mixing.shape[1], len(rows.X)))
        precision[:, rows.label_output, rows.label_point] = ep.precision
        shift[:, rows.label_output, rows.label_point] = ep.shift
        return cls(precision, shift)

    def select(self, index: Indices) -> "KnownSites":
        """Some of the posteriors."""
        return KnownSites(self.precision[index], self.shift[index])

    def start(self, rows: Rows) -> tuple[Array, Array]:
        """For the labels of rows whose first points are those known here, `b x m` each; new labels begin at 0."""
        known = np.flatnonzero(rows.label_point < self.precision.shape[-1])
        output, point = rows.label_output[known], rows.label_point[known]
        precision, shift = np.zeros((2, len(self.precision), len(rows.label_point)))
        precision[:, known], shift[:, known] = self.precision[:, output, point], self.shift[:, output, point]
        return precision, shift
