"""Layers shared by the encoders and decoders: initial weights, capsule MLPs, presence noise."""

import itertools
import math
from collections.abc import Sequence

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


class CapsuleMLP(nn.Module):
    """`capsules` MLPs side by side: ReLU hidden layers, linear output.

    Tensors are laid out capsule first, (K, B, features), so every layer is one batched
    product of contiguous matrices.
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
            biases[0] = biases[0] + constant[None, None] @ weights[0]  # (K, 1, hidden)
            weights[0] = basis @ weights[0]  # (K, inputs, hidden)
        last = len(weights) - 1
        for layer, weight in enumerate(weights):
            if layer < len(biases):
                x = torch.baddbmm(biases[layer], x, weight)
            else:
                x = torch.bmm(x, weight)
            if layer < last:
                x = x.relu()
        return x


def add_noise(
    logit: Float[Tensor, "batch *shape"], noise: NoiseConfig, enabled: bool, training: bool
) -> Float[Tensor, "batch *shape"]:
    """Add U[-amplitude, amplitude] to logits (section 2.4, last paragraph).

    The model can only avoid the randomness by predicting logits far from zero.
    """
    if not enabled or noise.amplitude == 0 or not (training or noise.in_evaluation):
        return logit
    return logit + noise.amplitude * (2 * global_uniform_like(logit) - 1)
