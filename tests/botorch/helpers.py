"""Small builders shared by the tests."""

import math

import numpy as np
import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch import Tensor

from crashbo.inference.ep import Labels


def double(values: object) -> Tensor:
    """A float64 tensor."""
    return torch.as_tensor(values, dtype=torch.float64)


def matern(lengthscale: float | list[float] = 0.2, outputscale: float = 0.5, nu: float = 1.5) -> ScaleKernel:
    """A gpytorch Matern kernel with given hyperparameters and no priors."""
    dimension = len(lengthscale) if isinstance(lengthscale, list) else None
    kernel = ScaleKernel(MaternKernel(nu=nu, ard_num_dims=dimension)).double()
    kernel.base_kernel.lengthscale = double(lengthscale)
    kernel.outputscale = double(outputscale)
    return kernel


def matern32_matrix(X: Tensor, other: Tensor, lengthscale: float = 0.2, outputscale: float = 0.5) -> Tensor:
    """The Matern-3/2 covariance from its formula."""
    r = math.sqrt(3) * torch.linalg.norm(X[:, None] - other[None], dim=-1) / lengthscale
    return outputscale * (1 + r) * torch.exp(-r)


def labels(crashed: Tensor, limit: float | Tensor, width: float = 0.0) -> Labels:
    """Labels of n latents against one limit, or against a batch of limits (`b x 1`)."""
    limit = limit if isinstance(limit, Tensor) else double([limit])
    return Labels(1.0 - 2.0 * crashed.double(), limit, double([width]))


def random_covariance(n: int, seed: int) -> Tensor:
    """A Matern-3/2 covariance at n random points of the square."""
    X = torch.as_tensor(np.random.default_rng(seed).uniform(size=(n, 2)))
    return matern32_matrix(X, X, lengthscale=0.5, outputscale=1.0)
