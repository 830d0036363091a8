"""Carries the released code's variables (Sonnet names) over to our modules.

Each function returns pairs (our parameter, golden array in our layout); the same pairs are
used to load weights and to compare gradients.
"""

import numpy as np
import torch
from torch import Tensor, nn

from scae.models import StackedCapsuleAutoencoder
from scae.models.layers import CapsuleMLP
from scae.models.object_decoder import BaselineDecoder, ObjectDecoder
from scae.models.part_encoder import AttentionPooling, LinearPooling, PartEncoder
from scae.models.set_transformer import (
    InducedSelfAttentionBlock,
    MultiHeadAttention,
    SetTransformer,
)
from scae.models.templates import Templates

Arrays = dict[str, np.ndarray]
Pairs = list[tuple[Tensor, np.ndarray]]


def section(golden: Arrays, prefix: str) -> Arrays:
    """Entries below a prefix, the prefix cut off; missing gradients stay missing."""
    return {k.removeprefix(prefix): v for k, v in golden.items() if k.startswith(prefix)}


def numbered(name: str, index: int) -> str:
    return name if index == 0 else f"{name}_{index}"


class Variables:
    """A dictionary of arrays that gives zeros of the right shape for absent gradients."""

    def __init__(self, arrays: Arrays, like: Arrays | None = None):
        self.arrays, self.like = arrays, like

    def __getitem__(self, key: str) -> np.ndarray:
        if key not in self.arrays and self.like is not None:
            return np.zeros_like(self.like[key])
        return self.arrays[key]


def linear(layer: nn.Linear, v: Variables, name: str) -> Pairs:
    return [(layer.weight, v[f"{name}/w"].T), (layer.bias, v[f"{name}/b"])]


def attention(module: MultiHeadAttention, v: Variables, name: str) -> Pairs:
    def heads(offset: int, part: str) -> np.ndarray:
        names = [f"{name}/{numbered('linear', 3 * h + offset)}" for h in range(module.heads)]
        return np.concatenate([v[f"{n}/{part}"] for n in names], -1)

    pairs: Pairs = []
    for offset, layer in enumerate((module.query, module.key, module.value)):
        pairs += [(layer.weight, heads(offset, "w").T), (layer.bias, heads(offset, "b"))]
    return pairs + linear(module.output, v, f"{name}/{numbered('linear', 3 * module.heads)}")


def set_transformer(module: SetTransformer, v: Variables) -> Pairs:
    root = "set_transformer"
    pairs = linear(module.embed, v, f"{root}/linear")
    for index, block in enumerate(module.blocks):
        induced = isinstance(block, InducedSelfAttentionBlock)
        kind = "induced_self_attention" if induced else "self_attention"
        name = f"{root}/{numbered(kind, index)}"
        if induced:
            pairs.append((block.points, v[f"{name}/inducing_points"][0]))
        pairs += attention(block.attention, v, f"{name}/multi_head_qkv_attention")
        pairs += linear(block.hidden, v, f"{name}/mlp/linear_0")
        pairs += linear(block.out, v, f"{name}/mlp/linear_1")
        if isinstance(block.norm1, nn.LayerNorm):
            for norm, suffix in ((block.norm1, "layer_norm"), (block.norm2, "layer_norm_1")):
                pairs.append((norm.weight, v[f"{name}/{suffix}/gamma"]))
                pairs.append((norm.bias, v[f"{name}/{suffix}/beta"]))
    pairs += linear(module.pool.expand, v, f"{root}/linear_1")
    pairs.append((module.pool.queries, v[f"{root}/inducing_points"][0]))
    return pairs + attention(module.pool.attention, v, f"{root}/multi_head_qkv_attention")


def capsule_mlp(module: CapsuleMLP, v: Variables, name: str) -> Pairs:
    pairs: Pairs = []
    for index, weight in enumerate(module.weights):
        layer = f"{name}/{numbered('batch_linear', index)}"
        pairs.append((weight, v[f"{layer}/weights"][0]))
        if index < len(module.biases):
            pairs.append((module.biases[index], v[f"{layer}/add/b"][:, None]))
    return pairs


