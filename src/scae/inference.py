"""Runs a model over many examples: in batches, without noise and gradients."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder, evaluation_mode

BATCH = 250
# Attention compares all pairs of a scene's points; this many pairs fit into memory easily.
MAX_PAIRS = 2**22


def run(model: nn.Module, function: Callable[..., Any], *x: Tensor, size: int = BATCH) -> Any:
    """What a function of tensors finds in all examples, at most `size` of them at a time.

    Tensors are moved to the model's device and type, bytes become floats from 0 to 1. Results
    are tensors, or dataclasses of them, with a batch axis; fields marked `shared` in their
    metadata have none.
    """
    like = next(model.parameters())
    if x[0].ndim == 3:  # points
        size = min(size, max(1, MAX_PAIRS // x[0].shape[1] ** 2))

    def convert(tensor: Tensor) -> Tensor:
        return tensor.to(like) / 255 if tensor.dtype == torch.uint8 else tensor.to(like)

    with evaluation_mode(model):
        batches = zip(*(tensor.split(size) for tensor in x), strict=True)
        found = [function(*map(convert, batch)) for batch in batches]
    return map_tensors(torch.cat, found)


def map_tensors(function: Callable[[list[Tensor]], Any], values: list[Any]) -> Any:
    """Apply a function to the same tensor of all values, field by field."""
    first = values[0]
    if first is None or isinstance(first, Tensor):
        return None if first is None else function(values)
    mapped = {}
    for field in dataclasses.fields(first):
        items = [getattr(value, field.name) for value in values]
        mapped[field.name] = map_tensors(
            function, items[: 1 if "shared" in field.metadata else None]
        )
    return type(first)(**mapped)


def presences(
    model: StackedCapsuleAutoencoder, images: UInt8[Tensor, "images channels height width"]
) -> tuple[Float[np.ndarray, "images objects"], Float[np.ndarray, "images objects"]]:
    """Prior and posterior object presences of images in bytes."""
    found = run(model, model.object_presences, images)
    return found.prior.cpu().numpy(), found.posterior.cpu().numpy()


def segment(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
) -> Int[np.ndarray, "scenes points"]:
    """Object capsule of every point, -1 where a point is absent."""
    found = run(model, model.segment, points, presence)
    return found.cpu().numpy()
