"""Readers of the original files of the data sets, and of numpy files.

Headers are checked, nothing is unpickled, and nothing is unpacked to disk. Every failure is
one sentence that names the file.
"""

import gzip
import io
import math
import tarfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import cast

import numpy as np
import torch
from jaxtyping import UInt8

from scae.data.images import ImageData, from_arrays
from scae.data.transforms import resize
from scae.errors import ScaeError

# Gzip cannot shrink data by more than this factor; a header that claims more is wrong.
MAX_DEFLATE_RATIO = 1032
DIGITS_TRAIN = 1437
DIGITS_SIZE = 28
CIFAR10_CLASSES = (
    *("airplane", "automobile", "bird", "cat", "deer"),
    *("dog", "frog", "horse", "ship", "truck"),
)
CIFAR10_RECORD = 1 + 3 * 32 * 32
CIFAR10_BATCH = 10_000
IMAGE_KEYS = ("images", "x", "X", "data", "arr_0")
LABEL_KEYS = ("labels", "y", "targets")


def bad_file(path: Path, expected: str, problem: str) -> ScaeError:
    """The error for a file that is not what it should be."""
    with open(path, "rb") as file:
        start = file.read(64)
    if not start:
        problem = "it is empty"
    elif (
        start.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith((b"<!doctype", b"<html", b"<?xml"))
    ):
        problem = "it is a web page, probably a saved error message"
    return ScaeError(f"File {path} is not {expected}: {problem}; download or save it again.")


@contextmanager
def reading(path: Path, expected: str) -> Iterator[None]:
    """Turn whatever a library raises on a bad file into one sentence."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # libraries warn of odd headers before they fail
            yield
    except ScaeError:
        raise
    except FileNotFoundError:
        raise ScaeError(f"File {path} does not exist.") from None
    except PermissionError:
        raise ScaeError(f"File {path} may not be read.") from None
    except Exception as error:  # scipy, zipfile, tarfile and numpy raise nearly anything
        raise bad_file(path, expected, reason(error)) from None


def reason(error: Exception) -> str:
    """The first line of an error's text."""
    if "pickle" in str(error):
        return "it holds Python objects, which are never loaded"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text).splitlines()[0].rstrip(".")[:200]


def open_binary(path: Path) -> io.BufferedIOBase:
    """Open a plain or gzipped file, told apart by its first bytes."""
    with open(path, "rb") as file:
        zipped = file.read(2) == b"\x1f\x8b"
    return gzip.GzipFile(path) if zipped else open(path, "rb")


def check_labels(path: Path, labels: np.ndarray, count: int) -> UInt8[np.ndarray, " images"]:
    """Labels as bytes, if they are whole numbers from 0 to 9, one for each image."""
    if labels.shape != (count,):
        raise ScaeError(f"File {path} has {labels.size} labels for {count} images.")
    wrong = labels[~np.isin(labels, np.arange(10))]
    if len(wrong):
        raise ScaeError(f"File {path} has a label {wrong[0]}; expected 0 to 9.")
    return labels.astype(np.uint8)


