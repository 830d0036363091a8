"""Sets with absent elements, laid end to end without them.

Half of the points of a constellation are absent, and every layer would compute them only to
be ignored. Exact for attention that masks absent keys: an absent element's state is multiplied
by 0 in every block, so it is a constant that reaches nobody, except where a whole set is
absent; there all states are the same constant, for which one element stands in.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class Packing:
    """Which elements are computed, and where each set begins among them."""

    elements: Int[Tensor, " total"]
    """Positions in the flattened batch x n elements."""
    starts: Int[Tensor, " sets_and_end"]
    keep: Float[Tensor, " total"]
    """1, or 0 for the element that stands in for an empty set."""
    presence: Float[Tensor, "batch n"]
    """1 for every computed element, stand-ins included."""

    @staticmethod
    def of(presence: Float[Tensor, "batch n"]) -> "Packing":
        """For presences that are all 0 or 1."""
        computed = presence.clone()
        computed[:, 0] = torch.where(presence.sum(1) == 0, 1.0, computed[:, 0])
        elements = computed.flatten().nonzero().squeeze(1)
        starts = torch.nn.functional.pad(computed.sum(1).long().cumsum(0), (1, 0))
        return Packing(elements, starts, presence.flatten()[elements], computed)

    def pack(self, x: Float[Tensor, "batch n width"]) -> Float[Tensor, "total width"]:
        return x.flatten(0, 1).index_select(0, self.elements)

    def unpack(self, h: Float[Tensor, "total width"]) -> Float[Tensor, "batch n width"]:
        """Back in place; elements that were not computed are 0."""
        full = h.new_zeros(self.presence.numel(), h.shape[1])
        return full.index_copy(0, self.elements, h).unflatten(0, tuple(self.presence.shape))


def packing_of(
    x: Float[Tensor, "batch n width"], presence: Float[Tensor, "batch n"] | None
) -> Packing | None:
    """A packing where it is exact and its kernel applies; None for the plain path.

    Soft presences take the plain path, and so do GPUs, other types and `torch.compile`.
    """
    if (
        presence is None
        or presence.requires_grad
        or not presence.numel()
        or torch.compiler.is_compiling()
        or any(t.device.type != "cpu" or t.dtype != torch.float32 for t in (x, presence))
        or not ((presence == 0) | (presence == 1)).all()
    ):
        return None
    return Packing.of(presence)
