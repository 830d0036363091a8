"""Arrays from users: checked, brought into the model's shape, and answered in kind."""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from scae.api.results import SHARED
from scae.data.points import normalise as normalise_points
from scae.errors import ScaeError

Normalise = Literal["scene", "global"] | None

# Rounding of resized or normalised values may step this far over the edge.
SLACK = 1e-4


@dataclasses.dataclass(frozen=True)
class Kind:
    """What the user handed in: numpy (None) or torch on some device."""

    device: torch.device | None

    @classmethod
    def of(cls, array: Any) -> "Kind":
        return cls(array.device if isinstance(array, Tensor) else None)

    def answer(self, value: Any) -> Any:
        """Tensors, also inside of records, as the user's kind of array."""
        if isinstance(value, Tensor):
            value = value.detach()
            return value.cpu().numpy() if self.device is None else value.to(self.device)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            fields = dataclasses.fields(value)
            return type(value)(**{f.name: self.answer(getattr(value, f.name)) for f in fields})
        return value


def as_tensor(array: Any, name: str) -> Tensor:
    """A tensor of numbers from a tensor, an array or anything numpy can read."""
    if isinstance(array, Tensor) and not array.is_complex():
        return array.detach()
    try:
        values = np.asarray(array)
        if values.dtype.kind not in "biuf":
            raise ValueError(f"it holds {values.dtype}")
        # A copy: torch refuses negative strides and warns about read-only arrays.
        return torch.from_numpy(np.array(values, order="C"))
    except (ValueError, TypeError) as error:
        raise ScaeError(
            f"{name} cannot be read as an array of numbers: {str(error)[:100]}."
        ) from None


def image_batch(
    images: Any, channels: int, size: tuple[int, int]
) -> Float[Tensor, "batch channels height width"]:
    """Images as the model takes them, from any of the layouts people keep them in."""
    pixels = in_unit_range(as_tensor(images, "`images`"), "`images`")
    shape, (height, width) = tuple(pixels.shape), size
    if channels == 1 and shape == size:
        return pixels[None, None]
    if channels == 1 and len(shape) == 3 and shape[1:] == size:
        return pixels[:, None]
    if len(shape) == 3:
        pixels = pixels[None]
    if pixels.ndim == 4 and tuple(pixels.shape[1:]) == (channels, height, width):
        return pixels
    if pixels.ndim == 4 and tuple(pixels.shape[1:]) == (height, width, channels):
        return pixels.permute(0, 3, 1, 2)
    grey = "(N, H, W), " if channels == 1 else ""
    raise ScaeError(
        f"`images` has shape {shape}, but this model takes images of {height}x{width} pixels "
        f"with {channels} channel{'s' if channels > 1 else ''}: give {grey}(N, H, W, C) or "
        "(N, C, H, W) of that size."
    )


def in_unit_range(pixels: Tensor, name: str) -> Tensor:
    """Float32 from 0 to 1, of bytes or floats."""
    if pixels.numel() == 0:
        raise ScaeError(f"{name} is empty (shape {tuple(pixels.shape)}); give at least one image.")
    if pixels.dtype == torch.bool:
        return pixels.float()
    top = 1.0 if pixels.is_floating_point() else 255.0
    low, high = (float(x) for x in pixels.aminmax())
    slack = SLACK if pixels.is_floating_point() else 0.0
    if not (-slack <= low and high <= top + slack):  # also false for NaN
        raise ScaeError(
            f"{name} has values from {low:g} to {high:g}; expected bytes from 0 to 255 or floats "
            "from 0 to 1."
        )
    values = pixels.float()
    return values.clamp(0, 1) if pixels.is_floating_point() else values / 255


