"""The switch `--perturb` of this suite."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.fragile.perturb import PLACES, SEED, SIZE, SIZE_OF, perturbed, wrapped

ROOT = Path(__file__).parents[2]
COVARIANCE = """
import numpy as np
from crashbo.model.inference import joint_covariance
from crashbo.model.rows import Hyperparameters, Rows
n = 3
none = np.zeros(0, int)
rows = Rows(np.array([[0.1], [0.5], [0.9]]), np.arange(n), np.zeros(n, int), np.zeros(n), none, none, np.zeros(0))
one = np.ones((1, 1))
print(joint_covariance(rows, Hyperparameters(one[:, None], one[:, None], one, one, np.zeros(1))).tolist())
"""
CHANGED = """
import functools, importlib
module = importlib.import_module({module!r})
print([hasattr(functools.reduce(getattr, name.split("."), module), "__wrapped__") for name in {names!r}])
"""


def said_by_a_process_of_a_process(code: str, seed: int | None) -> Any:
    """What a program prints that is started by one which is perturbed, or not."""
    begin = "" if seed is None else f"from tests.fragile import perturb; perturb.install({seed}); "
    start = begin + f"import subprocess, sys; subprocess.run([sys.executable, '-c', {code!r}], check=True)"
    clean = {name: value for name, value in os.environ.items() if name not in (SEED, SIZE_OF)}
    done = subprocess.run(
        [sys.executable, "-c", start], cwd=ROOT, env=clean, capture_output=True, text=True, check=True
    )
    return ast.literal_eval(done.stdout)


@pytest.fixture
def matrices() -> np.ndarray:
    X = np.random.default_rng(0).random((2, 30, 3))
    return np.exp(-np.square(X[:, :, None] - X[:, None]).sum(-1))


def test_the_same_matrix_gets_the_same_noise_alone_and_among_others(matrices: np.ndarray) -> None:
    found = perturbed(matrices, 1)
    np.testing.assert_array_equal(found, perturbed(matrices.copy(), 1))
    np.testing.assert_array_equal(found[1], perturbed(matrices[1], 1))
    assert (found != perturbed(matrices, 2)).any()


def test_the_noise_is_small_symmetric_and_everywhere(matrices: np.ndarray) -> None:
    found = perturbed(matrices, 1)
    np.testing.assert_array_equal(found, found.swapaxes(-1, -2))
    relative = found / matrices - 1
    assert 0.8 * SIZE < relative.std() < 1.2 * SIZE
    assert abs(relative).max() < 6 * SIZE
    assert perturbed(np.zeros((1, 0, 0)), 1).shape == (1, 0, 0)


def test_gradients_pass_through_a_matrix_of_torch(matrices: np.ndarray) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra botorch")
    given = torch.tensor(matrices, requires_grad=True)
    found = perturbed(given, 1)
    np.testing.assert_array_equal(found.detach().numpy(), perturbed(matrices, 1))
    (slope,) = torch.autograd.grad(found.sum(), given)
    np.testing.assert_allclose(slope.numpy(), 1, atol=6 * SIZE)


def test_what_comes_with_a_matrix_and_what_is_not_square_stays(matrices: np.ndarray) -> None:
    first, second = wrapped(lambda: (matrices, matrices), 1, SIZE)()
    assert (first != matrices).any()
    assert second is matrices
    assert wrapped(lambda: matrices[:, 1:], 1, SIZE)().shape == (2, 29, 30)


def test_processes_that_are_started_are_perturbed_and_modules_that_import_the_name_too() -> None:
    plain, changed = (np.array(said_by_a_process_of_a_process(COVARIANCE, seed)) for seed in (None, 7))
    assert (plain != changed).any()
    np.testing.assert_allclose(changed, plain, rtol=6 * SIZE)


@pytest.mark.parametrize("module", PLACES)
def test_every_place_is_changed(module: str) -> None:
    if "botorch" in module:
        pytest.importorskip("botorch", reason="needs the extra botorch")
    code = CHANGED.format(module=module, names=PLACES[module])
    assert all(said_by_a_process_of_a_process(code, 1))
    assert not any(said_by_a_process_of_a_process(code, None))
