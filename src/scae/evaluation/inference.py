"""Runs a model over whole arrays: deterministic, without gradients, leaving it as it was."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor, nn

from scae.errors import ScaeError
from scae.models.constellation import scenes_at_once

Images = Shaped[np.ndarray, "_ channels height width"] | Shaped[Tensor, "_ channels height width"]
Points = Shaped[np.ndarray, "scenes points 2"] | Shaped[Tensor, "scenes points 2"]
PointPresence = Shaped[np.ndarray, "scenes points"] | Shaped[Tensor, "scenes points"]

IMAGE_BATCH = 250


@runtime_checkable
class Model(Protocol):
    """The parts of ``nn.Module`` that inference needs."""

    training: bool

    def eval(self) -> Any: ...

    def train(self, mode: bool = True) -> Any: ...

    def parameters(self) -> Iterator[nn.Parameter]: ...


@runtime_checkable
class ImageModel(Model, Protocol):
    """A model that tells which objects are present in images [B, C, H, W]."""

    def object_presences(self, image: Tensor, /) -> Any: ...


@runtime_checkable
class PointModel(Model, Protocol):
    """A model that assigns points [B, N, 2] with presences [B, N] to objects."""

    def segment(
        self, points: Tensor, presence: Tensor, /, *, views: int | None = None
    ) -> Tensor: ...


def presences(
    model: ImageModel, images: Images, batch: int = IMAGE_BATCH
) -> tuple[Float[np.ndarray, "n objects"], Float[np.ndarray, "n objects"]]:
    """Prior and posterior object presences of images, uint8 or floats in [0, 1]."""
    if len(images) == 0:
        raise ScaeError("There are no images to evaluate; give at least one.")
    priors, posteriors = [], []
    with _inference(model) as device:
        for start in range(0, len(images), batch):
            both = model.object_presences(_floats(images[start : start + batch], device))
            priors.append(both.prior.float().cpu().numpy())
            posteriors.append(both.posterior.float().cpu().numpy())
    return np.concatenate(priors), np.concatenate(posteriors)


def segment(
    model: PointModel,
    points: Points,
    presence: PointPresence,
    batch: int | None = None,
    views: int | None = None,
) -> Int[np.ndarray, "scenes points"]:
    """Object capsule of every point, -1 where a point is absent; `views` as in the model."""
    if len(points) == 0:
        raise ScaeError("There are no scenes to segment; give at least one.")
    together = batch or scenes_at_once(points.shape[1])
    segments = []
    with _inference(model) as device:
        for start in range(0, len(points), together):
            rows = slice(start, start + together)
            seen = _floats(points[rows], device), _floats(presence[rows], device)
            part = model.segment(*seen, views=views)
            segments.append(part.cpu().numpy())
    return np.concatenate(segments)


@contextmanager
def _inference(model: Model) -> Iterator[torch.device]:
    """Evaluation mode, with torch's generator seeded and put back afterwards.

    The seed matters only for a model configured to keep its presence noise in evaluation.
    """
    training = model.training
    device = next(model.parameters()).device
    model.eval()
    try:
        with (
            torch.inference_mode(),
            torch.random.fork_rng(devices=[device] if device.type == "cuda" else []),
        ):
            torch.manual_seed(0)
            yield device
    finally:
        model.train(training)


def _floats(array: np.ndarray | Tensor, device: torch.device) -> Tensor:
    """A batch as models take it: float32, and in [0, 1] where it was uint8."""
    in_bytes = array.dtype in (np.uint8, torch.uint8)
    if isinstance(array, np.ndarray):
        # A copy even of float32: torch warns about arrays that cannot be written to.
        array = torch.from_numpy(array.astype(np.float32))
    batch = array.to(device, torch.float32)
    return batch / 255 if in_bytes else batch
