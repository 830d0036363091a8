"""Independent MLPs, one per capsule, as batched matrix products."""

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from scae.initialisation import truncated_normal_


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
