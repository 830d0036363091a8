"""Reading a file takes at most twice the memory that the file declares.

Declared is what a header says the contents are: the elements of an array, the pixels of an image
as Pillow holds them (4 bytes in colour, 1 in grey). A CSV file declares nothing; its own size
stands in. Damaged files that claim more than they hold are in test_data_bad_input.
"""

import ctypes
import gc
import gzip
import tarfile
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch
from PIL import Image
from scipy.io import savemat

import data_files
from process_watch import HAS_PROC, forget_peak, largest_memory_mb
from scae.data import load_points
from scae.data.affnist import read_affnist
from scae.data.arrays import load_array_images
from scae.data.cifar10 import read_archive, read_batch
from scae.data.folders import load_folder, read_image
from scae.data.idx import read_idx
from scae.data.svhn import read_svhn
from scae.weights_file import read_tensors

SIZE = 8_000_000
SLACK_MB = 4.0
"""Buffers of the decoders and pieces read at a time, whatever the size."""
RNG = np.random.default_rng(0)
BYTES = RNG.integers(0, 256, SIZE).astype(np.uint8)
GREY, COLOUR = BYTES.reshape(-1, 20, 20), BYTES[:7_999_200].reshape(-1, 20, 20, 3)


def square(channels: int) -> np.ndarray:
    side = int((SIZE / max(channels, 1)) ** 0.5)
    shape = (side, side) if channels == 1 else (side, side, channels)
    return BYTES[: int(np.prod(shape))].reshape(shape)


def write_tar(path: Path) -> int:
    batch = path.with_name("test_batch.bin")
    batch.write_bytes(data_files.cifar_bytes(2600))
    with tarfile.open(path, "w:gz", compresslevel=1) as tar:
        tar.add(batch, "cifar-10-batches-bin/test_batch.bin")
    return 2600 * 3073


def write_affnist(path: Path) -> int:
    count = SIZE // 1600
    pixels = BYTES[: count * 1600].reshape(1600, count)
    target = path.with_name("test.mat")
    savemat(target, {"affNISTdata": {"image": pixels, "label_int": np.zeros((1, count))}})
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            archive.write(target, "test.mat")
    return pixels.nbytes


def write_svhn(path: Path, compressed: bool) -> int:
    count = SIZE // 3072
    pixels = BYTES[: count * 3072].reshape(32, 32, 3, count)
    savemat(path, {"X": pixels, "y": np.ones((count, 1))}, do_compression=compressed)
    return pixels.nbytes


def write_array(path: Path, array: np.ndarray) -> int:
    if path.suffix == ".npz":
        np.savez_compressed(path, images=array)
    else:
        np.save(path, array)
    return array.nbytes


