"""Readers of the original files of the data sets, and of numpy files.

Headers are checked, nothing is unpickled, and nothing is unpacked to disk. Every failure is
one sentence that names the file.
"""

import io
import struct
import tarfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Int64, UInt8

from scae.data.images import ImageData, from_arrays, whole_labels
from scae.errors import ScaeError

# Real images shrink to a tenth or so. Larger files that hold more than this many times their own
# size are made to fill the memory.
MAX_RATIO, UNCHECKED_BYTES = 100, 2**26
DIGITS_TRAIN = 1437
CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR10_RECORD = 1 + 3 * 32 * 32
# Names of arrays in numpy files: images and their labels.
KEYS = (("images", "labels"), ("x", "y"), ("X", "y"), ("data", "targets"), ("arr_0", "arr_1"))

# Of MATLAB files: kinds of elements that hold numbers or text; classes of matrices (cells,
# structures, text and numbers); how many elements stand before those nested in cells, structures.
MAT_LEAVES = {1, 2, 3, 4, 5, 6, 7, 9, 12, 13, 16, 17, 18}
MAT_CLASSES = {1, 2, 4, *range(6, 16)}
MAT_NESTED = {1: 3, 2: 5}
MAT_MATRIX, MAT_COMPRESSED = 14, 15

Pixels = UInt8[np.ndarray, "images channels height width"]
Labels = Int64[np.ndarray, " images"]


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Turn whatever a library raises on a bad file into one sentence."""
    try:
        with warnings.catch_warnings(action="ignore"):  # libraries warn before they fail
            yield
    except ScaeError:
        raise
    except Exception as error:  # zlib, zipfile, tarfile, numpy and Pillow raise nearly anything
        reason = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")[:200]
        raise ScaeError(f"File {path} cannot be read as {expected}: {reason}.") from None


def max_bytes(path: Path) -> int:
    """The most bytes that a file of real data unpacks to."""
    return max(UNCHECKED_BYTES, MAX_RATIO * path.stat().st_size)


def unpack(path: Path, packed: bytes | memoryview) -> bytes:
    """Bytes of `path` packed by zlib or gzip."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS + 32)  # either of the two headers
    content = unpacker.decompress(packed, max_bytes(path))
    if not unpacker.eof:
        raise ValueError(f"it is cut short, or holds more than {max_bytes(path):,} bytes")
    return content


def read_bytes(path: Path) -> bytes:
    """Contents of a plain or gzipped file, told apart by the first bytes."""
    content = path.read_bytes()
    return unpack(path, content) if content.startswith(b"\x1f\x8b") else content