def object_decoder(module: ObjectDecoder, v: Variables, name: str) -> Pairs:
    """The release orders dynamic parameters part by part, we parameter by parameter."""
    pairs = capsule_mlp(module.encode, v, f"{name}/batch_mlp")
    decode = capsule_mlp(module.decode, v, f"{name}/batch_mlp_1")
    *others, (weight, array) = decode
    dynamic, rest = np.split(array, [6 * module.parts], -1)
    dynamic = dynamic.reshape(*dynamic.shape[:-1], module.parts, 6).swapaxes(-1, -2)
    array = np.concatenate([dynamic.reshape(*rest.shape[:-1], -1), rest], -1)
    pairs += [*others, (weight, array)]
    bias = [v[f"{name}/{numbered('add', i)}/b"] for i in range(4)]
    bias = [b.reshape(b.shape[0], 1, -1) for b in bias]
    pairs.append((module.bias, np.concatenate(bias, -1)))
    pairs.append((module.static, v[f"{name}/cpr_static"][0].swapaxes(-1, -2)))
    return pairs


def baseline_decoder(module: BaselineDecoder, v: Variables) -> Pairs:
    return capsule_mlp(module.decode, v, "constellation_decoder/batch_mlp")


def part_encoder(module: PartEncoder, v: Variables) -> Pairs:
    pairs: Pairs = []
    convolutions = [layer for layer in module.cnn if isinstance(layer, nn.Conv2d)]
    for index, layer in enumerate(convolutions):
        name = f"conv_net_2d/conv_2d_{index}"
        pairs.append((layer.weight, v[f"{name}/w"].transpose(3, 2, 0, 1)))
        pairs.append((layer.bias, v[f"{name}/b"]))
    pool, root = module.pool, "capsule_image_encoder"
    if isinstance(pool, LinearPooling) and not pool.average:
        return pairs + linear(pool.project, v, f"{root}/linear")
    position = v[f"{root}/add/b"]
    pairs.append((pool.position, position.reshape(-1, position.shape[-1])))
    weight, bias = v[f"{root}/conv_2d/w"][0, 0], v[f"{root}/conv_2d/b"]
    if isinstance(pool, LinearPooling):
        return [*pairs, (pool.project.weight, weight.T), (pool.project.bias, bias)]
    assert isinstance(pool, AttentionPooling)
    parts = pool.weight.shape[0]
    split = weight.shape[-1] - parts  # parameters, dimension-major, then attention logits
    pairs.append((pool.attend.weight, weight[:, split:].T))
    pairs.append((pool.attend.bias, bias[split:]))
    weight = weight[:, :split].reshape(weight.shape[0], -1, parts).transpose(2, 0, 1)
    pairs.append((pool.weight, weight))
    pairs.append((pool.bias, bias[:split].reshape(-1, parts).T[:, None]))
    return pairs


def templates(module: Templates, v: Variables) -> Pairs:
    root = "template_based_image_decoder"
    pairs: Pairs = [(module.logits, v[f"{root}/templates"][0].transpose(0, 3, 1, 2))]
    pairs.append((module.background, v[f"{root}/bg_value"][0]))
    if module.config.alpha == "learned":
        pairs.append((module.alpha_logits, v[f"{root}/templates_alpha"][0, ..., 0]))
        pairs.append((module.background_logit, v[f"{root}/bg_mixing_logit"][0]))
    else:
        pairs.append((module.temperature_logit, v[f"{root}/temperature_logit"][0]))
    if module.has_colors:
        pairs += linear(module.color_hidden, v, f"{root}/mlp/linear_0")
        pairs += linear(module.color_out, v, f"{root}/mlp/linear_1")
    if module.config.learn_sigma:
        pairs.append((module.sigma_logit, v[f"{root}/scale"][0]))
    return pairs


def stacked(model: StackedCapsuleAutoencoder, v: Variables) -> Pairs:
    pairs = part_encoder(model.part_encoder, v) + templates(model.templates, v)
    pairs += set_transformer(model.object_encoder, v)
    pairs += object_decoder(model.object_decoder, v, "image_capsule/capsule_layer")
    if hasattr(model, "dummy_vote"):
        dummy = v["image_capsule/capsule_likelihood/dummy_vote"][0, 0]
        pairs.append((model.dummy_vote, dummy.reshape(-1, 2, 3)))
    return pairs


@torch.no_grad()
def load(pairs: Pairs, module: nn.Module) -> None:
    """Copy golden weights into the module; every parameter must be covered exactly once."""
    covered = [id(parameter) for parameter, _ in pairs]
    assert sorted(covered) == sorted(id(parameter) for parameter in module.parameters())
    for parameter, array in pairs:
        assert parameter.shape == array.shape, (parameter.shape, array.shape)
        parameter.copy_(torch.from_numpy(np.array(array, order="C")))
