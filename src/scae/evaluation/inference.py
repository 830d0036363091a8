"""Runs a model over whole data sets: without noise and gradients, leaving it as it was."""

import numpy as np
import torch
from jaxtyping import Float, Int, UInt8
from torch import Tensor, nn

from scae.config import ImageExperiment
from scae.data import ImageData
from scae.errors import ScaeError
from scae.models import ConstellationAutoencoder, StackedCapsuleAutoencoder, evaluation_mode

Images = UInt8[Tensor, "images channels height width"]

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
    model: StackedCapsuleAutoencoder, images: Images
) -> tuple[Float[np.ndarray, "images objects"], Float[np.ndarray, "images objects"]]:
    """Prior and posterior object presences of images in bytes."""
    if len(images) == 0:
        raise ScaeError("There are no images to evaluate; give at least one.")
    found, device = [], device_of(model)
    with evaluation_mode(model):
        for batch in images.split(BATCH):
            both = model.object_presences(batch.to(device).float() / 255)
            found.append(torch.stack([both.prior, both.posterior]).float().cpu())
    prior, posterior = torch.cat(found, 1).numpy()
    return prior, posterior


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


def check_images(experiment: ImageExperiment, images: ImageData) -> None:
    """Refuse images of another size or number of channels than the model takes."""
    expected = (experiment.model.channels, *experiment.model.image_size)
    found = tuple(images.images.shape[1:])
    if found != expected:
        raise ScaeError(
            f"The images of {images.name!r} are {found[1]}x{found[2]} with {found[0]} channels, "
            f"but this model takes {expected[1]}x{expected[2]} with {expected[0]}; use images of "
            "that size, or a model trained on yours."
        )
