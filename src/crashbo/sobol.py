"""Scrambled Sobol points, the same as those of `scipy.stats.qmc.Sobol`.

Importing scipy.stats takes longer than a suggestion.
"""

import numpy as np
from numpy.typing import NDArray

_BITS = 30
# Primitive polynomials and initial direction numbers of S. Joe and F. Y. Kuo (new-joe-kuo-6.21201), first dimensions.
_POLYNOMIALS = (
    1,
    3,
    7,
    11,
    13,
    19,
    25,
    37,
    41,
    47,
    55,
    59,
    61,
    67,
    91,
    97,
    103,
    109,
    115,
    131,
    137,
    143,
    145,
    157,
    167,
    171,
    185,
    191,
    193,
    203,
    211,
    213,
)
_INITIAL = (
    (1,),
    (1,),
    (1, 3),
    (1, 3, 1),
    (1, 1, 1),
    (1, 1, 3, 3),
    (1, 3, 5, 13),
    (1, 1, 5, 5, 17),
    (1, 1, 5, 5, 5),
    (1, 1, 7, 11, 19),
    (1, 1, 5, 1, 1),
    (1, 1, 1, 3, 11),
    (1, 3, 5, 5, 31),
    (1, 3, 3, 9, 7, 49),
    (1, 1, 1, 15, 21, 21),
    (1, 3, 1, 13, 27, 49),
    (1, 1, 1, 15, 7, 5),
    (1, 3, 1, 15, 13, 25),
    (1, 1, 5, 5, 19, 61),
    (1, 3, 7, 11, 23, 15, 103),
    (1, 3, 7, 13, 13, 15, 69),
    (1, 1, 3, 13, 7, 35, 63),
    (1, 3, 5, 9, 1, 25, 53),
    (1, 3, 1, 13, 9, 35, 107),
    (1, 3, 1, 5, 27, 61, 31),
    (1, 1, 5, 11, 19, 41, 61),
    (1, 3, 5, 3, 3, 13, 69),
    (1, 1, 7, 13, 1, 19, 1),
    (1, 3, 7, 5, 13, 19, 59),
    (1, 1, 3, 9, 25, 29, 41),
    (1, 3, 5, 13, 23, 1, 55),
    (1, 3, 7, 3, 13, 59, 17),
)


def sobol(count: int, dimension: int, seed: int) -> NDArray[np.float64]:
    """The first points of a sequence that is scrambled by a random linear map and a shift, `count x dimension`."""
    if dimension > len(_POLYNOMIALS):
        return _of_scipy(count, dimension, seed)
    rng = np.random.default_rng(seed).spawn(1)[0]  # as scipy does
    powers = 2 ** np.arange(_BITS, dtype=np.uint32)
    shift = rng.integers(2, size=(dimension, _BITS), dtype=np.uint32) @ powers
    mixing = np.tril(rng.integers(2, size=(dimension, _BITS, _BITS), dtype=np.uint32))
    mixing[:, range(_BITS), range(_BITS)] = 1
    numbers = np.array([_directions(i) for i in range(dimension)], dtype=np.uint32)
    digits = numbers[..., None] >> np.arange(_BITS)[::-1].astype(np.uint32) & 1  # highest first
    mixed = (np.einsum("dpk,djk->djp", mixing, digits) & 1) @ powers[::-1]
    index = np.arange(count, dtype=np.uint32)
    gray = index ^ index >> 1
    points = np.broadcast_to(shift, (count, dimension)).copy()
    for bit in range(max(count - 1, 0).bit_length()):
        points ^= (gray >> bit & 1)[:, None] * mixed[:, bit]
    return points / 2.0**_BITS


def _directions(i: int) -> list[int]:
    """The direction numbers of one dimension."""
    if i == 0:
        return [1 << (_BITS - 1 - j) for j in range(_BITS)]
    polynomial, numbers = _POLYNOMIALS[i], list(_INITIAL[i])
    degree = polynomial.bit_length() - 1
    for j in range(degree, _BITS):
        new = numbers[j - degree]
        for k in range(degree):
            if polynomial >> (degree - 1 - k) & 1:
                new ^= numbers[j - k - 1] << (k + 1)
        numbers.append(new)
    return [number << (_BITS - 1 - j) for j, number in enumerate(numbers)]


def _of_scipy(count: int, dimension: int, seed: int) -> NDArray[np.float64]:
    from scipy.stats import qmc

    sequence = qmc.Sobol(dimension, seed=np.random.default_rng(seed))
    return np.asarray(sequence.random_base2(max(count - 1, 0).bit_length())[:count])
