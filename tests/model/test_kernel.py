"""Each kernel: its slope is its derivative, and the mean cosine over its spectral samples is its correlation."""

import numpy as np
import pytest

from crashbo.model.kernel import CONSTANT, KERNELS, RBF, Kernel, Latents, Matern52, squared_distance

EACH = pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)


@EACH
def test_the_slope_is_the_derivative(kernel: Kernel) -> None:
    r2 = np.linspace(0.1, 9, 30)
    value, slope = kernel.correlation_and_slope(r2)
    np.testing.assert_allclose(value, kernel.correlation(r2), rtol=1e-14)
    ahead, behind = kernel.correlation(r2 + 1e-6), kernel.correlation(r2 - 1e-6)
    np.testing.assert_allclose(slope, -2 * (ahead - behind) / 2e-6, rtol=1e-6)
    assert kernel.correlation(np.zeros(1)) == 1


@EACH
def test_spectral_samples_have_the_kernel_as_their_mean_cosine(kernel: Kernel) -> None:
    frequencies = kernel.frequencies(200_000, 2, np.random.default_rng(0))
    for gap in np.array([[0.3, 0.0], [0.5, 0.8], [0.0, 2.0]]):
        assert np.cos(frequencies @ gap).mean() == pytest.approx(
            float(kernel.correlation(np.array([gap @ gap]))[0]), abs=0.006
        )


def test_squared_distances_are_in_lengthscales() -> None:
    A, B, lengthscale = np.array([[0.0, 0.0], [1.0, 1.0]]), np.array([[1.0, 0.5]]), np.array([[1.0, 0.5], [2.0, 1.0]])
    np.testing.assert_allclose(squared_distance(A, B, lengthscale), [[[2.0], [1.0]], [[0.5], [0.25]]])


def test_latents_that_are_the_same_are_computed_once() -> None:
    lengthscale = np.array([[[1.0], [CONSTANT]], [[1.0], [2.0]], [[1.0], [CONSTANT]]])
    latents = Latents.of(lengthscale, (RBF(), Matern52(), RBF()))
    assert len(latents.lengthscale) == 3
    r2 = np.ones((3, 1))
    each = latents.of_latent(latents.correlation(r2), 0, 1.0)
    expected = [RBF().correlation(np.ones(1)), Matern52().correlation(np.ones(1)), RBF().correlation(np.ones(1))]
    np.testing.assert_array_equal(each, expected)
    assert latents.of_latent(latents.correlation(r2), 1, 1.0)[0] == 1
