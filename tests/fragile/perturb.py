"""Joint covariances as another processor might compute them: times 1 + 1e-13 noise, a function of their content.

`install` changes the process it is called in and all Python processes started from it, which find `sitecustomize` in
the folder `startup`. It waits for the modules to be imported, so that nothing is imported earlier than without it, and
every module that imports a name from them gets the changed one.
"""

import functools
import hashlib
import importlib.machinery
import os
import sys
from collections.abc import Callable
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

SIZE = 1e-13  # standard deviation of the noise; a rounding error is 1e-16, a whole decomposition makes some thousands
SEED, SIZE_OF = "CRASHBO_PERTURB", "CRASHBO_PERTURB_SIZE"  # environment variables
_OF_KERNEL = "correlation_and_slope"  # of values alone, where they are learned from
PLACES = {  # whatever is decomposed to learn or to infer is computed by one of these
    "crashbo.model.rows": ("joint_covariance",),
    "crashbo.model.kernel": tuple(f"{kernel}.{_OF_KERNEL}" for kernel in ("Matern32", "Matern52", "RBF")),
    "crashbo.adapters.botorch.kernels": ("covariance",),
}


def noise_of(matrices: Any, seed: int) -> Any:
    """Symmetric standard normal noise for matrices `... x n x n`, each a function of its bytes and the seed."""
    import numpy as np

    n = matrices.shape[-1]
    found = np.empty((matrices.size // max(1, n * n), n, n))
    for noise, matrix in zip(found, matrices.reshape(found.shape), strict=True):
        digest = hashlib.blake2b(matrix.tobytes(), digest_size=16, key=str(seed).encode()).digest()
        drawn = np.tril(np.random.default_rng(int.from_bytes(digest)).standard_normal((n, n)))
        noise[:] = drawn + np.tril(drawn, -1).T
    return found.reshape(matrices.shape)


def perturbed(matrices: Any, seed: int, size: float = SIZE) -> Any:
    """Matrices `... x n x n`, NumPy's or torch's, entrywise times 1 + size noise."""
    if hasattr(matrices, "detach"):  # torch: gradients pass through
        return matrices * (1 + size * matrices.new_tensor(noise_of(matrices.detach().cpu().numpy(), seed)))
    return matrices * (1 + size * noise_of(matrices, seed))


def wrapped(function: Callable[..., Any], seed: int, size: float) -> Callable[..., Any]:
    """A function that returns matrices, or a tuple with matrices first; what is not square is left as it is."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        found = function(*args, **options)
        first, *rest = found if isinstance(found, tuple) else (found,)
        if first.ndim >= 2 and first.shape[-1] == first.shape[-2]:
            first = perturbed(first, seed, size)
        return (first, *rest) if isinstance(found, tuple) else first

    return call


class Finder:
    """Finds the modules of `PLACES` as usual, and changes their functions when they have been imported."""

    def __init__(self, seed: int, size: float) -> None:
        self.seed, self.size = seed, size

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The module's own spec, with a loader that does more."""
        spec = PathFinder.find_spec(name, path, target) if name in PLACES else None
        if spec is None:
            return None
        loader = spec.loader
        assert isinstance(loader, importlib.machinery.SourceFileLoader)
        execute = loader.exec_module

        def execute_and_change(module: ModuleType) -> None:
            execute(module)
            for place in PLACES[name]:
                *path, last = place.split(".")
                owner = functools.reduce(getattr, path, module)
                setattr(owner, last, wrapped(getattr(owner, last), self.seed, self.size))

        loader.exec_module = execute_and_change  # type: ignore[method-assign]
        return spec


def install(seed: int, size: float = SIZE) -> None:
    """Perturb this process, in which no module of `PLACES` is imported yet, and all that it starts."""
    early = sorted(set(PLACES) & set(sys.modules))
    assert not early, f"imported too early to be perturbed: {', '.join(early)}"
    sys.meta_path.insert(0, Finder(seed, size))
    startup = str(Path(__file__).parent / "startup")
    paths = [one for one in os.environ.get("PYTHONPATH", "").split(os.pathsep) if one and one != startup]
    os.environ |= {SEED: str(seed), SIZE_OF: str(size), "PYTHONPATH": os.pathsep.join([startup, *paths])}
