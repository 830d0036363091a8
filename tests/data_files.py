"""Tiny files in the original formats of the data sets, for tests to read and to damage."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

from scae.errors import ScaeError


def idx_bytes(array: np.ndarray) -> bytes:
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def mnist_arrays(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (count, 28, 28)), np.arange(count) % 10


def write_mnist(root: Path, count: int = 12, zipped: bool = True, name: str = "mnist") -> Path:
    """Four idx files in `root/name`; the test split has half as many images."""
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    for seed, (stem, size) in enumerate((("train", count), ("t10k", count // 2))):
        images, labels = mnist_arrays(size, seed)
        for part, array in (("images-idx3", images), ("labels-idx1", labels)):
            data = idx_bytes(array)
            path = folder / f"{stem}-{part}-ubyte{'.gz' if zipped else ''}"
            path.write_bytes(gzip.compress(data) if zipped else data)
    return folder


def write_svhn(
    root: Path, count: int = 11, zipped: bool = True, **changes: np.ndarray | None
) -> np.ndarray:
    """`train_32x32.mat`, with changed or missing variables; the images as (N, height, width, 3)."""
    images = np.random.default_rng(0).integers(0, 256, (count, 32, 32, 3)).astype(np.uint8)
    labels = (np.arange(count) % 10 + 1)[:, None]  # 1 to 10
    fields = {"X": images.transpose(1, 2, 3, 0), "y": labels} | changes
    (root / "svhn").mkdir(exist_ok=True)
    known = {key: value for key, value in fields.items() if value is not None}
    savemat(root / "svhn" / "train_32x32.mat", known, do_compression=zipped)
    return images


def cifar_bytes(count: int, seed: int = 0) -> bytes:
    records = np.random.default_rng(seed).integers(0, 256, (count, 3073)).astype(np.uint8)
    records[:, 0] = np.arange(count) % 10
    return records.tobytes()


def write_affnist(path: Path, count: int = 7, seed: int = 0, **changes: object) -> np.ndarray:
    """An original-style structure, with changed fields; returns the images as (N, 40, 40)."""
    path.parent.mkdir(parents=True, exist_ok=True)
    images = np.random.default_rng(seed).integers(0, 256, (count, 40, 40)).astype(np.uint8)
    labels = (np.arange(count) % 10).astype(np.uint8)[None]
    fields = {"image": images.reshape(count, 1600).T, "label_int": labels, "original_id": "text"}
    savemat(path, {"affNISTdata": fields | changes}, do_compression=True)
    return images


def write_image(path: Path, size: tuple[int, int] = (9, 7), mode: str = "RGB", seed: int = 0):
    """A noisy image of (width, height); returns its pixels as PIL shows them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    channels = {"L": (), "RGB": (3,), "RGBA": (4,)}[mode]
    shape = (size[1], size[0], *channels)
    pixels = np.random.default_rng(seed).integers(0, 256, shape).astype(np.uint8)
    Image.fromarray(pixels, mode).save(path)
    return pixels


def refuse(call: Callable[[], object], *words: str) -> None:
    """The call raises our error: one sentence that contains the given words."""
    with pytest.raises(ScaeError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    for word in words:
        assert word in message, message
