"""The readers on the real files: counts, shapes and checksums of decoded pixels."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import torch

from scae.data import dataset_status, load_images

pytestmark = pytest.mark.data

# Sha-256 of the decoded bytes, (images, channels, height, width).
MNIST_TRAIN = "741c988805d008ac6e4c904b69001ba184c24b2c540a4ef403f4c71b676cf757"
MNIST_TEST = "6d87418db22cc8025d05968bec9bd5c3932904b23485740db143a061a2c9d161"
SVHN_TRAIN = "0eecdb86c8282d70aa8081067e8da27e79fcf0c6167728dde1b36615113d5631"
SVHN_TEST = "203769bb50fbcdf07044d7cca27650c3d352f74193d516848792570ef8d30c41"
CIFAR_TRAIN = "a50e8b48728e1667d682a807155c375279d5ae321fb12242c02e3104a6bc8b21"
CIFAR_TEST = "177777c33ba79825320efa646ad04a94bdc3c80e4ebe3bd21724f8cdfd4b9d56"


def pixels_sha(images: torch.Tensor) -> str:
    return hashlib.sha256(images.numpy().tobytes()).hexdigest()


def test_mnist(data_dir: Path) -> None:
    train, test = load_images("mnist", "train", data_dir), load_images("mnist", "test", data_dir)
    assert train.images.shape == (60_000, 1, 28, 28) and test.images.shape == (10_000, 1, 28, 28)
    # The mean and standard deviation everyone normalises MNIST with.
    grey = train.images.numpy()
    mean, square = grey.mean() / 255, (np.bincount(grey.ravel()) @ np.arange(256) ** 2) / grey.size
    assert mean == pytest.approx(0.1307, abs=5e-5)
    assert (square / 255**2 - mean**2) ** 0.5 == pytest.approx(0.3081, abs=5e-5)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert torch.bincount(train.labels).tolist() == counts
    assert train.labels[:10].tolist() == [5, 0, 4, 1, 9, 2, 1, 3, 1, 4]
    assert test.labels[:10].tolist() == [7, 2, 1, 0, 4, 1, 4, 9, 5, 9]
    assert pixels_sha(train.images) == MNIST_TRAIN
    assert pixels_sha(test.images) == MNIST_TEST


def test_svhn(data_dir: Path) -> None:
    train, test = load_images("svhn", "train", data_dir), load_images("svhn", "test", data_dir)
    assert train.images.shape[1:] == test.images.shape[1:] == (3, 32, 32)
    assert train.labels[:10].tolist() == [1, 9, 2, 3, 2, 5, 9, 3, 3, 1]  # first labels of SVHN
    # Digit 1 is the most frequent and 0 is present, so label 10 was mapped.
    counts = torch.bincount(train.labels)
    assert len(counts) == 10 and counts.argmax() == 1 and counts[0] > 0
    assert train.floats(0, 2000).mean() == pytest.approx(0.45, abs=0.05)
    if len(train) == 20_000:
        assert pixels_sha(train.images) == SVHN_TRAIN
        assert pixels_sha(test.images) == SVHN_TEST


def test_cifar10(data_dir: Path) -> None:
    train, test = (load_images("cifar10", split, data_dir) for split in ("train", "test"))
    assert train.images.shape[1:] == (3, 32, 32) and len(test) == 10_000
    # First labels of data_batch_1 and test_batch: frog, truck, truck; cat, ship, ship.
    assert [train.classes[i] for i in train.labels[:3]] == ["frog", "truck", "truck"]
    assert [test.classes[i] for i in test.labels[:3]] == ["cat", "ship", "ship"]
    assert torch.bincount(test.labels).tolist() == [1000] * 10
    assert train.images[0, :, 0, 0].tolist() == [59, 62, 63]  # known first pixel
    assert pixels_sha(train.images[:10_000]) == CIFAR_TRAIN
    assert pixels_sha(test.images) == CIFAR_TEST


def test_check_knows_published_files(data_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "mnist").symlink_to(data_dir / "mnist")
    found = {(s.name, s.split): s for s in dataset_status(tmp_path, read=True)}
    assert found["mnist", "test"].state == "complete"  # all checksums as published
    assert found["mnist", "train"].state in ("complete", "unofficial")  # gzipped anew or not
    assert found["mnist", "train"].images == 60_000
    assert found["svhn", "train"].state == "missing"