def read_idx(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """The array of an idx file of unsigned bytes, plain or gzipped.

    Header: two zero bytes, the type (8), the number of dimensions, then each dimension as a
    big-endian 32-bit number; elements follow in row-major order.
    """
    with reading(path, f"an idx file of bytes in {dimensions} dimensions"):
        content = read_bytes(path)
        if content[:4] != bytes((0, 0, 8, dimensions)):
            raise ValueError(f"its magic number is 0x{content[:4].hex()}")
        shape = struct.unpack_from(f">{dimensions}I", content, 4)
        return np.frombuffer(content, np.uint8, offset=4 + 4 * dimensions).reshape(shape).copy()


def read_mnist(paths: Sequence[Path], split: str) -> tuple[Pixels, Labels]:
    """One split of MNIST or Fashion-MNIST from its two files, images first."""
    images = read_idx(paths[0], 3)
    if images.shape[1:] != (28, 28):
        raise ScaeError(f"File {paths[0]} has shape {images.shape}; expected 28x28 images.")
    return images[:, None], whole_labels(read_idx(paths[1], 1), f"File {paths[1]}", len(images), 9)


def read_mat(path: Path, *names: str) -> dict[str, Any]:
    """Variables of a MATLAB file (version 5)."""
    from scipy.io import loadmat

    content = path.read_bytes()
    _check_mat(path, memoryview(content)[128:], ">" if content[126:128] == b"MI" else "<")
    found: dict[str, Any] = loadmat(io.BytesIO(content), variable_names=names or None)
    return found


def _check_mat(path: Path, data: memoryview, order: str, leaves: int = 0) -> int:
    """Number of elements in `data`: `leaves` numbers or texts, then only matrices.

    Scipy's compiled reader trusts the kinds of elements: a wrong one ends the process.
    """
    at = number = 0
    while at < len(data):
        kind, size = struct.unpack_from(f"{order}2I", data, at)
        start, at = at + 8, at + 8 + size
        if kind >> 16:  # up to four bytes stand in the tag itself
            kind, size, at = kind & 0xFFFF, 0, start
        inner, number = data[start : start + size], number + 1
        if len(inner) != size or (kind in MAT_LEAVES) != (number <= leaves):
            raise ValueError(f"element {number} is of kind {kind} and has {len(inner)} bytes")
        if kind == MAT_COMPRESSED and leaves == 0:
            _check_mat(path, memoryview(unpack(path, inner)), order)
        elif kind in MAT_LEAVES:
            at += -size % 8
        elif kind != MAT_MATRIX or size % 8:
            raise ValueError(f"element {number} is of kind {kind} and has {size} bytes")
        elif size:  # a matrix starts with its flags
            first, length, flags = struct.unpack_from(f"{order}3I", inner)
            numbers = 4 + bool(flags & 0x800)  # complex ones have two parts
            wanted = MAT_NESTED.get(flags & 0xFF, numbers)
            found = _check_mat(path, inner, order, wanted)
            if (first, length) != (6, 8) or flags & 0xFF not in MAT_CLASSES or found < wanted:
                raise ValueError(f"element {number} is no matrix of numbers, cells or fields")
            if wanted == numbers and found > wanted:
                raise ValueError(f"element {number} has more than its numbers")
    return number


def read_svhn(paths: Sequence[Path], split: str) -> tuple[Pixels, Labels]:
    """Cropped digits: `X` (32, 32, 3, images) and `y`, where digit 0 has the label 10."""
    with reading(paths[0], "a MATLAB file with X and y"):
        found = read_mat(paths[0], "X", "y")
        # (row, column, channel, image) to (image, channel, row, column)
        images, labels = found["X"].transpose(3, 2, 0, 1), found["y"]
        if images.shape[1:] != (3, 32, 32) or images.dtype != np.uint8:
            raise ValueError(f"X is {found['X'].dtype} of shape {found['X'].shape}")
        digits = whole_labels(np.where(labels == 10, 0, labels), f"File {paths[0]}", len(images), 9)
        return np.ascontiguousarray(images), digits


def read_affnist(paths: Sequence[Path], split: str) -> tuple[Pixels, Labels]:
    """Original affNIST files (Tieleman, 2013): MNIST digits under random affine maps.

    A MATLAB structure `affNISTdata` with `image` (1600 x N, rows of pixels one after the
    other) and `label_int`.
    """
    images, labels = [], []
    for path in paths:
        with reading(path, "a MATLAB file with affNISTdata"):
            data = read_mat(path, "affNISTdata")["affNISTdata"]
            pixels = data["image"].item()
            if pixels.dtype != np.uint8:
                raise ValueError(f"image is {pixels.dtype}")
            images.append(pixels.T.reshape(-1, 1, 40, 40))
            labels.append(
                whole_labels(data["label_int"].item(), f"File {path}", pixels.shape[1], 9)
            )
    return np.concatenate(images), np.concatenate(labels)


def read_cifar10(paths: Sequence[Path], split: str) -> tuple[Pixels, Labels]:
    """Binary batches, plain or gzipped, or those of a split in the original archive.

    A record is one label byte and 3 x 32 x 32 pixel bytes.
    """
    images, labels = [], []
    wanted = "test_batch" if split == "test" else "data_batch"
    for path in paths:
        with reading(path, f"CIFAR-10, records of {CIFAR10_RECORD} bytes"):
            content = read_bytes(path)
            if path.name.endswith(".tar.gz"):
                with tarfile.open(fileobj=io.BytesIO(content)) as archive:
                    names = sorted(name for name in archive.getnames() if wanted in name)
                    files = (archive.extractfile(name) for name in names)
                    content = b"".join(file.read() for file in files if file)
            if not content:
                raise ValueError(f"it has no batches of {split}")
            records = np.frombuffer(content, np.uint8).reshape(-1, CIFAR10_RECORD)
            images.append(records[:, 1:].reshape(-1, 3, 32, 32))
            labels.append(whole_labels(records[:, 0], f"File {path}", len(records), 9))
    return np.concatenate(images), np.concatenate(labels)


def read_digits(split: str) -> tuple[Pixels, Labels]:
    """Scikit-learn's bundled 8x8 digits; the last 360 of 1797 are the test split."""
    from sklearn.datasets import load_digits

    rows = slice(DIGITS_TRAIN) if split == "train" else slice(DIGITS_TRAIN, None)
    bunch = load_digits()
    grey = (bunch.images[rows, None] * (255 / 16)).round()  # stored as 0 to 16
    return grey.astype(np.uint8), bunch.target[rows].astype(np.int64)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or the one of an .npy file as `arr_0`."""
    with reading(path, "a numpy file of numbers"):
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                claimed = sum(member.file_size for member in archive.infolist())
                if claimed > max_bytes(path):
                    raise ValueError(f"it claims to hold {claimed:,} bytes")
        with open(path, "rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return {"arr_0": loaded}
            return {key: np.asarray(loaded[key]) for key in loaded.files}


def read_array_images(path: Path, split: str) -> ImageData:
    """Images from `images` and `labels`, or from `x_train`, `y_train`, `x_test`, `y_test`.

    Without splits in the file, any split is the whole file.
    """
    arrays, by_split = read_arrays(path), (f"x_{split}", f"y_{split}")
    for images, labels in (by_split, *KEYS):
        if images in arrays:
            found = split if (images, labels) == by_split else "all"
            data = from_arrays(arrays[images], arrays.get(labels), f"File {path}", found)
            return replace(data, name=str(path))
    names = ", ".join(images for images, _ in (by_split, *KEYS))
    raise ScaeError(f"File {path} has no images; name their array one of {names}.")
