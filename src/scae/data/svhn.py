"""Street View House Numbers, cropped digits: `train_32x32.mat`, `test_32x32.mat`, `extra`."""

from pathlib import Path

import numpy as np
import torch

from scae.data.files import check_labels, damaged
from scae.data.interface import ImageData
from scae.data.mat import read_mat
from scae.errors import ScaeError

COUNTS = {"train": 73_257, "test": 26_032, "extra": 531_131}
FILES = {split: f"{split}_32x32.mat" for split in COUNTS}


def read_svhn(path: Path, split: str) -> ImageData:
    """Images `X` (32 x 32 x 3 x N) and labels `y`, where the files call digit 0 "10"."""
    variables = read_mat(path)
    pixels, labels = variables.get("X"), variables.get("y")
    expected = "an SVHN file of cropped digits"
    if not isinstance(pixels, np.ndarray) or not isinstance(labels, np.ndarray):
        raise damaged(path, expected, "it lacks the arrays X and y")
    if pixels.ndim == 3:  # MATLAB drops the last dimension of a single image
        pixels = pixels[..., None]
    if pixels.shape[:3] != (32, 32, 3) or pixels.ndim != 4 or pixels.dtype != np.uint8:
        raise damaged(path, expected, f"X is {pixels.dtype} of shape {pixels.shape}")
    count = pixels.shape[3]
    if count == 0:
        raise ScaeError(f"File {path} holds no images.")
    digits = labels.reshape(-1)
    if not np.array_equal(digits, np.floor(digits)):
        raise damaged(path, expected, "y holds numbers that are not whole")
    if (digits == 0).any():
        raise ScaeError(f"File {path} has a label 0; SVHN writes digit 0 as label 10.")
    classes = np.where(digits == 10, 0, digits)
    check_labels(path, classes, 10, count)
    # (height, width, channel, image) to (image, channel, height, width)
    images = np.ascontiguousarray(pixels.transpose(3, 2, 0, 1))
    return ImageData(
        torch.from_numpy(images),
        torch.from_numpy(classes.astype(np.int64)),
        "svhn",
        split,
        expected=COUNTS[split],
    )
