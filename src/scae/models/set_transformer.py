"""Set Transformer (Lee et al. 2019) whose attention knows which elements are present.

Usable on its own: `SetTransformer(inputs, outputs, SetTransformerConfig(...))` encodes a set
of vectors with presences into `outputs` vectors, whatever the order of the set.
"""

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from scae.config import SetTransformerConfig
from scae.mixtures import safe_log
from scae.models.layers import glorot_uniform_, linear
from scae.models.packing import Packing, packing_of

# The release subtracts this times the absence from attention logits: a hard mask.
MASK = 1e32

PresenceForm = Literal["mask", "log"]


def presence_bias(
    presence: Float[Tensor, "batch keys"], form: PresenceForm, head_width: int
) -> Float[Tensor, "batch 1 1 keys"]:
    """What is added to scaled attention logits, so that absent elements are not attended to.

    `mask` is the released -(1-p) * 1e32 before scaling: with soft presences a hard arg-max.
    `log` adds log p, which multiplies each attention weight by the presence; the largest is
    shifted to 0, so that sets with nothing present keep their full precision.
    """
    if form == "mask":
        bias = (presence - 1) * MASK / math.sqrt(head_width)
    else:
        bias = safe_log(presence)
        bias = bias - bias.detach().amax(-1, keepdim=True)
    return bias[:, None, None, :]


class MultiHeadAttention(nn.Module):
    """softmax(Q K^T / sqrt(d) + bias) V for several heads, then a linear layer.

    Widths that the heads do not divide are rounded up per head, as released.
    """

    def __init__(self, width: int, heads: int, presence: PresenceForm = "log"):
        super().__init__()
        self.heads = heads
        self.head_width = math.ceil(width / heads)
        self.presence = presence
        inner = heads * self.head_width
        self.query = linear(width, inner)
        self.key = linear(width, inner)
        self.value = linear(width, inner)
        self.output = linear(inner, width)

    def bias(
        self, presence: Float[Tensor, "batch keys"] | None
    ) -> Float[Tensor, "batch 1 1 keys"] | None:
        if presence is None:
            return None
        return presence_bias(presence, self.presence, self.head_width)

    def project_once(self, x: Float[Tensor, "*set width"]) -> Float[Tensor, "*set three_inner"]:
        """Queries, keys and values of the same elements, side by side."""
        weight = torch.cat([self.query.weight, self.key.weight, self.value.weight])
        bias = torch.cat([self.query.bias, self.key.bias, self.value.bias])
        return F.linear(x, weight, bias)

    def forward(
        self,
        queries: Float[Tensor, "batch queries width"],
        keys: Float[Tensor, "batch keys width"],
        presence: Float[Tensor, "batch keys"] | None = None,
    ) -> Float[Tensor, "batch queries width"]:
        if queries is keys:  # one matrix product
            projected = self.project_once(keys).chunk(3, -1)
        else:
            projected = self.query(queries), self.key(keys), self.value(keys)
        q, k, v = (
            x.unflatten(-1, (self.heads, self.head_width)).transpose(1, 2) for x in projected
        )  # each (B, heads, n, d)
        bias = self.bias(presence)
        # Written out: for sets of a few dozen elements fused attention is slower. It also keeps
        # log-sum-exp, which at the mask's -1e32 cannot tell n keys from one.
        logits = (q / math.sqrt(self.head_width)) @ k.mT  # (B, heads, queries, keys)
        attended = (logits if bias is None else logits + bias).softmax(-1) @ v
        return self.output(attended.transpose(1, 2).flatten(-2))  # (B, queries, width)

    def packed(
        self, h: Float[Tensor, "total width"], packing: Packing
    ) -> Float[Tensor, "total width"]:
        """Self-attention of sets that lie end to end, all of their elements present."""
        from scae.kernels.attention import PackedAttention  # numba takes a second to load

        qkv = self.project_once(h)
        return self.output(PackedAttention.apply(qkv, packing.starts, self.heads))