def write_idx(path: Path) -> int:
    data = data_files.idx_bytes(BYTES[: SIZE // 784 * 784].reshape(-1, 28, 28))
    path.write_bytes(gzip.compress(data, 1) if path.suffix == ".gz" else data)
    return len(data)


def write_cifar(path: Path) -> int:
    data = data_files.cifar_bytes(2600)
    path.write_bytes(gzip.compress(data, 1))
    return len(data)


def write_points(path: Path) -> int:
    points = RNG.standard_normal((SIZE // 240, 10, 2))
    np.savez(path, points=points, presence=np.ones(points.shape[:2]))
    return points.nbytes * 3 // 2


def write_tensors(path: Path) -> int:
    safetensors.torch.save_file({"a": torch.zeros(SIZE // 4)}, path)
    return SIZE


def images(path: Path) -> object:
    return load_array_images(path, "train")


ARRAYS: dict[str, tuple[str, Callable[[Path], int], Callable[[Path], object]]] = {
    "idx": ("a-idx3-ubyte", write_idx, lambda p: read_idx(p, 3)),
    "idx gz": ("a-idx3-ubyte.gz", write_idx, lambda p: read_idx(p, 3)),
    "npz": ("a.npz", lambda p: write_array(p, GREY), images),
    "colour last": ("b.npy", lambda p: write_array(p, COLOUR), images),
    "float64": ("c.npy", lambda p: write_array(p, RNG.random((SIZE // 3200, 20, 20))), images),
    "float32": ("d.npy", lambda p: write_array(p, (GREY[:5000] / 255).astype("f4")), images),
    "int64": ("e.npy", lambda p: write_array(p, GREY[:2500].astype(np.int64)), images),
    "svhn": ("a.mat", lambda p: write_svhn(p, False), lambda p: read_svhn(p, "train")),
    "svhn packed": ("a.mat", lambda p: write_svhn(p, True), lambda p: read_svhn(p, "train")),
    "affnist": ("test.mat", write_affnist, lambda p: read_affnist([p], "test")),
    "affnist zip": ("test.mat.zip", write_affnist, lambda p: read_affnist([p], "test")),
    "cifar": ("data_batch_1.bin.gz", write_cifar, read_batch),
    "cifar tar": ("a.tar.gz", write_tar, lambda p: read_archive(p, ["test_batch.bin"])),
    "points": ("points.npz", write_points, load_points),
    "safetensors": ("w.safetensors", write_tensors, read_tensors),
}  # fmt: skip


@pytest.mark.parametrize("kind", ARRAYS)
def test_arrays(kind: str, tmp_path: Path) -> None:
    name, write, read = ARRAYS[kind]
    declared = write(tmp_path / name)
    read(tmp_path / name)
    tracemalloc.start()
    try:
        read(tmp_path / name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak / 1e6 <= 2 * declared / 1e6 + SLACK_MB, f"{peak / declared:.2f} times"


def resident_growth_mb(read: Callable[[], object]) -> float:
    """How far the resident memory rises above where it was; Pillow's is seen by nothing else."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    forget_peak()
    before = largest_memory_mb()
    read()
    return largest_memory_mb() - before


@pytest.mark.skipif(not HAS_PROC, reason="measures memory through /proc")
@pytest.mark.parametrize(
    ("mode", "suffix"),
    [
        *((mode, "png") for mode in ("L", "1", "P", "RGB", "RGBA", "LA")),
        ("L", "jpg"),
        ("RGB", "jpg"),
    ],
)
def test_images(mode: str, suffix: str, tmp_path: Path) -> None:
    channels = {"RGB": 3, "RGBA": 4, "LA": 2}.get(mode, 1)
    picture = Image.fromarray(
        square(1 if mode in "1P" else channels), mode if channels == 2 else None
    )
    path = tmp_path / f"a.{suffix}"
    picture.convert(mode).save(path)
    held = 1 if mode in ("L", "1") else 4
    declared = picture.width * picture.height * held
    read_image(path)
    # Pages of other work that come back meanwhile only add, so the least of some counts.
    growth = min(resident_growth_mb(lambda: read_image(path)) for _ in range(3))
    assert growth <= 2 * declared / 1e6 + SLACK_MB


@pytest.mark.skipif(not HAS_PROC, reason="measures memory through /proc")
def test_a_folder_holds_one_image_more_than_it_returns(tmp_path: Path) -> None:
    for i in range(100):
        Image.fromarray(BYTES[60_000 * i % 7_000_000 :][: 160 * 160 * 3].reshape(160, 160, 3)).save(
            tmp_path / f"{i:03}.png", compress_level=1
        )
    load_folder(tmp_path, "train")
    declared = 100 * 160 * 160 * 3
    assert (
        resident_growth_mb(lambda: load_folder(tmp_path, "train"))
        <= 1.2 * declared / 1e6 + SLACK_MB
    )


def test_tables_take_a_small_multiple_of_their_size(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    rows = (f"{i // 10},{i % 97 / 7:.6f},{i % 89 / 3:.6f}\n" for i in range(60_000))
    path.write_text("scene,x,y\n" + "".join(rows))
    tracemalloc.start()
    try:
        load_points(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 8 * path.stat().st_size
