"""Scikit-learn's bundled handwritten digits: the data set that needs no download."""

import torch
from torch import Tensor

from scae.data.interface import ImageData
from scae.data.transforms import resize
from scae.errors import ScaeError

TRAIN = 1437
"""The first 1437 of the 1797 images train, the last 360 (20 %) test, in the stored order."""
DIGITS_SIZE = 28


def load_digits(split: str, size: int = DIGITS_SIZE) -> ImageData:
    """The 8x8 digits, enlarged to `size` pixels by bicubic interpolation."""
    from sklearn import datasets

    bunch = datasets.load_digits()
    grey: Tensor = torch.from_numpy(bunch.images).mul(255 / 16).round()  # stored as 0 to 16
    rows = {"train": slice(None, TRAIN), "test": slice(TRAIN, None)}.get(split)
    if rows is None:
        raise ScaeError(f"Data 'digits' has splits train and test, not {split!r}.")
    images = grey[rows, None].to(torch.uint8)  # (images, 1, 8, 8)
    labels = torch.from_numpy(bunch.target[rows]).long()
    return ImageData(resize(images, size), labels, "digits", split)
