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


@dataclass(frozen=True)
class ImageData:
    """Images of one split."""

    images: UInt8[Tensor, "images channels height width"]
    labels: Int64[Tensor, " images"] | None
    name: str
    split: str
    classes: tuple[str, ...] = ()
    """Class names in the order of the labels; empty when the labels are plain numbers."""
    files: tuple[str, ...] = ()
    """File name of each image, for data read from a folder."""
    published: int | None = None
    """Images in the published split; `summary` says so when there are fewer."""

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def fingerprint(self) -> str:
        """Sha-256 of pixels, shape and labels."""
        digest = hashlib.sha256(repr(tuple(self.images.shape)).encode())
        digest.update(self.images.contiguous().numpy().data)
        if self.labels is not None:
            digest.update(self.labels.contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def summary(self) -> str:
        """One line: how many images were found and of what shape."""
        count, channels, height, width = self.images.shape
        of = f" of {self.published}" if self.published and self.published != count else ""
        line = f"{self.name} {self.split}: {count}{of} images of {height}x{width}x{channels}"
        if self.labels is None:
            return line + ", no labels"
        return line + f", {len(self.labels.unique())} classes"

    def floats(
        self, start: int = 0, stop: int | None = None
    ) -> Float[Tensor, "batch channels height width"]:
        """Images `start` to `stop` as the model takes them: float32 in [0, 1]."""
        return unit_floats(self.images[start:stop])


def from_arrays(
    images: Any, labels: Any = None, name: str = "images", split: str = "all"
) -> ImageData:
    """Images of arrays in any layout `image_array` reads; floats are rounded to 256 levels."""
    pixels = image_array(images, name)
    if pixels.is_floating_point():
        pixels = pixels.mul(255).round_().to(torch.uint8)
    classes = None if labels is None else _labels(np.asarray(labels), name, len(pixels))
    return ImageData(pixels.contiguous(), classes, name, split)


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
    pixels = _pixels(value, name)
    shape = tuple(pixels.shape)
    if pixels.numel() == 0:
        raise ScaeError(f"{name} has shape {shape}, which holds no images.")

    def fits(images: Tensor) -> bool:
        if channels is None or size is None:
            return images.shape[1] in (1, 3)
        return tuple(images.shape[1:]) == (channels, *size)

    if pixels.ndim == 2 and size is not None:
        pixels = pixels[None]
    if pixels.ndim == 3:
        if fits(pixels[:, None]):
            return pixels[:, None]
        pixels = pixels[None]  # one image with channels
    if pixels.ndim == 4:
        for layout in (pixels.movedim(3, 1), pixels):
            if fits(layout):
                return layout
    wanted = f"{channels or '1 or 3'} channels"
    if size is not None:
        wanted += f" of {size[0]}x{size[1]} pixels"
    raise ScaeError(
        f"{name} has shape {shape}; expected (N, H, W), (N, H, W, C) or (N, C, H, W) with {wanted}."
    )


def unit_floats(images: Shaped[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Bytes as float32 in [0, 1]; floats stay as they are."""
    return images if images.is_floating_point() else images.float().div_(255.0)


def _pixels(value: Any, name: str) -> Tensor:
    """A tensor of uint8, or of float32 in [0, 1], of the same shape."""
    if not isinstance(value, Tensor):
        try:
            value = np.asarray(value)
        except ValueError:
            value = np.array(None)  # rows of different lengths
        if value.dtype.kind not in "biuf":
            raise ScaeError(f"{name} is not one array of numbers, but of {value.dtype}.")
        if value.dtype not in (np.uint8, np.bool_):  # torch lacks some of numpy's types
            with np.errstate(over="ignore"):
                value = value.astype(np.float32 if value.dtype.kind == "f" else np.int64)
        value = torch.from_numpy(np.require(value, requirements=["C", "W"]))
    pixels: Tensor = value.detach()
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


def _labels(labels: np.ndarray, name: str, count: int) -> Int64[Tensor, " images"]:
    if labels.shape in ((count, 1), (1, count)):
        labels = labels.reshape(-1)
    whole = labels.dtype.kind in "biuf" and (labels == np.floor(labels)).all()
    if labels.shape != (count,) or not whole or labels.min() < 0 or labels.max() > MAX_LABEL:
        raise ScaeError(
            f"{name} has labels of shape {labels.shape}; expected a whole number from 0 to "
            f"{MAX_LABEL} for each of its {count} images."
        )
    return torch.from_numpy(labels.astype(np.int64))
