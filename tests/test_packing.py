"""Packed sets against their plain twins: every element computed, absent ones masked."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from scae.config import SetTransformerConfig
from scae.kernels.attention import PackedAttention
from scae.models.packing import Packing, packing_of
from scae.models.set_transformer import PresenceForm, SetTransformer


def one_by_one(qkv: np.ndarray, counts: list[int], heads: int) -> np.ndarray:
    """Attention of each set and head by itself, in float64."""
    q, k, v = np.split(qkv.astype(np.float64), 3, axis=1)
    out = np.empty_like(q)
    for begin, count in zip(np.cumsum([0, *counts]), counts, strict=False):
        for columns in np.split(np.arange(q.shape[1]), heads):
            here = np.ix_(range(begin, begin + count), columns)
            logits = q[here] @ k[here].T / math.sqrt(len(columns))
            weights = np.exp(logits - logits.max(1, keepdims=True))
            out[here] = weights / weights.sum(1, keepdims=True) @ v[here]
    return out


@settings(deadline=None, max_examples=40)
@given(
    counts=st.lists(st.integers(1, 9), min_size=1, max_size=40),
    heads=st.integers(1, 4),
    width=st.integers(1, 9),
    size=st.sampled_from([1e-3, 1.0, 4.0]),
)
def test_kernel_is_attention_within_each_set(counts, heads, width, size) -> None:
    generator = torch.Generator().manual_seed(sum(counts))
    qkv = size * torch.randn(sum(counts), 3 * heads * width, generator=generator)
    starts = torch.tensor([0, *counts]).cumsum(0)
    found = PackedAttention.apply(qkv, starts, heads)
    assert np.allclose(found, one_by_one(qkv.numpy(), counts, heads), rtol=1e-4, atol=1e-4 * size)


def test_kernel_with_huge_logits_takes_the_largest() -> None:
    """Logits of thousands leave one key its whole weight, without overflow."""
    qkv = torch.zeros(3, 6)
    qkv[:, :2], qkv[:, 4:] = 100.0, torch.tensor([[1.0, 2], [3, 4], [5, 6]])
    qkv[1, 2:4] = 100.0
    found = PackedAttention.apply(qkv, torch.tensor([0, 3]), 1)
    assert torch.equal(found, torch.tensor([[3.0, 4]] * 3))


def test_kernel_gradient_is_that_of_dense_attention() -> None:
    qkv = torch.randn(3 * 5, 3 * 8, requires_grad=True)
    upstream = torch.randn(3 * 5, 8)
    q, k, v = (x.view(3, 5, 2, 4).transpose(1, 2) for x in qkv.chunk(3, -1))
    dense = torch.softmax(q @ k.mT / 2, -1) @ v
    (expected,) = torch.autograd.grad(dense.transpose(1, 2).reshape(15, 8), qkv, upstream)
    packed = PackedAttention.apply(qkv, torch.arange(0, 16, 5), 2)
    (found,) = torch.autograd.grad(packed, qkv, upstream)
    assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("form", ["mask", "log"])
@pytest.mark.parametrize("layer_norm", [True, False])
def test_packed_transformer_is_the_plain_one(form: PresenceForm, layer_norm: bool) -> None:
    torch.manual_seed(0)
    config = SetTransformerConfig(
        layers=3, heads=4, width=32, output=12, presence=form, layer_norm=layer_norm
    )
    encoder = SetTransformer(2, 3, config)
    presence = (torch.rand(40, 7) < 0.5).float()
    presence[:4] = 0  # empty scenes
    presence[4:8] = 1
    x = torch.randn(40, 7, 2).requires_grad_()  # absent points too are somewhere
    upstream = torch.randn(40, 3, 12)

    def outcome(h: torch.Tensor, seen: torch.Tensor | None) -> list[torch.Tensor]:
        result = encoder.pool(h, seen)
        return [result, *torch.autograd.grad(result, [x, *encoder.parameters()], upstream)]

    assert packing_of(x, presence) is not None
    plain = outcome(encoder.transform_plain(x, presence), presence)
    packed = outcome(*encoder.transform(x, presence))
    assert torch.allclose(packed[0], plain[0], atol=1e-5)
    # Some gradients are 0 but for rounding (the keys' bias), so all share one scale.
    largest = max(float(g.abs().max()) for g in plain[1:])
    for ours, theirs in zip(packed[1:], plain[1:], strict=True):
        assert torch.allclose(ours, theirs, rtol=1e-4, atol=1e-6 * largest)


def test_packing_keeps_present_elements_and_one_for_an_empty_set() -> None:
    presence = torch.tensor([[0.0, 1, 1], [0, 0, 0], [1, 0, 0]])
    found = Packing.of(presence)
    assert found.elements.tolist() == [1, 2, 3, 6]
    assert found.starts.tolist() == [0, 2, 3, 4]
    assert found.keep.tolist() == [1, 1, 0, 1]
    x = torch.arange(9.0).view(3, 3, 1)
    assert torch.equal(found.unpack(found.pack(x)).squeeze(-1), found.presence * x.squeeze(-1))


def test_plain_path_where_packing_is_not_exact() -> None:
    x, presence = torch.randn(2, 3, 2), torch.ones(2, 3)
    assert packing_of(x, presence) is not None
    assert packing_of(x, None) is None
    assert packing_of(x, 0.5 * presence) is None
    assert packing_of(x, presence.clone().requires_grad_()) is None
    assert packing_of(x.double(), presence.double()) is None
    assert packing_of(x[:, :0], presence[:, :0]) is None
    induced = SetTransformerConfig(layers=1, heads=1, width=4, output=4, inducing_points=2)
    assert not SetTransformer(2, 3, induced).packs
