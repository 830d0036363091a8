"""Layers shared by the encoders and decoders: initial weights, capsule MLPs, presence noise."""

import itertools
import math
from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scae.config import NoiseConfig
from scae.distributed import global_uniform_like


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


class _CapsuleLinear(torch.autograd.Function):
    """W^T x + b of each capsule; autograd's own gradient of W would be a transposed matrix."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "capsules inputs batch"],
        weight: Float[Tensor, "capsules inputs outputs"],
        bias: Float[Tensor, "capsules 1 outputs"] | None,
    ) -> Float[Tensor, "capsules outputs batch"]:
        ctx.save_for_backward(x, weight)
        ctx.has_bias = bias is not None
        return weight.mT.bmm(x) if bias is None else torch.baddbmm(bias.mT, weight.mT, x)

    @staticmethod
    def backward(ctx: Any, *upstream: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        (gradient,) = upstream  # of lower precision than what was saved under autocast
        x, weight = (saved.to(gradient.dtype) for saved in ctx.saved_tensors)
        bias = gradient.sum(-1)[:, None] if ctx.has_bias else None
        return weight.bmm(gradient), x.bmm(gradient.mT), bias


class CapsuleMLP(nn.Module):
    """`capsules` MLPs side by side: ReLU hidden layers, linear output.

    Every layer is one batched product of matrices (K, features, B). With the batch innermost
    in memory, one feature of all examples is a contiguous row: what follows takes outputs apart
    by feature and never has to move them.
    """

    def __init__(self, capsules: int, widths: Sequence[int], output_bias: bool = True):
        super().__init__()
        self.weights = nn.ParameterList(
            truncated_normal_(torch.empty(capsules, inputs, outputs), inputs)
            for inputs, outputs in itertools.pairwise(widths)
        )
        self.biases = nn.ParameterList(
            torch.zeros(capsules, 1, outputs)
            for outputs in (widths[1:] if output_bias else widths[1:-1])
        )

    def forward(
        self,
        x: Float[Tensor, "capsules batch inputs"],
        basis: Float[Tensor, "inputs wide"] | None = None,
        constant: Float[Tensor, " wide"] | None = None,
    ) -> Float[Tensor, "capsules batch outputs"]:
        """Outputs for x, or for x @ basis + constant, which is then folded into the weights."""
        weights, biases = list(self.weights), list(self.biases)
        if basis is not None and constant is not None:
            shared = torch.cat([basis, constant[None]]).expand(len(weights[0]), -1, -1)
            weights[0], shift = (shared.bmm(weights[0])).split([len(basis), 1], 1)
            biases[0] = biases[0] + shift
        last = len(weights) - 1
        x = x.mT  # (K, inputs, B)
        for layer, weight in enumerate(weights):
            bias = biases[layer] if layer < len(biases) else None
            x = _CapsuleLinear.apply(x, weight, bias)
            if layer < last:
                x = x.relu()
        return x.mT


def add_noise(
    logit: Float[Tensor, "batch *shape"], noise: NoiseConfig, enabled: bool, training: bool
) -> Float[Tensor, "batch *shape"]:
    """Add U[-amplitude, amplitude] to logits (section 2.4, last paragraph).

    The model can only avoid the randomness by predicting logits far from zero.
    """
    if not enabled or noise.amplitude == 0 or not (training or noise.in_evaluation):
        return logit
    return logit + noise.amplitude * (2 * global_uniform_like(logit) - 1)
