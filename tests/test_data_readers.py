"""Readers on tiny files in the original formats: what goes in comes out, bad files are named."""

import gzip
import io
import struct
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
    assert data.summary == f"{name} train: 12 images of 28x28x1, 10 classes"
    both = load_images(name, "train+test", tmp_path)
    assert len(both) == 18 and both.split == "train+test"
    assert both.fingerprint != data.fingerprint
    assert data.fingerprint == load_images(name, "train", tmp_path).fingerprint


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (IMAGES, b"<html>404 Not Found</html>", "magic number"),
        (IMAGES, gzip.compress(IDX)[:-20], "an idx file"),
        (IMAGES, gzip.compress(IDX + b"x"), "reshape"),
        (IMAGES, zipped_idx(np.zeros((12, 27, 28))), "(12, 27, 28)"),
        (LABELS, zipped_idx(np.array([3] * 11 + [10])), "from 0 to 9"),
        (LABELS, zipped_idx(np.zeros(11)), "12 labels"),
    ],
    ids=range(6),
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
    data_files.write_svhn(tmp_path, zipped=False)
    whole = path.read_bytes()
    at = whole.index(struct.pack("<2I", 2, 11 * 3072))  # the bytes of X
    for kind in (0, 8, 14, 15, 255):  # of which scipy's own reader ends the process
        path.write_bytes(whole[:at] + bytes([kind]) + whole[at + 1 :])
        refuse(lambda: load_images("svhn", "train", tmp_path), str(path), "kind")
    hdf = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
    for content in (b"", path.read_bytes()[:-30], hdf):
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
    }.items():
        data_files.write_affnist(path, **changes)
        refuse(lambda: load_images("affnist", "train", tmp_path), str(path), words)


def test_cifar10_batches_and_archive(tmp_path: Path) -> None:
    folder = tmp_path / "cifar10"
    folder.mkdir()
    batches = {f"data_batch_{i}.bin": data_files.cifar_bytes(20, i) for i in range(1, 6)}
    first = batches["data_batch_1.bin"]
    (folder / "data_batch_1.bin.gz").write_bytes(gzip.compress(first))
    partial = load_images("cifar10", "train", tmp_path)
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
    archive.unlink()
    for content in (first[:-1], b"\x0a" + first[1:], gzip.compress(first)[:-9]):
        (path := folder / "data_batch_1.bin").write_bytes(content)
        refuse(lambda: load_images("cifar10", "train", tmp_path), str(path))


def test_numpy_files(tmp_path: Path) -> None:
    grey = np.random.default_rng(0).integers(0, 256, (5, 6, 7)).astype(np.uint8)
    a, b, c = (tmp_path / name for name in ("a.npz", "b.npy", "c.npz"))
    np.savez_compressed(a, images=grey, labels=np.arange(5))
    data = load_images(str(a))
    np.testing.assert_array_equal(data.images[:, 0], grey)
    assert data.labels.tolist() == [0, 1, 2, 3, 4] and data.name == str(a)
    np.save(b, np.asfortranarray(grey[..., None] / 255.0))
    np.testing.assert_array_equal(load_images(str(b)).images[:, 0], grey)
    np.savez(c, x_train=grey, y_train=np.ones((5, 1)), x_test=grey[:2])
    with pytest.warns(UserWarning, match="one label"):  # which cannot be scored
        assert load_images(str(c), "train").labels is None
    assert len(load_images(str(c), "train+test")) == 7
    refuse(lambda: load_images(str(c), "dev"), "c.npz", "x_dev")
    header = io.BytesIO()
    claim = {"descr": "|u1", "fortran_order": False, "shape": (10**15,)}
    np.lib.format.write_array_header_1_0(header, claim)
    a.write_bytes(header.getvalue() + b"abc")
    refuse(lambda: load_images(str(a)), str(a))
    refuse(lambda: load_images(str(tmp_path / "none.npy")), "none.npy", "No such file")


def test_digits_need_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SCAE_DATA", raising=False)
    train, test = load_images("digits", "train"), load_images("digits", "test")
    assert train.images.shape == (1437, 1, 28, 28) and len(test) == 360
    small = load_images(ImageDataConfig(name="digits", size=8), "train+test")
    stored = np.rint(load_digits().images * (255 / 16)).astype(np.uint8)
    np.testing.assert_array_equal(small.images[:, 0], stored)
