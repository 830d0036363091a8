"""The original affNIST files, and images made in the style of affNIST.

affNIST (Tieleman, 2013): 40x40 images of MNIST digits under random affine maps, 32 versions
of each, as MATLAB structures `affNISTdata` with `image` (1600 x N, rows of pixels one after
the other) and `label_int`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional

from scae.data.images import ImageData
from scae.data.readers import bad_file, check_labels, read_mat
from scae.data.streams import AFFINE, stream

SIDE = 40
MAX_ROTATION, MAX_SHEAR, SCALES = np.deg2rad(20.0), 0.2, (0.8, 1.2)
CHUNK = 4096


def read_affnist(paths: Sequence[Path], name: str, split: str) -> ImageData:
    """Images and labels of original affNIST files."""
    images, labels = [], []
    for path in paths:
        (data,) = read_mat(path, ("affNISTdata",))
        if not {"image", "label_int"} <= set(data.dtype.names or ()) or data.size != 1:
            raise bad_file(path, "an affNIST file", "affNISTdata lacks image or label_int")
        pixels, digits = data["image"].item(), data["label_int"].item()
        if pixels.ndim != 2 or len(pixels) != SIDE * SIDE or pixels.dtype != np.uint8:
            problem = f"image is {pixels.dtype} of shape {pixels.shape}"
            raise bad_file(path, "an affNIST file", problem)
        labels.append(check_labels(path, digits.reshape(-1), pixels.shape[1]))
        images.append(pixels.T.reshape(-1, 1, SIDE, SIDE))
    joined = torch.from_numpy(np.concatenate(images))
    return ImageData(joined, torch.from_numpy(np.concatenate(labels)).long(), name, split)


def affine_style(
    images: UInt8[Tensor, "images channels height width"], seed: int
) -> UInt8[Tensor, "images channels 40 40"]:
    """Each image under one random affine map on a 40x40 canvas, drawn as affNIST's are.

    Rotation by up to 20 degrees, shear by up to 0.2, scales of 0.8 to 1.2 for each axis, then
    a shift uniform among those that keep the ink's (transformed) bounding box on the canvas.
    """
    count = len(images)
    rng = stream(seed, AFFINE)
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
    out = [
        warp(images[i : i + CHUNK], linear[i : i + CHUNK], shift[i : i + CHUNK])
        for i in range(0, count, CHUNK)
    ]
    return torch.cat(out)


def warp(
    images: UInt8[Tensor, "images channels height width"],
    linear: Float[Tensor, "images 2 2"],
    shift: Float[Tensor, "images 2"],
) -> UInt8[Tensor, "images channels 40 40"]:
    """Images under x -> linear x + shift in pixels from the top left; bilinear, black outside."""
    height, width = images.shape[2:]
    centres = torch.arange(SIDE, dtype=torch.float32) + 0.5
    target = torch.stack(torch.meshgrid(centres, centres, indexing="xy"), -1)  # (40, 40, 2)
    inverse = torch.linalg.inv(linear).float()
    offset = target.reshape(1, -1, 2) - shift.float()[:, None]  # (images, 1600, 2)
    origin = (offset @ inverse.mT).reshape(-1, SIDE, SIDE, 2)
    grid = 2 * origin / torch.tensor([width, height]) - 1
    warped = functional.grid_sample(images.float(), grid, align_corners=False)
    return warped.round_().clamp_(0, 255).to(torch.uint8)


def _ink_boxes(
    images: UInt8[Tensor, "images channels height width"],
) -> Float[Tensor, "images 2 2"]:
    """Low and high (x, y) corners of the pixels that are not black; the whole image if none."""
    boxes = []
    for ink in ((images > 0).any(2).any(1), (images > 0).any(3).any(1)):  # columns, then rows
        low, after = ink.int().argmax(1), ink.flip(1).int().argmax(1)
        boxes.append(torch.stack([low, ink.shape[1] - after], 1).double())
    return torch.stack(boxes, 2)
