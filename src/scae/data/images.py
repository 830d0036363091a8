"""Images in memory, and the one reader of the layouts that people keep images in."""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64, Shaped, UInt8
from torch import Tensor

from scae.errors import ScaeError

# Resizing and scaling may step this far over the edge of [0, 1] by rounding.
SLACK = 1e-4
MAX_LABEL = 1_000_000

Images = UInt8[Tensor, "images channels height width"]


@dataclass(frozen=True)
class ImageData:
    """Images of one split."""

    images: Images
    labels: Int64[Tensor, " images"] | None
    name: str
    split: str
    classes: tuple[str, ...] = ()
    """Class names in the order of the labels; empty when the labels are plain numbers."""
    files: tuple[str, ...] = ()
    """File name of each image, for data read from a folder."""

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def fingerprint(self) -> str:
        """Sha-256 of pixels, shape and labels."""
        return sha256(self.images, self.labels)

    @property
    def summary(self) -> str:
        """One line: how many images there are and of what shape."""
        count, channels, height, width = self.images.shape
        labels = "no labels" if self.labels is None else f"{len(self.labels.unique())} classes"
        shape = f"{height}x{width}x{channels}"
        return f"{self.name} {self.split}: {count} images of {shape}, {labels}"


def sha256(first: Tensor, *others: Tensor | None) -> str:
    """Hash of the first tensor's shape and of the contents of all."""
    digest = hashlib.sha256(repr(tuple(first.shape)).encode())
    for tensor in (first, *others):
        if tensor is not None:
            digest.update(tensor.contiguous().numpy().data)
    return digest.hexdigest()


def from_arrays(
    images: Any, labels: Any = None, name: str = "images", split: str = "all"
) -> ImageData:
    """Images of arrays in any layout `image_array` reads; floats are rounded to 256 levels."""
    pixels = image_array(images, name)
    if pixels.is_floating_point():
        pixels = pixels.mul(255).round_().to(torch.uint8)
    given = None if labels is None else torch.from_numpy(whole_labels(labels, name, len(pixels)))
    return ImageData(pixels.contiguous(), given, name, split)


def image_array(
    value: Any,
    name: str = "images",
    channels: int | None = None,
    size: tuple[int, int] | None = None,
) -> Shaped[Tensor, "images channels height width"]:
    """Images as uint8, or as float32 in [0, 1], in the order (image, channel, row, column).

    `value` is a tensor or an array of bytes from 0 to 255, of booleans, or of floats from 0
    to 1, in shape (N, H, W), (N, H, W, C) or (N, C, H, W). Without `channels` and `size` there
    may be 1 or 3 channels; with both, only images of that kind are taken, and also a single
    one. `name` stands for the images in error messages.
    """
    pixels = _unit_or_bytes(as_tensor(value, name), name)
    layouts: list[Tensor] = []
    if pixels.ndim == 4:
        layouts = [pixels.movedim(3, 1), pixels]
    elif pixels.ndim == 3:
        layouts = [pixels[:, None], pixels[None].movedim(3, 1), pixels[None]]
    elif pixels.ndim == 2 and size:
        layouts = [pixels[None, None]]
    for layout in layouts if pixels.numel() else []:
        shape = tuple(layout.shape[1:])
        if shape == (channels, *size) if size else shape[0] in (1, 3):
            return layout
    wanted = f"{channels} channels of {size[0]}x{size[1]} pixels" if size else "1 or 3 channels"
    raise ScaeError(
        f"{name} has shape {tuple(pixels.shape)}; expected (N, H, W), (N, H, W, C) or "
        f"(N, C, H, W) with {wanted}."
    )


def as_tensor(value: Any, name: str = "the array") -> Shaped[Tensor, "*shape"]:
    """A tensor from a tensor, an array or nested lists of numbers."""
    if isinstance(value, Tensor) and not value.is_complex():
        return value.detach()
    try:
        array = np.asarray(value)
    except (ValueError, TypeError):
        array = np.array(None)  # rows of different lengths
    if array.dtype.kind not in "biuf":
        raise ScaeError(f"{name} is not one array of numbers, but of {array.dtype}.")
    # Torch lacks some of numpy's types, negative strides and read-only memory.
    if array.dtype not in (np.bool_, np.uint8, np.float32):
        array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    return torch.from_numpy(np.require(array, requirements=["C", "W"]))


def _unit_or_bytes(pixels: Tensor, name: str) -> Tensor:
    """Pixels as uint8, or as float32 in [0, 1]."""
    if pixels.dtype == torch.bool:
        return pixels.to(torch.uint8) * 255
    if pixels.dtype == torch.uint8 or pixels.numel() == 0:
        return pixels
    top, slack = (1, SLACK) if pixels.is_floating_point() else (255, 0)
    low, high = (float(x) for x in pixels.aminmax())
    if not (low >= -slack and high <= top + slack):  # false for NaN
        raise ScaeError(
            f"{name} has values from {low:g} to {high:g}; expected whole numbers from 0 to 255 or "
            "floats from 0 to 1."
        )
    return pixels.float().clamp(0, 1) if pixels.is_floating_point() else pixels.to(torch.uint8)


def unit_floats(images: Shaped[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Bytes as float32 in [0, 1]; floats stay as they are."""
    return images if images.is_floating_point() else images.float().div_(255.0)


def whole_labels(
    labels: Any, name: str, count: int, top: int = MAX_LABEL
) -> Int64[np.ndarray, " images"]:
    """Labels as integers, if they are whole numbers from 0 to `top`, one for each image."""
    flat = np.asarray(labels).reshape(-1)
    numbers = flat.dtype.kind in "biuf" and len(flat) == count
    if not numbers or not ((flat >= 0) & (flat <= top) & (flat == np.floor(flat))).all():
        raise ScaeError(f"{name} does not hold {count} labels, whole numbers from 0 to {top}.")
    return flat.astype(np.int64)
