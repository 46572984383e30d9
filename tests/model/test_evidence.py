"""The fast evidence of values alone against the general one."""

from dataclasses import replace

import numpy as np
import pytest

from crashbo.errors import NumericalError
from crashbo.model import inference
from crashbo.model.inference import evidence_gradient, infer, log_evidence_of_values
from crashbo.model.kernel import KERNELS
from crashbo.model.rows import Hyperparameters, Rows

NONE = np.zeros(0, dtype=np.int64)


def values_alone(n: int, d: int = 3) -> Rows:
    rng = np.random.default_rng(n)
    every = np.arange(n)
    return Rows(rng.uniform(size=(n, d)), every, 0 * every, rng.standard_normal(n), NONE, NONE, np.zeros(0))


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("n", [1, 2, 17])
@pytest.mark.parametrize("log_noise", [-25.0, -6.0])
def test_equals_the_general_evidence_and_gradient(kernel, n, log_noise):
    rows = values_alone(n)
    theta = np.array([-0.7, -0.2, 0.4, 0.3, log_noise])
    at = Hyperparameters(
        np.exp(theta[None, None, :-2]),
        np.exp(0.5 * theta[-2]).reshape(1, 1, 1),
        np.exp(theta[None, -1:]),
        np.zeros((1, 1)),
        np.zeros(1),
        kernel,
    )
    posterior = infer(rows, at)
    expected = evidence_gradient(posterior)[:-1]
    value, gradient = log_evidence_of_values(rows, theta, kernel)
    # A covariance that is off by E changes the evidence by b' E b / 2, b the weights: much where noise is tiny.
    weights = posterior.weights[0]
    rounding = 1e-12 * np.exp(theta[-2]) * np.abs(weights).sum() ** 2
    assert value == pytest.approx(float(posterior.log_evidence[0]), rel=1e-9, abs=rounding)
    assert np.allclose(gradient, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


def test_no_values_have_evidence_one():
    value, gradient = log_evidence_of_values(values_alone(0), np.zeros(5), KERNELS["matern52"])
    assert value == 0
    assert not gradient.any()


def test_a_covariance_that_cannot_be_factored_is_said(monkeypatch):
    monkeypatch.setattr(inference, "NOISE_FLOOR", 0.0)
    rows = replace(values_alone(3), X=np.full((3, 3), 0.5))
    with pytest.raises(NumericalError, match="not positive definite"):
        log_evidence_of_values(rows, np.array([0.0, 0.0, 0.0, 0.0, -800.0]), KERNELS["rbf"])
