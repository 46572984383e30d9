"""Names for arrays, as used in signatures, and batches of them; shapes stand in docstrings."""

from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """A dataclass of `b` things: its arrays, tuples and batches have an entry for each; anything else is common."""

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))

    def select(self, index: Indices) -> Self:
        """Some of them, or some of them several times."""
        return replace(self, **{one.name: _entries(getattr(self, one.name), index) for one in fields(self)})

    def repeated(self, times: int) -> Self:
        """Each of them several times, one after the other."""
        return self.select(np.repeat(np.arange(len(self)), times))


def _entries(value: Any, index: Indices) -> Any:
    if isinstance(value, Batch):
        return value.select(index)
    if isinstance(value, tuple):
        return tuple(value[i] for i in index.tolist())
    return value[index] if isinstance(value, np.ndarray) else value
