"""Small builders shared by the tests with BoTorch."""

import math

import torch
from gpytorch.kernels import MaternKernel, ScaleKernel
from torch import Tensor


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
