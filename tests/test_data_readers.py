"""Readers on tiny files in the original formats: what goes in comes out, bad files are named."""

import gzip
import io
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

import data_files
from data_files import refuse
from scae.config import ImageDataConfig
from scae.data import load_images

HTML = b"<!DOCTYPE html><html><body>404 Not Found</body></html>"
IDX = data_files.idx_bytes(data_files.mnist_arrays(12)[0])
IMAGES, LABELS = "train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz"


def zipped_idx(array: np.ndarray) -> bytes:
    return gzip.compress(data_files.idx_bytes(array))


@pytest.mark.parametrize(("name", "zipped"), [("mnist", True), ("fashion-mnist", False)])
def test_idx(tmp_path: Path, name: str, zipped: bool) -> None:
    data_files.write_mnist(tmp_path, zipped=zipped, name=name)
    data = load_images(name, "train", tmp_path)
    images, labels = data_files.mnist_arrays(12)
    np.testing.assert_array_equal(data.images[:, 0], images)
    np.testing.assert_array_equal(data.labels, labels)
    assert "12 of 60000 images of 28x28x1" in data.summary
    both = load_images(name, "train+test", tmp_path)
    assert len(both) == 18 and both.split == "train+test" and both.published == 70_000
    assert both.fingerprint != data.fingerprint
    assert data.fingerprint == load_images(name, "train", tmp_path).fingerprint


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (IMAGES, b"", "magic number"),
        (IMAGES, HTML, "magic number"),
        (IMAGES, gzip.compress(IDX)[:-20], "an idx file"),
        (IMAGES, gzip.compress(IDX)[:-6] + b"\0\0" + gzip.compress(IDX)[-4:], "CRC"),
        (IMAGES, gzip.compress(IDX[:-1]), "size 9407"),
        (IMAGES, gzip.compress(IDX + b"x"), "size 9409"),
        (IMAGES, zipped_idx(np.arange(12)), "magic number is 0x00000801"),
        (IMAGES, zipped_idx(np.zeros((12, 27, 28))), "(12, 27, 28)"),
        (IMAGES, gzip.compress(IDX[:4] + b"\xff" * 12 + IDX[16:]), "claims the shape"),
        (LABELS, zipped_idx(np.array([3] * 11 + [10])), "from 0 to 9"),
        (LABELS, zipped_idx(np.zeros(11)), "12 labels"),
    ],
    ids=range(11),
)
def test_damaged_idx(tmp_path: Path, file: str, content: bytes, words: str) -> None:
    path = data_files.write_mnist(tmp_path) / file
    path.write_bytes(content)
    refuse(lambda: load_images("mnist", "train", tmp_path), str(path), words)


def test_svhn(tmp_path: Path) -> None:
    images = data_files.write_svhn(tmp_path)
    data = load_images("svhn", "train", tmp_path)
    np.testing.assert_array_equal(data.images.permute(0, 2, 3, 1), images)
    assert data.labels.tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    path = tmp_path / "svhn" / "train_32x32.mat"
    for words, changes in {
        "'X'": {"X": None},
        "(32, 32, 1, 11)": {"X": np.zeros((32, 32, 1, 11), np.uint8)},
        "from 0 to 9": {"y": np.full((11, 1), np.nan)},
        "11 labels": {"y": np.ones((3, 1))},
    }.items():
        data_files.write_svhn(tmp_path, **changes)
        refuse(lambda: load_images("svhn", "train", tmp_path), str(path), words)
    whole = path.read_bytes()
    hdf = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    for content in (b"", HTML, whole[:100], whole[:-30], whole[:-3] + b"\0\0\0", hdf):
        path.write_bytes(content)
        refuse(lambda: load_images("svhn", "train", tmp_path), str(path), "MATLAB file")


def test_affnist(tmp_path: Path) -> None:
    folder = tmp_path / "affnist"
    second = data_files.write_affnist(folder / "test_batches" / "2.mat", seed=2)
    tenth = data_files.write_affnist(folder / "test_batches" / "10.mat", seed=10)
    data = load_images("affnist", "test", tmp_path)
    np.testing.assert_array_equal(data.images[:, 0], np.concatenate([second, tenth]))
    assert data.labels.tolist() == [0, 1, 2, 3, 4, 5, 6] * 2
    path = folder / "training_and_validation.mat"
    for words, changes in {
        "reshape": {"image": np.zeros((1599, 7), np.uint8)},
        "float64": {"image": np.zeros((1600, 7))},
        "0 to 9": {"label_int": np.full(7, 10)},
        "7 labels": {"label_int": np.zeros(3)},
    }.items():
        data_files.write_affnist(path, **changes)
        refuse(lambda: load_images("affnist", "train", tmp_path), str(path), words)
    path.write_bytes(HTML)
    refuse(lambda: load_images("affnist", "train", tmp_path), str(path), "affNISTdata")


