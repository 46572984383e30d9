"""Names for arrays, as used in signatures; their shapes stand in docstrings."""

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]
