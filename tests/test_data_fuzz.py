"""Random damage to every kind of file: our own error or a valid result, in bounded time.

The fast part runs in CI; `pytest -m slow` runs more than 100 000 cases.
"""

import gzip
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import data_files
from scae.data import load_points
from scae.data.affnist import read_affnist
from scae.data.arrays import load_array_images
from scae.data.cifar10 import read_archive, read_batch
from scae.data.folders import read_image
from scae.data.idx import read_idx
from scae.data.mat import read_mat
from scae.data.svhn import read_svhn
from scae.errors import ScaeError

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "idx": ("a-idx3-ubyte", lambda p: read_idx(p, 3)),
    "idx gz": ("a-idx3-ubyte.gz", lambda p: read_idx(p, 3)),
    "mat": ("plain.mat", read_mat),
    "svhn": ("train_32x32.mat", lambda p: read_svhn(p, "train")),
    "affnist": ("test.mat", lambda p: read_affnist([p], "test")),
    "affnist zip": ("test.mat.zip", lambda p: read_affnist([p], "test")),
    "cifar": ("data_batch_1.bin.gz", read_batch),
    "cifar tar": ("cifar-10-binary.tar.gz", lambda p: read_archive(p, ["test_batch.bin"])),
    "npz": ("images.npz", lambda p: load_array_images(p, "train")),
    "npy": ("images.npy", lambda p: load_array_images(p, "train")),
    "png": ("a.png", read_image),
    "jpg": ("a.jpg", read_image),
    "gif": ("a.gif", read_image),
    "csv": ("points.csv", load_points),
    "points": ("points.npz", load_points),
}


def seed_file(kind: str, path: Path) -> bytes:
    """A small valid file of a kind."""
    import tarfile
    import zipfile

    from PIL import Image

    rng = np.random.default_rng(0)
    grey = rng.integers(0, 256, (2, 6, 5)).astype(np.uint8)
    if kind.startswith("idx"):
        data = data_files.idx_bytes(grey)
        path.write_bytes(gzip.compress(data) if kind.endswith("gz") else data)
    elif kind == "mat":
        savemat(path, {"a": np.eye(2), "s": {"b": np.arange(3), "c": "x"}, "o": [[1, "t"]]})
    elif kind == "svhn":
        pixels = rng.integers(0, 256, (32, 32, 3, 2)).astype(np.uint8)
        savemat(path, {"X": pixels, "y": np.ones((2, 1))}, do_compression=True)
    elif kind.startswith("affnist"):
        inner = path.with_suffix("") if kind.endswith("zip") else path
        data_files.write_affnist(inner, 2)
        if kind.endswith("zip"):
            with zipfile.ZipFile(path, "w") as archive:
                archive.write(inner, "test.mat")
    elif kind == "cifar":
        path.write_bytes(gzip.compress(data_files.cifar_bytes(1)))
    elif kind == "cifar tar":
        inner = path.with_name("test_batch.bin")
        inner.write_bytes(data_files.cifar_bytes(1))
        with tarfile.open(path, "w:gz") as tar:
            tar.add(inner, "cifar-10-batches-bin/test_batch.bin")
    elif kind == "npz":
        np.savez_compressed(path, images=grey, labels=np.arange(2))
    elif kind == "npy":
        np.save(path, grey / 255.0)
    elif kind in ("png", "jpg", "gif"):
        Image.fromarray(grey[0]).save(path)
    elif kind == "csv":
        path.write_text("scene,x,y,object\n0,1,2,0\n0,3,1.5,1\n1,-1,2e3,0\n")
    else:
        np.savez(path, points=rng.standard_normal((2, 3, 2)), presence=np.ones((2, 3)))
    return path.read_bytes()


def mutations(seed: bytes, rng: np.random.Generator, count: int) -> Iterator[bytes]:
    """Truncations, flipped bytes, extreme numbers, copied and removed stretches."""
    extremes = [b"\0" * 4, b"\xff" * 4, b"\x7f\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x80\0\0\0"]
    for _ in range(count):
        data = bytearray(seed)
        for _ in range(rng.integers(1, 4)):
            at = int(rng.integers(0, max(len(data), 1)))
            if rng.random() < 0.5:
                at = min(at, int(rng.integers(0, 256)))  # headers matter most
            length = int(rng.integers(1, 32))
            match rng.integers(0, 6):
                case 0:
                    del data[at:]
                case 1:
                    data[at : at + 1] = bytes([rng.integers(0, 256)])
                case 2:
                    data[at : at + 4] = extremes[rng.integers(0, len(extremes))]
                case 3:
                    del data[at : at + length]
                case 4:
                    data[at:at] = data[at : at + length]
                case _:
                    data[at : at + length] = rng.bytes(length)
        yield bytes(data)


def fuzz(kind: str, folder: Path, seed: int, count: int) -> int:
    """Number of damaged files that were still valid; anything but our error is a failure."""
    name, read = READERS[kind]
    path = folder / name
    original = seed_file(kind, path)
    read(path)
    valid = 0
    for data in mutations(original, np.random.default_rng(seed), count):
        path.write_bytes(data)
        try:
            read(path)
            valid += 1
        except ScaeError as error:
            assert "\n" not in str(error) and name in str(error)
    return valid


@pytest.mark.parametrize("kind", READERS)
def test_damaged_files_give_our_error(kind: str, tmp_path: Path) -> None:
    assert fuzz(kind, tmp_path, seed=1, count=150) < 150


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_many_damaged_files_give_our_error(kind: str, tmp_path: Path) -> None:
    fuzz(kind, tmp_path, seed=2, count=7_000)