def read_idx(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """The array of an idx file of unsigned bytes, plain or gzipped.

    Header: two zero bytes, the type (8), the number of dimensions, then each dimension as a
    big-endian 32-bit number; elements follow in row-major order.
    """
    expected = f"an idx file of bytes in {dimensions} dimensions"
    with reading(path, expected), open_binary(path) as file:
        magic = file.read(4)
        if magic != bytes((0, 0, 8, dimensions)):
            raise bad_file(path, expected, f"its magic number is 0x{magic.hex()}")
        shape = tuple(int(n) for n in np.frombuffer(file.read(4 * dimensions), ">u4"))
        count = math.prod(shape)
        if len(shape) != dimensions or count > MAX_DEFLATE_RATIO * path.stat().st_size:
            raise bad_file(path, expected, f"its header claims the shape {shape}")
        data = np.frombuffer(bytearray(file.read(count + 1)), np.uint8)
        if len(data) != count:
            found = "more" if len(data) > count else str(len(data))
            raise bad_file(path, expected, f"it holds {found} instead of {count} bytes")
    return data.reshape(shape)


def read_mnist(paths: Sequence[Path], name: str, split: str) -> ImageData:
    """One split of MNIST or Fashion-MNIST from its two files, images first."""
    images = read_idx(paths[0], 3)
    if images.shape[1:] != (28, 28) or len(images) == 0:
        raise bad_file(paths[0], "a file of 28x28 images", f"its shape is {images.shape}")
    labels = check_labels(paths[1], read_idx(paths[1], 1), len(images))
    planes = torch.from_numpy(images)[:, None]  # (images, 1, 28, 28)
    return ImageData(planes, torch.from_numpy(labels).long(), name, split)


def read_mat(path: Path, names: Sequence[str]) -> list[np.ndarray]:
    """Variables of a MATLAB file (up to version 7)."""
    from scipy.io import loadmat

    expected = f"a MATLAB file with {' and '.join(names)}"
    with reading(path, expected):
        found = loadmat(path, variable_names=names)
    if missing := [name for name in names if not isinstance(found.get(name), np.ndarray)]:
        raise bad_file(path, expected, f"it lacks {' and '.join(missing)}")
    return [found[name] for name in names]


def read_svhn(paths: Sequence[Path], name: str, split: str) -> ImageData:
    """Cropped digits: `X` (32, 32, 3, images) and `y`, where digit 0 has the label 10."""
    path = paths[0]
    pixels, labels = read_mat(path, ("X", "y"))
    if pixels.ndim == 3:  # MATLAB drops the last dimension of a single image
        pixels = pixels[..., None]
    if pixels.shape[:3] != (32, 32, 3) or pixels.shape[3] == 0 or pixels.dtype != np.uint8:
        raise bad_file(path, "SVHN's cropped digits", f"X is {pixels.dtype} of {pixels.shape}")
    digits = labels.reshape(-1)
    if (digits == 0).any():
        raise ScaeError(f"File {path} has a label 0; SVHN writes digit 0 as label 10.")
    digits = check_labels(path, np.where(digits == 10, 0, digits), pixels.shape[3])
    # (row, column, channel, image) to (image, channel, row, column)
    images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    return ImageData(torch.from_numpy(images), torch.from_numpy(digits).long(), name, split)


def read_cifar10(paths: Sequence[Path], name: str, split: str) -> ImageData:
    """Binary batches, plain or gzipped, or those of a split in the original archive.

    A record is one label byte and 3 x 32 x 32 pixel bytes.
    """
    records: dict[str, np.ndarray] = {}
    for path in paths:
        with reading(path, "CIFAR-10 in its binary version"):
            if not path.name.endswith(".tar.gz"):
                with open_binary(path) as file:
                    records[path.name] = _cifar10_records(path, file)
                continue
            with tarfile.open(path) as archive:
                for member in archive:
                    batch = PurePosixPath(member.name).name
                    wanted = batch.startswith("test_batch" if split == "test" else "data_batch")
                    if wanted and (content := archive.extractfile(member)):
                        records[batch] = _cifar10_records(path, cast(io.BufferedIOBase, content))
    if not records:
        raise bad_file(paths[0], "the CIFAR-10 archive", f"it has no batches of {split}")
    joined = np.concatenate([records[batch] for batch in sorted(records)])
    images = torch.from_numpy(joined[:, 1:].reshape(-1, 3, 32, 32))
    labels = torch.from_numpy(joined[:, 0]).long()
    return ImageData(images, labels, name, split, CIFAR10_CLASSES)


def _cifar10_records(path: Path, file: io.BufferedIOBase) -> UInt8[np.ndarray, "records 3073"]:
    data = np.frombuffer(file.read(CIFAR10_BATCH * CIFAR10_RECORD + 1), np.uint8)
    if len(data) == 0 or len(data) % CIFAR10_RECORD:
        problem = f"a batch is not 1 to {CIFAR10_BATCH} records of {CIFAR10_RECORD} bytes"
        raise bad_file(path, "CIFAR-10 in the binary version", problem)
    records = data.reshape(-1, CIFAR10_RECORD)
    check_labels(path, records[:, 0], len(records))
    return records


def read_digits(split: str, size: int = DIGITS_SIZE) -> ImageData:
    """Scikit-learn's bundled 8x8 digits, enlarged; the last 360 of 1797 are the test split."""
    from sklearn.datasets import load_digits

    rows = {"train": slice(None, DIGITS_TRAIN), "test": slice(DIGITS_TRAIN, None)}[split]
    bunch = load_digits()
    grey = torch.from_numpy(bunch.images[rows, None]).mul(255 / 16).round()  # stored as 0 to 16
    labels = torch.from_numpy(bunch.target[rows]).long()
    return ImageData(resize(grey.to(torch.uint8), size), labels, "digits", split)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or the one of an .npy file as `arr_0`."""
    with reading(path, "a numpy file of numbers"), open(path, "rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return {"arr_0": loaded}
        arrays = {key: loaded[key] for key in loaded.files}
    return {key: array for key, array in arrays.items() if isinstance(array, np.ndarray)}


def read_array_images(path: Path, split: str) -> ImageData:
    """Images from `images` and `labels`, or from `x_train`, `y_train`, `x_test`, `y_test`.

    Without splits in the file, any split is the whole file.
    """
    arrays, name = read_arrays(path), f"File {path}"
    if "x_train" in arrays or "x_test" in arrays:
        if f"x_{split}" not in arrays:
            raise ScaeError(f"{name} has no array x_{split} for the split {split!r}.")
        images, labels = arrays[f"x_{split}"], arrays.get(f"y_{split}")
    else:
        keys = [key for key in IMAGE_KEYS if key in arrays]
        if not keys:
            raise ScaeError(f"{name} has no array of images; call it one of {IMAGE_KEYS}.")
        images, split = arrays[keys[0]], "all"
        labels = next((arrays[key] for key in LABEL_KEYS if key in arrays), None)
    return replace(from_arrays(images, labels, name, split), name=str(path))
