"""Padding, shifting and resizing of whole batches of images."""

import numpy as np
import torch
from jaxtyping import Int64, UInt8
from torch import Tensor
from torch.nn import functional

from scae.errors import ScaeError

CHUNK = 4096


def draw_shifts(rng: np.random.Generator, count: int, shift: int) -> Int64[Tensor, "count 2"]:
    """Independent vertical and horizontal shifts, uniform integers in [-shift, shift].

    The release's are the same but for the extreme shift of -6, which it draws half as often.
    """
    return torch.from_numpy(rng.integers(-shift, shift, (count, 2), endpoint=True))


def pad_and_shift(
    images: UInt8[Tensor, "batch channels height width"],
    canvas: int | None,
    shifts: Int64[Tensor, "batch 2"],
) -> UInt8[Tensor, "batch channels canvas_height canvas_width"]:
    """Centre images on a black square canvas, then move each by its (down, right) shift.

    Without a canvas the image keeps its size. What is moved over the edge is lost; a shift
    of at most (canvas - size) / 2 loses nothing, as with 28x28 digits, 40 and 6.
    """
    batch, _, height, width = images.shape
    tall, wide = (height, width) if canvas is None else (canvas, canvas)
    if tall < height or wide < width:
        raise ScaeError(f"A canvas of {canvas} pixels cannot hold images of {height}x{width}.")
    top, left = (tall - height) // 2, (wide - width) // 2
    reach = int(shifts.abs().max()) if batch else 0
    # Pad by the largest shift as well, so that every result is a plain window of the padded.
    margins = (left + reach, wide - width - left + reach, top + reach, tall - height - top + reach)
    padded = functional.pad(images, margins)
    windows = padded.unfold(2, tall, 1).unfold(3, wide, 1)
    # (batch, channels, 2 reach + 1, 2 reach + 1, tall, wide), a view
    down, right = (reach - shifts).unbind(1)
    return windows[torch.arange(batch), :, down, right]


def resize(
    images: UInt8[Tensor, "batch channels height width"], size: int
) -> UInt8[Tensor, "batch channels size size"]:
    """Resize images to a square of `size` pixels (bicubic, antialiased when shrinking)."""
    resized = images.new_empty((*images.shape[:2], size, size))
    for start in range(0, len(images), CHUNK):  # floats of a whole data set may not fit
        chunk = images[start : start + CHUNK].float()
        smooth = functional.interpolate(chunk, (size, size), mode="bicubic", antialias=True)
        resized[start : start + CHUNK] = smooth.round_().clamp_(0, 255)
    return resized
