"""The idx files of MNIST and Fashion-MNIST, plain or gzipped.

Header: two zero bytes, the element type (8 for unsigned bytes), the number of dimensions,
then each dimension as a big-endian 32-bit number; elements follow in row-major order.
"""

import math
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from scae.data.files import check_labels, damaged, open_binary
from scae.data.interface import ImageData
from scae.errors import ScaeError

UNSIGNED_BYTE = 8
STEMS = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}
COUNTS = {"train": 60_000, "test": 10_000}


def read_idx(path: Path, dimensions: int) -> UInt8[np.ndarray, "..."]:
    """The array of unsigned bytes in an idx file of the given number of dimensions."""
    expected = f"an idx file of {dimensions}-dimensional unsigned bytes"
    with open_binary(path, expected) as reader:
        magic = reader.take(4).tobytes()
        if magic != bytes((0, 0, UNSIGNED_BYTE, dimensions)):
            raise reader.fail(f"its magic number is 0x{magic.hex()}")
        shape = reader.take(4 * dimensions).view(">u4").astype(object)  # exact, unbounded ints
        data = reader.take(math.prod(shape))
        reader.end()
    return data.reshape(tuple(shape))


def read_mnist_files(images_file: Path, labels_file: Path, name: str, split: str) -> ImageData:
    """One split of MNIST or Fashion-MNIST from its two files."""
    images = read_idx(images_file, 3)
    if images.shape[1:] != (28, 28):
        raise damaged(images_file, "a file of 28x28 images", f"its images are {images.shape[1:]}")
    labels = read_idx(labels_file, 1)
    check_labels(labels_file, labels, 10, len(images))
    if len(images) == 0:
        raise ScaeError(f"File {images_file} holds no images.")
    return ImageData(
        torch.from_numpy(images)[:, None],  # (images, 1, 28, 28)
        torch.from_numpy(labels.astype(np.int64)),
        name,
        split,
        expected=COUNTS[split],
    )
