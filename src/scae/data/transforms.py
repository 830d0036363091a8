"""Padding, shifting, resizing and affine maps of whole batches of images."""

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor
from torch.nn import functional

from scae.data.images import Images
from scae.data.streams import AFFINE, stream
from scae.errors import ScaeError

CHUNK = 4096  # images at a time: floats of a whole data set may not fit into memory
SIDE = 40
"""Pixels of an affNIST image."""
MAX_ROTATION, MAX_SHEAR, SCALES = np.deg2rad(20.0), 0.2, (0.8, 1.2)


def draw_shifts(rng: np.random.Generator, count: int, shift: int) -> Int64[Tensor, "count 2"]:
    """Independent vertical and horizontal shifts, uniform integers in [-shift, shift].

    The release's are the same but for the extreme shift of -6, which it draws half as often.
    """
    return torch.from_numpy(rng.integers(-shift, shift, (count, 2), endpoint=True))


def pad_and_shift(
    images: Images, canvas: int | None, shifts: Int64[Tensor, "images 2"]
) -> UInt8[Tensor, "images channels tall wide"]:
    """Centre images on a black square canvas, then move each by its (down, right) shift.

    Without a canvas the image keeps its size. What is moved over the edge is lost.
    """
    batch, _, height, width = images.shape
    tall, wide = canvas or height, canvas or width
    if tall < height or wide < width:
        raise ScaeError(f"A canvas of {canvas} pixels cannot hold images of {height}x{width}.")
    top, left, reach = (tall - height) // 2, (wide - width) // 2, int(shifts.abs().max())
    # Pad by the largest shift as well, so that every result is a plain window of the padded.
    margins = (left + reach, wide - width - left + reach, top + reach, tall - height - top + reach)
    windows = functional.pad(images, margins).unfold(2, tall, 1).unfold(3, wide, 1)
    # (batch, channels, 2 reach + 1, 2 reach + 1, tall, wide), a view
    down, right = (reach - shifts).unbind(1)
    return windows[torch.arange(batch), :, down, right]


def resize(images: Images, size: int) -> UInt8[Tensor, "images channels size size"]:
    """Resize images to a square of `size` pixels (bicubic, antialiased when shrinking)."""
    resized = []
    for chunk in images.split(CHUNK):
        smooth = functional.interpolate(chunk.float(), (size, size), mode="bicubic", antialias=True)
        resized.append(smooth.round_().clamp_(0, 255).to(torch.uint8))
    return torch.cat(resized)


def affine_style(images: Images, seed: int | str) -> UInt8[Tensor, "images channels 40 40"]:
    """Each image under one random affine map on a 40x40 canvas, drawn as affNIST's are.

    Rotation by up to 20 degrees, shear by up to 0.2, scales of 0.8 to 1.2 for each axis, then
    a shift uniform among those that keep the ink's (transformed) bounding box on the canvas.
    """
    count, rng = len(images), stream(seed, AFFINE)
    angle = rng.uniform(-MAX_ROTATION, MAX_ROTATION, count)
    shear = rng.uniform(-MAX_SHEAR, MAX_SHEAR, count)
    scale = rng.uniform(*SCALES, (count, 2))
    cos, sin = np.cos(angle), np.sin(angle)
    # Scale * Shear * Rotation, acting on (x, y); the shear adds a share of x to y.
    first_row = np.stack([cos, -sin], 1) * scale[:, :1]
    second_row = np.stack([sin + shear * cos, cos - shear * sin], 1) * scale[:, 1:]
    linear = torch.from_numpy(np.stack([first_row, second_row], 1))  # (images, 2, 2)
    box = _ink_boxes(images)  # (images, low/high, x/y)
    centre = (linear @ box.mean(1)[..., None])[..., 0]  # (images, 2)
    reach = (linear.abs() @ (box[:, 1] - box[:, 0])[..., None])[..., 0] / 2
    low, high = reach - centre, SIDE - reach - centre  # of the shift
    # Ink too large for the canvas (never so for MNIST) is centred.
    share = torch.from_numpy(rng.random((count, 2)))
    shift = torch.where(high > low, low + share * (high - low), (low + high) / 2)
    chunks = zip(images.split(CHUNK), linear.split(CHUNK), shift.split(CHUNK), strict=True)
    return torch.cat([warp(*chunk) for chunk in chunks])


def warp(
    images: Images, linear: Float[Tensor, "images 2 2"], shift: Float[Tensor, "images 2"]
) -> UInt8[Tensor, "images channels 40 40"]:
    """Images under x -> linear x + shift in pixels from the top left; bilinear, black outside."""
    height, width = images.shape[2:]
    centres = torch.arange(SIDE, dtype=torch.float32) + 0.5
    target = torch.stack(torch.meshgrid(centres, centres, indexing="xy"), -1)  # (40, 40, 2)
    offset = target.reshape(1, -1, 2) - shift.float()[:, None]  # (images, 1600, 2)
    origin = (offset @ torch.linalg.inv(linear).float().mT).reshape(-1, SIDE, SIDE, 2)
    grid = 2 * origin / torch.tensor([width, height]) - 1
    warped = functional.grid_sample(images.float(), grid, align_corners=False)
    return warped.round_().clamp_(0, 255).to(torch.uint8)


def _ink_boxes(images: Images) -> Float[Tensor, "images 2 2"]:
    """Low and high (x, y) corners of the pixels that are not black; the whole image if none."""
    boxes = []
    for ink in ((images > 0).any(2).any(1), (images > 0).any(3).any(1)):  # columns, then rows
        low, after = ink.int().argmax(1), ink.flip(1).int().argmax(1)
        boxes.append(torch.stack([low, ink.shape[1] - after], 1).double())
    return torch.stack(boxes, 2)
