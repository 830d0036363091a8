"""Images in numpy's .npy and .npz files, read without pickle and in bounded memory."""

import io
import math
import warnings
from pathlib import Path
from typing import cast

import numpy as np
import torch
from jaxtyping import UInt8

from scae.data.files import check_entry, check_start, damaged, fill, open_zip, reason
from scae.data.interface import ImageData
from scae.errors import ScaeError

EXPECTED = "a numpy file of numbers"
IMAGE_KEYS = ("images", "x", "X", "data", "arr_0")
LABEL_KEYS = ("labels", "y", "targets")
BLOCK = 1 << 18


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or the one of an .npy file under the name arr_0."""
    if not path.is_file():
        raise ScaeError(f"File {path} does not exist.")
    try:
        with open(path, "rb") as file:
            start = file.read(64)
            check_start(path, start, EXPECTED)
            if start[:2] != b"PK":
                size = file.seek(0, io.SEEK_END)
                file.seek(0)
                return {"arr_0": _read_npy(path, file, size)}
    except (OSError, EOFError) as error:
        raise damaged(path, EXPECTED, reason(error)) from None
    return _read_members(path)


def load_array_images(path: Path, split: str) -> ImageData:
    """Images from `images` and `labels`, or from `x_train`, `y_train`, `x_test`, `y_test`.

    Without splits in the file, any split is the whole file.
    """
    arrays = read_arrays(path)
    if f"x_{split}" in arrays:
        images, labels = arrays[f"x_{split}"], arrays.get(f"y_{split}")
    elif "x_train" in arrays or "x_test" in arrays:
        raise ScaeError(f"File {path} has no array x_{split} for the split {split!r}.")
    else:
        keys = [key for key in IMAGE_KEYS if key in arrays]
        if not keys:
            wanted = ", ".join(IMAGE_KEYS)
            raise ScaeError(f"File {path} has no array of images; call it one of {wanted}.")
        images = arrays[keys[0]]
        labels = next((arrays[key] for key in LABEL_KEYS if key in arrays), None)
        split = "all"
    return from_arrays(images, labels, str(path), split)


def from_arrays(
    images: np.ndarray, labels: np.ndarray | None = None, name: str = "array", split: str = "all"
) -> ImageData:
    """Images from arrays of (N, H, W), (N, H, W, C) or (N, C, H, W) with 1 or 3 channels.

    Pixels are bytes, or floats in [0, 1], which are rounded to 256 levels.
    """
    pixels = _bytes(images, name)
    if pixels.ndim == 3:
        planes = pixels[:, None]
    elif pixels.ndim == 4 and pixels.shape[3] in (1, 3):
        planes = pixels.transpose(0, 3, 1, 2)
    elif pixels.ndim == 4 and pixels.shape[1] in (1, 3):
        planes = pixels
    else:
        raise ScaeError(
            f"Data {name!r} has images of shape {pixels.shape}; expected (N, H, W), (N, H, W, C) "
            "or (N, C, H, W) with 1 or 3 channels."
        )
    if 0 in planes.shape:
        raise ScaeError(f"Data {name!r} holds no images: its shape is {pixels.shape}.")
    classes = None if labels is None else torch.from_numpy(_classes(labels, name, len(planes)))
    return ImageData(
        torch.from_numpy(np.require(planes, requirements=["C", "W"])), classes, name, split
    )


def _bytes(images: np.ndarray, name: str) -> UInt8[np.ndarray, "..."]:
    if images.dtype == np.uint8:
        return images
    if images.dtype.kind not in "biuf":
        raise ScaeError(f"Data {name!r} has pixels of type {images.dtype}; expected numbers.")
    if images.size == 0:
        return images.astype(np.uint8)
    low, high = images.min(), images.max()
    if images.dtype.kind == "f":
        if not np.isfinite(low) or not np.isfinite(high):  # NaN spreads to both
            raise ScaeError(f"Data {name!r} has pixels that are NaN or infinite.")
        top, scale = 1.0, 255.0
    else:
        top, scale = (1, 255) if images.dtype.kind == "b" else (255, 1)
    if low < 0 or high > top:
        raise ScaeError(
            f"Data {name!r} has pixels from {low} to {high}; expected bytes from 0 to 255 or "
            "floats from 0 to 1."
        )
    pixels = np.empty(images.shape, np.uint8)
    # In blocks: the product is as large as the file, or larger.
    rows = max(1, BLOCK * len(images) // images.size)
    for start in range(0, len(images), rows):
        block = slice(start, start + rows)
        np.rint(images[block] * scale, out=pixels[block], casting="unsafe")
    return pixels


def _classes(labels: np.ndarray, name: str, count: int) -> np.ndarray:
    if labels.ndim == 2 and 1 in labels.shape:
        labels = labels.reshape(-1)
    whole = labels.dtype.kind in "biu" or (
        labels.dtype.kind == "f"
        and bool(np.isfinite(labels).all() and (labels == np.floor(labels)).all())
    )
    if labels.ndim != 1 or not whole:
        raise ScaeError(f"Data {name!r} has labels that are not one whole number per image.")
    if len(labels) != count:
        raise ScaeError(f"Data {name!r} has {count} images but {len(labels)} labels.")
    if labels.size and (labels.min() < 0 or labels.max() > 1_000_000):
        raise ScaeError(f"Data {name!r} has labels outside 0 to 1000000.")
    return labels.astype(np.int64)


def _read_members(path: Path) -> dict[str, np.ndarray]:
    arrays = {}
    with open_zip(path, EXPECTED) as archive:
        for entry in archive.infolist():
            check_entry(path, entry, EXPECTED)
            if not entry.filename.endswith(".npy"):
                raise damaged(path, EXPECTED, f"its entry {entry.filename!r} is no array")
            with archive.open(entry) as member:
                name = entry.filename.removesuffix(".npy")
                stream = cast(io.BufferedIOBase, member)
                arrays[name] = _read_npy(path, stream, entry.file_size)
    return arrays


def _read_npy(path: Path, file: io.BufferedIOBase, size: int) -> np.ndarray:
    """One array; its header must account for exactly the `size` bytes that there are."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a damaged header may hold odd escapes
            if np.lib.format.read_magic(file) == (1, 0):
                shape, fortran, dtype = np.lib.format.read_array_header_1_0(file)
            else:
                shape, fortran, dtype = np.lib.format.read_array_header_2_0(file)
    except Exception as error:  # numpy parses the header as Python text, with any error of that
        raise damaged(path, EXPECTED, reason(error)) from None
    if dtype.hasobject or dtype.names is not None or dtype.kind not in "biuf":
        raise damaged(path, EXPECTED, f"it holds {dtype} (objects are never unpickled)")
    wanted = math.prod(shape) * dtype.itemsize
    if any(length < 0 for length in shape) or wanted != size - file.tell():
        found = f"an array of {shape} does not match its {size - file.tell()} bytes of data"
        raise damaged(path, EXPECTED, found)
    data = np.empty(wanted, np.uint8)
    if (done := fill(data, file)) != wanted:
        raise damaged(path, EXPECTED, f"it ends after {done} of {wanted} bytes")
    flat = data.view(dtype).astype(dtype.newbyteorder("="), copy=False)
    return flat.reshape(shape, order="F" if fortran else "C")