class SelfAttentionBlock(nn.Module):
    """SAB: self-attention and an MLP, each with a residual and optional layer norm."""

    def __init__(self, width: int, heads: int, layer_norm: bool, presence: PresenceForm):
        super().__init__()
        self.attention = MultiHeadAttention(width, heads, presence)
        self.norm1 = nn.LayerNorm(width) if layer_norm else nn.Identity()
        self.hidden = linear(width, 2 * width)
        self.out = linear(2 * width, width)
        self.norm2 = nn.LayerNorm(width) if layer_norm else nn.Identity()

    def forward(
        self, x: Float[Tensor, "batch n width"], presence: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n width"]:
        return self.finish(self.attention(x, x, presence) + x, presence)

    def packed(
        self, h: Float[Tensor, "total width"], packing: Packing
    ) -> Float[Tensor, "total width"]:
        """The same for a packed batch of sets."""
        return self.finish(self.attention.packed(h, packing) + h, packing.keep)

    def finish(
        self, y: Float[Tensor, "*set width"], presence: Float[Tensor, "*set"] | None
    ) -> Float[Tensor, "*set width"]:
        """What follows the attention and its residual."""
        if presence is not None:
            y = y * presence[..., None]
        y = self.norm1(y)
        return self.norm2(self.out(self.hidden(y).relu()) + y)


class InducedSelfAttentionBlock(SelfAttentionBlock):
    """ISAB: the set attends to a few learned points that attended to it, linear in its size.

    The released code shares one attention module for both directions and lets presence act
    only on the residual sum; so does this.
    """

    def __init__(
        self, width: int, heads: int, layer_norm: bool, presence: PresenceForm, points: int
    ):
        super().__init__(width, heads, layer_norm, presence)
        self.points = nn.Parameter(glorot_uniform_(torch.empty(points, width), points, width))

    def forward(
        self, x: Float[Tensor, "batch n width"], presence: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch n width"]:
        points = self.points.expand(x.shape[0], -1, -1)
        return self.finish(self.attention(x, self.attention(points, x)) + x, presence)


@dataclass(frozen=True)
class LinearEncoding:
    """Encodings that are linear in a short summary, so that what follows can fold them in."""

    summary: Float[Tensor, "batch outputs rank"]
    basis: Float[Tensor, "rank output"]
    constant: Float[Tensor, " output"]

    def full(self) -> Float[Tensor, "batch outputs output"]:
        return F.linear(self.summary, self.basis.T, self.constant)


class AttentionPooling(nn.Module):
    """Pooling by learned queries: a set becomes `outputs` vectors, one per query.

    z = linear(h), then multi-head attention of the queries over z. Queries do not depend on
    the data, and keys and values are linear in h, so when h is narrow all projections fold
    into two small matrices: logits = h E^T and result = (A h) F + const, exactly.
    """

    def __init__(self, width: int, output: int, outputs: int, heads: int, presence: PresenceForm):
        super().__init__()
        self.expand = linear(width, output)
        self.queries = nn.Parameter(glorot_uniform_(torch.empty(outputs, output), outputs, output))
        self.attention = MultiHeadAttention(output, heads, presence)
        self.fold = heads * width <= output

    def forward(
        self, h: Float[Tensor, "batch n width"], presence: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch outputs output"]:
        """The definition, projection by projection."""
        queries = self.queries.expand(h.shape[0], -1, -1)
        return self.attention(queries, self.expand(h), presence)

    def folded(
        self, h: Float[Tensor, "batch n width"], presence: Float[Tensor, "batch n"] | None = None
    ) -> LinearEncoding:
        """The same with the projections multiplied out first."""
        attention, heads, width = self.attention, self.attention.heads, h.shape[-1]
        query = attention.query(self.queries).unflatten(-1, (heads, -1)).transpose(0, 1)
        key = attention.key.weight.unflatten(0, (heads, -1))  # (heads, d, output)
        # The keys' bias adds the same number to all logits of a query, so softmax drops it.
        effective = query @ key @ self.expand.weight  # (heads, K, width)
        logits = h[:, None] @ effective.mT / math.sqrt(attention.head_width)  # (B, heads, n, K)
        bias = attention.bias(presence)  # (B, 1, 1, n)
        if bias is not None:
            logits = logits + bias.mT
        pooled = logits.softmax(2).mT @ h[:, None]  # (B, heads, K, width)
        if pooled.requires_grad:
            # The gradient arrives capsule by capsule, an order that batched products loop over.
            pooled.register_hook(Tensor.contiguous)
        value = attention.value.weight @ self.expand.weight  # (heads*d, width)
        constant = F.linear(self.expand.bias, attention.value.weight, attention.value.bias)
        out = attention.output.weight.unflatten(1, (heads, -1)).transpose(0, 1)  # (heads, out, d)
        combined = (out @ value.unflatten(0, (heads, -1))).transpose(0, 1)  # (out, heads, width)
        constant = F.linear(constant, attention.output.weight, attention.output.bias)  # (out)
        pooled = pooled.transpose(1, 2).flatten(-2)  # (B, K, heads*width)
        return LinearEncoding(pooled, combined.reshape(-1, heads * width).T, constant)


class SetTransformer(nn.Module):
    """h^caps of eq. 1: embeds a set, transforms it, pools it into `outputs` vectors."""

    def __init__(self, inputs: int, outputs: int, config: SetTransformerConfig):
        super().__init__()
        width = config.total_width
        block = (width, config.heads, config.layer_norm, config.presence)
        # Induced points attend to absent elements too, and without blocks nothing removes them.
        self.packs = config.layers > 0 and not config.inducing_points
        self.embed = linear(inputs, width)
        self.blocks = nn.ModuleList(
            InducedSelfAttentionBlock(*block, config.inducing_points)
            if config.inducing_points
            else SelfAttentionBlock(*block)
            for _ in range(config.layers)
        )
        self.pool = AttentionPooling(width, config.output, outputs, config.heads, config.presence)

    def forward(
        self, x: Float[Tensor, "batch n inputs"], presence: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch outputs output"]:
        encoding = self.factors(x, presence)
        return encoding.full() if isinstance(encoding, LinearEncoding) else encoding

    def factors(
        self, x: Float[Tensor, "batch n inputs"], presence: Float[Tensor, "batch n"] | None = None
    ) -> Float[Tensor, "batch outputs output"] | LinearEncoding:
        """The same encodings, unmultiplied where that is cheaper for what follows."""
        h, presence = self.transform(x, presence)
        return self.pool.folded(h, presence) if self.pool.fold else self.pool(h, presence)

    def transform(
        self, x: Float[Tensor, "batch n inputs"], presence: Float[Tensor, "batch n"] | None
    ) -> tuple[Float[Tensor, "batch n width"], Float[Tensor, "batch n"] | None]:
        """The set before it is pooled, and which elements the pooling may attend to."""
        packing = packing_of(x, presence) if self.packs else None
        if packing is None:
            return self.transform_plain(x, presence), presence
        h = self.embed(packing.pack(x))  # (total, width)
        for block in self.blocks:
            assert isinstance(block, SelfAttentionBlock)
            h = block.packed(h, packing)
        return packing.unpack(h), packing.presence

    def transform_plain(
        self, x: Float[Tensor, "batch n inputs"], presence: Float[Tensor, "batch n"] | None
    ) -> Float[Tensor, "batch n width"]:
        """The definition: every element computed, absent ones too."""
        h = self.embed(x)  # (B, n, width)
        for block in self.blocks:
            h = block(h, presence)
        return h
