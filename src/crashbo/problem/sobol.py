"""Scrambled Sobol points, the same as those of `scipy.stats.qmc.Sobol`.

Importing scipy.stats takes longer than a suggestion.
"""

import numpy as np

from crashbo.problem.arrays import Array

_BITS = 30
# Initial direction numbers by primitive polynomial, of S. Joe and F. Y. Kuo (new-joe-kuo-6.21201), first dimensions.
# fmt: off
_NUMBERS = {
    1: (1,), 3: (1,), 7: (1, 3), 11: (1, 3, 1), 13: (1, 1, 1), 19: (1, 1, 3, 3), 25: (1, 3, 5, 13),
    37: (1, 1, 5, 5, 17), 41: (1, 1, 5, 5, 5), 47: (1, 1, 7, 11, 19), 55: (1, 1, 5, 1, 1), 59: (1, 1, 1, 3, 11),
    61: (1, 3, 5, 5, 31), 67: (1, 3, 3, 9, 7, 49), 91: (1, 1, 1, 15, 21, 21), 97: (1, 3, 1, 13, 27, 49),
    103: (1, 1, 1, 15, 7, 5), 109: (1, 3, 1, 15, 13, 25), 115: (1, 1, 5, 5, 19, 61), 131: (1, 3, 7, 11, 23, 15, 103),
    137: (1, 3, 7, 13, 13, 15, 69), 143: (1, 1, 3, 13, 7, 35, 63), 145: (1, 3, 5, 9, 1, 25, 53),
    157: (1, 3, 1, 13, 9, 35, 107), 167: (1, 3, 1, 5, 27, 61, 31), 171: (1, 1, 5, 11, 19, 41, 61),
    185: (1, 3, 5, 3, 3, 13, 69), 191: (1, 1, 7, 13, 1, 19, 1), 193: (1, 3, 7, 5, 13, 19, 59),
    203: (1, 1, 3, 9, 25, 29, 41), 211: (1, 3, 5, 13, 23, 1, 55), 213: (1, 3, 7, 3, 13, 59, 17),
}
# fmt: on


def sobol(count: int, dimension: int, seed: int) -> Array:
    """The first points of a sequence that is scrambled by a random linear map and a shift, `count x dimension`."""
    if dimension > len(_NUMBERS):
        from scipy.stats import qmc

        sequence = qmc.Sobol(dimension, seed=np.random.default_rng(seed))
        return np.asarray(sequence.random_base2(max(count - 1, 0).bit_length())[:count])
    rng = np.random.default_rng(seed).spawn(1)[0]  # as scipy does
    powers = 2 ** np.arange(_BITS, dtype=np.uint32)
    shift = rng.integers(2, size=(dimension, _BITS), dtype=np.uint32) @ powers
    mixing = np.tril(rng.integers(2, size=(dimension, _BITS, _BITS), dtype=np.uint32))
    mixing[:, range(_BITS), range(_BITS)] = 1
    known = list(_NUMBERS.items())[:dimension]
    numbers = np.array([_directions(*one) for one in known], dtype=np.uint32).reshape(dimension, _BITS)
    digits = numbers[..., None] >> np.arange(_BITS)[::-1].astype(np.uint32) & 1  # highest first
    mixed = (np.einsum("dpk,djk->djp", mixing, digits) & 1) @ powers[::-1]
    index = np.arange(count, dtype=np.uint32)
    gray = index ^ index >> 1
    points = np.broadcast_to(shift, (count, dimension)).copy()
    for bit in range(max(count - 1, 0).bit_length()):
        points ^= (gray >> bit & 1)[:, None] * mixed[:, bit]
    return points / 2.0**_BITS


def _directions(polynomial: int, initial: tuple[int, ...]) -> list[int]:
    """The direction numbers of one dimension; those of the first, whose polynomial is 1, are all the same."""
    degree = polynomial.bit_length() - 1
    numbers = list(initial) if degree else [1] * _BITS
    for j in range(len(numbers), _BITS):
        new = numbers[j - degree]
        for k in range(degree):
            if polynomial >> (degree - 1 - k) & 1:
                new ^= numbers[j - k - 1] << (k + 1)
        numbers.append(new)
    return [number << (_BITS - 1 - j) for j, number in enumerate(numbers)]