def test_cifar10_batches_and_archive(tmp_path: Path) -> None:
    folder = tmp_path / "cifar10"
    folder.mkdir()
    batches = {f"data_batch_{i}.bin": data_files.cifar_bytes(20, i) for i in range(1, 6)}
    first = batches["data_batch_1.bin"]
    (folder / "data_batch_1.bin.gz").write_bytes(gzip.compress(first))
    partial = load_images("cifar10", "train", tmp_path)
    assert "20 of 50000" in partial.summary
    expected = np.frombuffer(first, np.uint8).reshape(-1, 3073)
    np.testing.assert_array_equal(partial.images.flatten(1), expected[:, 1:])
    np.testing.assert_array_equal(partial.labels, expected[:, 0])
    archive = folder / "cifar-10-binary.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        for member, content in reversed(batches.items()):
            info = tarfile.TarInfo(f"cifar-10-batches-bin/{member}")
            info.size = len(content)
            file.addfile(info, io.BytesIO(content))
    whole = load_images("cifar10", "train", tmp_path)
    assert len(whole) == 100 and torch.equal(whole.images[:20], partial.images)
    assert whole.classes[0] == "airplane"
    refuse(lambda: load_images("cifar10", "test", tmp_path), str(archive), "no batches of test")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (data_files.cifar_bytes(3)[:-1], "records of 3073"),
        (b"\x0a" + data_files.cifar_bytes(3)[1:], "0 to 9"),
        (gzip.compress(data_files.cifar_bytes(3))[:-9], "CIFAR-10"),
        (gzip.compress(b"\0" * 60_000_000), "1 to 10000 records"),
    ],
    ids=range(4),
)
def test_bad_cifar10(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "cifar10").mkdir()
    path = tmp_path / "cifar10" / "data_batch_1.bin"
    path.write_bytes(content)
    refuse(lambda: load_images("cifar10", "train", tmp_path), str(path), words)
    archive = path.rename(tmp_path / "cifar10" / "cifar-10-binary.tar.gz")
    refuse(lambda: load_images("cifar10", "train", tmp_path), str(archive))


def test_numpy_files(tmp_path: Path) -> None:
    grey = np.random.default_rng(0).integers(0, 256, (5, 6, 7)).astype(np.uint8)
    np.savez_compressed(tmp_path / "a.npz", images=grey, labels=np.arange(5))
    data = load_images(str(tmp_path / "a.npz"))
    np.testing.assert_array_equal(data.images[:, 0], grey)
    assert data.labels.tolist() == [0, 1, 2, 3, 4] and data.name == str(tmp_path / "a.npz")
    np.save(tmp_path / "b.npy", np.asfortranarray(grey[..., None] / 255.0))
    np.testing.assert_array_equal(load_images(str(tmp_path / "b.npy")).images[:, 0], grey)
    np.savez(tmp_path / "c.npz", x_train=grey, y_train=np.ones((5, 1)), x_test=grey[:2])
    assert load_images(str(tmp_path / "c.npz"), "train").labels.tolist() == [1] * 5
    assert len(load_images(str(tmp_path / "c.npz"), "train+test")) == 7
    refuse(lambda: load_images(str(tmp_path / "c.npz"), "dev"), "c.npz", "x_dev")


def test_damaged_numpy_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, images=np.zeros((50, 40, 40), np.uint8))
    whole, header = path.read_bytes(), io.BytesIO()
    claim = {"descr": "|u1", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, claim)
    for content in (b"", HTML, whole[:-10], b"PK\x03\x04", header.getvalue() + b"abc"):
        path.write_bytes(content)
        refuse(lambda: load_images(str(path)), str(path))
    np.savez(path, other=np.zeros(3))
    refuse(lambda: load_images(str(path)), str(path), "images")
    refuse(lambda: load_images(str(tmp_path / "none.npy")), "none.npy", "No such file")


def test_digits_need_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCAE_DATA", raising=False)
    train, test = load_images("digits", "train"), load_images("digits", "test")
    assert train.images.shape == (1437, 1, 28, 28) and len(test) == 360
    small = load_images(ImageDataConfig(name="digits", size=8), "train+test")
    stored = np.rint(load_digits().images * (255 / 16)).astype(np.uint8)
    np.testing.assert_array_equal(small.images[:, 0], stored)
