"""Initial values of weights, as the released code draws them."""

import math

import torch
from torch import Tensor, nn


def truncated_normal_(weight: Tensor, fan_in: int) -> Tensor:
    """Normal with standard deviation 1/sqrt(fan_in), cut at two standard deviations."""
    std = 1 / math.sqrt(fan_in)
    return nn.init.trunc_normal_(weight, std=std, a=-2 * std, b=2 * std)


def glorot_uniform_(weight: Tensor, fan_in: int, fan_out: int) -> Tensor:
    """Uniform with variance 2/(fan_in + fan_out)."""
    limit = math.sqrt(6 / (fan_in + fan_out))
    return nn.init.uniform_(weight, -limit, limit)


def linear(inputs: int, outputs: int) -> nn.Linear:
    """A linear layer with truncated-normal weights and zero bias."""
    layer = nn.Linear(inputs, outputs)
    truncated_normal_(layer.weight, inputs)
    nn.init.zeros_(layer.bias)
    return layer


def orthogonal_templates(parts: int, channels: int, size: int) -> Tensor:
    """Template logits: rows of the Q of a uniform matrix, rescaled together to [0, 1]."""
    pixels = channels * size * size
    side = max(parts, pixels)
    q = torch.linalg.qr(torch.rand(side, side, dtype=torch.float64)).Q[:parts, :pixels]
    span = (q.max() - q.min()).clamp_min(1e-12)  # a single pixel has none
    q = (q - q.min()) / span
    return q.float().reshape(parts, size, size, channels).permute(0, 3, 1, 2).contiguous()
