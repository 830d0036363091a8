"""The readers on the real files: counts, shapes and checksums of decoded pixels."""

import hashlib
from pathlib import Path

import pytest
import torch

from scae.data import load_images

pytestmark = pytest.mark.data

# Sha-256 of the decoded bytes, (images, channels, height, width), of so many images.
PIXELS = {
    ("mnist", "train", 60_000): "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757",
    ("mnist", "test", 10_000): "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161",
    ("svhn", "train", 20_000): "0eecdb86c8282d70aa8081067e8da27e79fcf0c6167728dde1b36615113d5631",
    ("svhn", "test", 10_000): "203769bb50fbcdf07044d7cca27650c3d352f74193d516848792570ef8d30c41",
    (
        "cifar10",
        "train",
        10_000,
    ): "a50e8b48728e1667d682a807155c375279d5ae321fb12242c02e3104a6bc8b21",
    ("cifar10", "test", 10_000): "177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56",
}
# First labels of each file; SVHN's label 10 is digit 0, CIFAR-10 starts with frog and cat.
LABELS = {
    ("mnist", "train"): [5, 0, 4, 1, 9, 2, 1, 3, 1, 4],
    ("mnist", "test"): [7, 2, 1, 0, 4, 1, 4, 9, 5, 9],
    ("svhn", "train"): [1, 9, 2, 3, 2, 5, 9, 3, 3, 1],
    ("cifar10", "train"): [6, 9, 9],
    ("cifar10", "test"): [3, 8, 8],
}


@pytest.mark.parametrize(("name", "split", "count"), PIXELS)
def test_pixels_and_labels(data_dir: Path, name: str, split: str, count: int) -> None:
    data = load_images(name, split, data_dir)
    if name != "svhn" or len(data) == count:  # the whole of SVHN starts otherwise
        found = hashlib.sha256(data.images[:count].numpy().tobytes()).hexdigest()
        assert found == PIXELS[name, split, count]
    first = LABELS.get((name, split), [])
    assert data.labels[: len(first)].tolist() == first
    assert len(torch.bincount(data.labels)) == 10
