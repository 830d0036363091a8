"""Runs a model over whole data sets: without noise and gradients, leaving it as it was."""

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from scae.errors import ScaeError
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder, evaluation_mode

BATCH = 250
MAX_SCENES = 1000
# Attention compares all pairs of a scene's points; this many pairs fit into memory easily.
MAX_PAIRS = 2**22


def device_of(model: nn.Module) -> torch.device:
    """Where a model computes."""
    return next(model.parameters()).device


def scenes_per_batch(points: int) -> int:
    """How many scenes of `points` points are computed at a time."""
    return min(MAX_SCENES, max(1, MAX_PAIRS // max(1, points) ** 2))


def presences(
    model: StackedCapsuleAutoencoder, images: UInt8[Tensor, "images channels height width"]
) -> tuple[Float[np.ndarray, "images objects"], Float[np.ndarray, "images objects"]]:
    """Prior and posterior object presences of images in bytes."""
    if len(images) == 0:
        raise ScaeError("There are no images to evaluate; give at least one.")
    like = next(model.parameters())
    with evaluation_mode(model):
        found = [model.object_presences(batch.to(like) / 255) for batch in images.split(BATCH)]
    prior, posterior = [x.prior for x in found], [x.posterior for x in found]
    return torch.cat(prior).cpu().numpy(), torch.cat(posterior).cpu().numpy()


def segment(
    model: ConstellationAutoencoder,
    points: Float[Tensor, "scenes points 2"],
    presence: Float[Tensor, "scenes points"],
) -> Int[np.ndarray, "scenes points"]:
    """Object capsule of every point, -1 where a point is absent."""
    if len(points) == 0:
        raise ScaeError("There are no scenes to segment; give at least one.")
    size, device = scenes_per_batch(points.shape[1]), device_of(model)
    with evaluation_mode(model):
        found = [
            model.segment(p.to(device), d.to(device)).cpu()
            for p, d in zip(points.float().split(size), presence.float().split(size), strict=True)
        ]
    return torch.cat(found).numpy()