def scene_batch(
    points: Any, presence: Any, normalise: Normalise
) -> tuple[Float[Tensor, "batch points 2"], Float[Tensor, "batch points"]]:
    """Points in [-1, 1]^2 and their presences, 0 or 1."""
    found = as_tensor(points, "`points`")
    if found.dtype != torch.float64:  # kept until points are normalised: they may be far away
        found = found.float()
    if found.ndim == 2:
        found = found[None]
    if found.ndim != 3 or found.shape[-1] != 2:
        raise ScaeError(
            f"`points` has shape {tuple(found.shape)}; expected (scenes, points, 2) or (points, 2)."
        )
    if presence is None:
        there = found.new_ones(found.shape[:2])
    else:
        there = as_tensor(presence, "`presence`").to(found)
        there = there[None] if there.ndim == 1 else there
    if there.shape != found.shape[:2] or not bool(((there == 0) | (there == 1)).all()):
        raise ScaeError(
            f"`presence` of shape {tuple(there.shape)} must hold a 0 or 1 for each point of "
            f"`points`, whose shape is {tuple(found.shape)}."
        )
    found = _without_absent(found, there, normalise)
    if not bool(found.isfinite().all()):
        raise ScaeError(
            "`points` holds NaN or infinity; mark missing points by a 0 in `presence` instead."
        )
    if normalise is not None:
        return normalise_points(found, there, normalise).float(), there.float()
    if found.numel() and float(found.abs().max()) > 1 + SLACK:
        raise ScaeError(
            f"`points` reach {float(found.abs().max()):g}, but the model takes points in "
            "[-1, 1]; pass normalise='scene' (or 'global') to have them mapped there."
        )
    return found.float(), there.float()


def _without_absent(
    points: Float[Tensor, "batch points 2"],
    presence: Float[Tensor, "batch points"],
    normalise: Normalise,
) -> Float[Tensor, "batch points 2"]:
    """What an absent point holds must not matter, not even NaN.

    The release's one range for all scenes has absent points in it, if they are numbers.
    """
    absent = (presence == 0)[..., None]
    if normalise != "global":
        return points.masked_fill(absent, 0.0)
    present = points[presence > 0].flatten()
    inside = present[0] if present.numel() else 0.0  # some place within the range
    return torch.where(absent & ~points.isfinite(), inside, points)


def pose_batch(pose: Any, like: Tensor, name: str = "`pose`") -> Tensor:
    """Edited poses in the shape of `like`: 2x3 or 3x3 matrices, with or without a batch."""
    given = as_tensor(pose, name).to(like)
    if given.ndim >= 2 and given.shape[-2:] == (3, 3):
        given = given[..., :2, :]
    given = expand(given, like, name)
    a, b, c, d = given[..., :2].flatten(-2).unbind(-1)
    if not bool(given.isfinite().all() & ((a * d - b * c).abs() > 1e-12).all()):
        raise ScaeError(f"{name} holds a matrix that is not finite or cannot be inverted.")
    return given


def presence_batch(presence: Any, like: Tensor) -> Tensor:
    """Edited presences in the shape of `like`, from 0 to 1."""
    given = expand(as_tensor(presence, "`presence`").to(like), like, "`presence`")
    if not bool(((given >= 0) & (given <= 1)).all()):
        raise ScaeError("`presence` holds values outside of 0 to 1.")
    return given


def expand(given: Tensor, like: Tensor, name: str) -> Tensor:
    """The tensor broadcast to the shape of another."""
    try:
        return given.expand_as(like)
    except RuntimeError:
        raise ScaeError(
            f"{name} has shape {tuple(given.shape)}; expected {tuple(like.shape)}, "
            "or the same without the batch."
        ) from None


@contextlib.contextmanager
def inference(model: nn.Module) -> Iterator[torch.device]:
    """No gradients, and the same answer every time.

    The seed matters only for a model configured to keep its presence noise in evaluation.
    """
    device = next(model.parameters()).device
    devices = [device] if device.type == "cuda" else []
    with torch.no_grad(), torch.random.fork_rng(devices=devices):
        torch.manual_seed(0)
        yield device


def in_batches(function: Callable[..., Any], batch: int, *tensors: Tensor) -> Any:
    """Apply a function to slices of tensors and join its results, records included."""
    starts = range(0, max(1, len(tensors[0])), batch)
    results = [function(*(t[i : i + batch] for t in tensors)) for i in starts]
    return results[0] if len(results) == 1 else join(results)


def join(results: list[Any]) -> Any:
    """Concatenate tensors, or records of them field by field but for what batches share."""
    first = results[0]
    if isinstance(first, Tensor):
        return torch.cat(results)
    if first is None:
        return None
    joined = {}
    for field in dataclasses.fields(first):
        values = [getattr(result, field.name) for result in results]
        joined[field.name] = values[0] if field.metadata == SHARED else join(values)
    return type(first)(**joined)
