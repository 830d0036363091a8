"""The original affNIST files, and images made in the style of affNIST, never mixed up.

affNIST (Tieleman, 2013): 40x40 images of MNIST digits under random affine maps, 32 versions
of each, as MATLAB structures `affNISTdata` with `image` (1600 x N, rows of pixels one after
the other) and `label_int`.
"""

import io
from pathlib import Path, PurePosixPath
from typing import cast

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor
from torch.nn import functional

from scae.data.files import check_entry, check_labels, damaged, fill, open_zip
from scae.data.interface import AFFINE, ImageData, stream
from scae.data.mat import HEADER, MatValue, parse_mat, read_mat
from scae.errors import ScaeError

SIDE = 40
PLACES = {
    "train": ("training_and_validation", "training"),
    "validation": ("validation",),
    "test": ("test",),
}
"""What the distribution calls a split: `NAME_batches/*.mat` or `NAME.mat`, or zips of those."""

MAX_ROTATION, MAX_SHEAR, SCALES = np.deg2rad(20.0), 0.2, (0.8, 1.2)
CHUNK = 4096


def find_affnist(folder: Path, split: str) -> list[Path]:
    """The files of a split: all batches, one file, or a zip as downloaded."""
    for name in PLACES.get(split, ()):
        batches = [p for p in (folder / f"{name}_batches").glob("*.mat") if p.is_file()]
        if batches:
            return sorted(batches, key=lambda p: (len(p.stem), p.stem))
        for single in (f"{name}.mat", f"{name}_batches.zip", f"{name}.mat.zip"):
            if (folder / single).is_file():
                return [folder / single]
    return []


def read_affnist(paths: list[Path], split: str) -> ImageData:
    """Images and labels of original affNIST files."""
    images, labels = [], []
    for path in paths:
        contents = read_zip(path) if path.suffix == ".zip" else [(path, read_mat(path))]
        for place, variables in contents:
            pixels, digits = _fields(place, variables)
            images.append(pixels)
            labels.append(digits)
    if not images:
        raise ScaeError(f"File {paths[0]} holds no images.")
    return ImageData(
        torch.from_numpy(np.concatenate(images))[:, None],  # (images, 1, 40, 40)
        torch.from_numpy(np.concatenate(labels)),
        "affnist",
        split,
    )


def read_zip(path: Path) -> list[tuple[Path, dict[str, MatValue]]]:
    """Every `.mat` file of an archive, read in memory; nothing is unpacked to disk."""
    expected = "a zip archive of .mat files"
    found = []
    with open_zip(path, expected) as archive:
        for entry in archive.infolist():
            check_entry(path, entry, expected)
            place = path / PurePosixPath(entry.filename).name
            if place.suffix != ".mat":
                continue
            data = np.empty(entry.file_size, np.uint8)
            with archive.open(entry) as member:
                whole = fill(data, cast(io.BufferedIOBase, member)) == len(data)
                if not whole or len(data) < HEADER:
                    raise damaged(path, expected, f"{place.name} is cut short")
            found.append((place, parse_mat(data.data, place, copy=False)))
    return found


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
    box = _ink_boxes(images)  # (images, 2, 2): low and high corner as (x, y)
    corners = torch.stack(
        [
            torch.stack([box[:, i, 0], box[:, j, 1]], -1)
            for i, j in ((0, 0), (0, 1), (1, 0), (1, 1))
        ],
        1,
    )  # (images, 4, 2)
    moved = corners @ linear.mT  # (images, 4, 2)
    low, high = -moved.amin(1), SIDE - moved.amax(1)
    # Ink too large for the canvas (never so for MNIST) is centred.
    share = torch.from_numpy(rng.random((count, 2)))
    shift = torch.where(high > low, low + share * (high - low), (low + high) / 2)
    out = [
        warp(images[i : i + CHUNK], linear[i : i + CHUNK], shift[i : i + CHUNK])
        for i in range(0, count, CHUNK)
    ]
    return torch.cat(out) if out else images.new_zeros((0, images.shape[1], SIDE, SIDE))


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
    source = (offset @ inverse.mT).reshape(-1, SIDE, SIDE, 2)
    grid = 2 * source / torch.tensor([width, height]) - 1
    warped = functional.grid_sample(images.float(), grid, align_corners=False)
    return warped.round_().clamp_(0, 255).to(torch.uint8)


def _ink_boxes(
    images: UInt8[Tensor, "images channels height width"],
) -> Float[Tensor, "images 2 2"]:
    """Low and high (x, y) corners of the pixels that are not black; the whole image if none."""
    boxes = []
    for ink in ((images > 0).any(2).any(1), (images > 0).any(3).any(1)):  # columns, then rows
        length = ink.shape[1]
        low = ink.int().argmax(1)
        high = length - ink.flip(1).int().argmax(1)
        boxes.append(torch.stack([low, high], 1).double())
    return torch.stack(boxes, 2)  # (images, low/high, x/y)


def _fields(path: Path, variables: dict[str, MatValue]) -> tuple[np.ndarray, np.ndarray]:
    expected = "an affNIST file"
    data = variables.get("affNISTdata")
    if not isinstance(data, dict):
        raise damaged(path, expected, "it lacks the structure affNISTdata")
    pixels, labels = data.get("image"), data.get("label_int")
    if not isinstance(pixels, np.ndarray) or not isinstance(labels, np.ndarray):
        raise damaged(path, expected, "affNISTdata lacks image or label_int")
    if pixels.ndim != 2 or pixels.shape[0] != SIDE * SIDE or pixels.dtype != np.uint8:
        raise damaged(path, expected, f"image is {pixels.dtype} of shape {pixels.shape}")
    digits = labels.reshape(-1)
    if not np.array_equal(digits, np.floor(digits)):
        raise damaged(path, expected, "label_int holds numbers that are not whole")
    check_labels(path, digits, 10, pixels.shape[1])
    return pixels.T.reshape(-1, SIDE, SIDE), digits.astype(np.int64)
