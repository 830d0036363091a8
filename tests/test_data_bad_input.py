"""Damaged, mislabelled and hostile files: one sentence with the file's name, nothing else."""

import gzip
import io
import pickle
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.io import savemat

import data_files
from scae.config import ConstellationDataConfig, ImageDataConfig
from scae.data import from_arrays, image_source, load_images, load_points
from scae.data.arrays import read_arrays
from scae.data.mat import read_mat
from scae.errors import ScaeError

TRAIN_IMAGES = "train-images-idx3-ubyte.gz"
TRAIN_LABELS = "train-labels-idx1-ubyte.gz"
HTML = b"<!DOCTYPE html><html><body>404 Not Found</body></html>"


def refuse(call: Callable[[], object], *words: str) -> str:
    """The one sentence of the error, which has to contain the given words."""
    with pytest.raises(ScaeError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message and message.endswith(".")
    for word in words:
        assert word in message, message
    return message


def images_of(array: np.ndarray) -> bytes:
    return gzip.compress(data_files.idx_bytes(array))


GOOD = data_files.idx_bytes(data_files.mnist_arrays(12)[0])
DAMAGED_IDX = {
    "empty": (b"", "empty"),
    "html": (HTML, "web page"),
    "not gzip": (GOOD, "not gzipped"),
    "truncated gzip": (gzip.compress(GOOD)[:-20], "not an idx file"),
    "flipped bits": (gzip.compress(GOOD)[:-6] + b"\0\0" + gzip.compress(GOOD)[-4:], "CRC"),
    "short": (gzip.compress(GOOD[:-1]), "ends after 9407 of 9408 bytes"),
    "long": (gzip.compress(GOOD + b"x"), "longer"),
    "labels as images": (images_of(np.arange(12)), "magic number is 0x00000801"),
    "wrong size": (images_of(np.zeros((12, 27, 28))), "(27, 28)"),
    "no images": (images_of(np.zeros((0, 28, 28))), ""),
    "huge header": (gzip.compress(GOOD[:4] + b"\xff" * 12 + GOOD[16:]), "more than the file"),
    "bomb": (gzip.compress(GOOD + b"\0" * 50_000_000), "longer"),
    "header only": (gzip.compress(GOOD[:6]), "ends after 2 of 12 bytes"),
}


@pytest.mark.parametrize("case", DAMAGED_IDX)
def test_damaged_idx(tmp_path: Path, case: str) -> None:
    folder = data_files.write_mnist(tmp_path)
    data, words = DAMAGED_IDX[case]
    (folder / TRAIN_IMAGES).write_bytes(data)
    tracemalloc.start()
    refuse(lambda: load_images("mnist", "train", tmp_path), str(folder / "train-"), words)
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()


def test_labels_out_of_range_or_of_another_number(tmp_path: Path) -> None:
    folder = data_files.write_mnist(tmp_path)
    path = folder / TRAIN_LABELS
    path.write_bytes(images_of(np.array([3] * 11 + [10])))
    refuse(lambda: load_images("mnist", "train", tmp_path), str(path), "label 10", "0 to 9")
    path.write_bytes(images_of(np.zeros(11)))
    refuse(lambda: load_images("mnist", "train", tmp_path), str(path), "11 labels for 12 images")


def test_missing_files_say_where_to_get_and_put_them(tmp_path: Path) -> None:
    for name, words in {
        "mnist": (TRAIN_IMAGES, "https://"),
        "fashion-mnist": (TRAIN_LABELS, "https://"),
        "svhn": ("train_32x32.mat", "https://ufldl"),
        "cifar10": ("data_batch_1.bin", "cifar-10-binary.tar.gz", "https://"),
        "affnist": ("training_and_validation_batches.zip", "https://"),
        "mnist40": (TRAIN_IMAGES,),
        "affnist-style": (TRAIN_IMAGES,),
    }.items():
        refuse(lambda n=name: load_images(n, "train", tmp_path), str(tmp_path), *words)
    refuse(lambda: load_images("mnist", "train", tmp_path / "no"), "does not exist")
    refuse(lambda: load_images("mnist", "dev", tmp_path), "'dev'", "train, test")
    refuse(lambda: load_images("mnist", "train+train", tmp_path), "train+train")
    refuse(lambda: load_images("imagenet", "train"), "imagenet", "mnist40")
    refuse(lambda: load_images("digits", "dev"), "'dev'")


def write_svhn(path: Path, **changes: np.ndarray) -> None:
    good = {"X": np.zeros((32, 32, 3, 4), np.uint8), "y": np.ones((4, 1))}
    savemat(path, {k: v for k, v in (good | changes).items() if v is not None})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"X": None}, "lacks"),
        ({"X": np.zeros((32, 32, 1, 4), np.uint8)}, "(32, 32, 1, 4)"),
        ({"X": np.zeros((32, 32, 3, 4))}, "float64"),
        ({"X": {"a": 1}}, "lacks"),
        ({"y": np.full((4, 1), 11)}, "label 11"),
        ({"y": np.full((4, 1), 0)}, "label 0"),
        ({"y": np.full((4, 1), 1.5)}, "not whole"),
        ({"y": np.full((4, 1), np.nan)}, "not whole"),
        ({"y": np.ones((3, 1))}, "3 labels for 4 images"),
        ({"X": np.zeros((32, 32, 3, 0), np.uint8), "y": np.ones((0, 1))}, ""),
    ],
)
def test_bad_svhn(tmp_path: Path, changes: dict, words: str) -> None:
    path = tmp_path / "svhn" / "train_32x32.mat"
    path.parent.mkdir()
    write_svhn(path, **changes)
    refuse(lambda: load_images("svhn", "train", tmp_path), str(path), words)


def test_damaged_mat(tmp_path: Path) -> None:
    path = tmp_path / "a.mat"
    savemat(path, {"X": np.arange(5000.0)}, do_compression=True)
    whole = path.read_bytes()
    bomb = zlib.compress(struct.pack("<II", 14, 8) + b"\0" * 30_000_000)
    lying = zlib.compress(struct.pack("<II", 14, 0xFFFFFFF0) + b"\0" * 64)
    for data, words in {
        b"": "empty",
        HTML: "web page",
        whole[:100]: "shorter than its header",
        whole[:-30]: "ends inside an element",
        whole[:-3] + b"\0\0\0": "not a MATLAB",
        whole[:126] + b"xx" + whole[128:]: "byte-order",
        b"\x89HDF" + whole[4:126] + b"\0\0": "7.3",
        whole[:128] + struct.pack("<II", 15, len(bomb)) + bomb: "too long",
        whole[:128] + struct.pack("<II", 15, len(lying)) + lying: "more than it can hold",
    }.items():
        path.write_bytes(data)
        tracemalloc.start()
        refuse(lambda: read_mat(path), str(path), words)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
        tracemalloc.stop()
    refuse(lambda: read_mat(tmp_path / "none.mat"), "none.mat", "does not exist")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (data_files.cifar_bytes(3)[:-1], "whole number"),
        (b"\x0a" + data_files.cifar_bytes(3)[1:], "label 10"),
        (HTML, "web page"),
        (b"", "empty"),
        (gzip.compress(data_files.cifar_bytes(3))[:-9], "not a CIFAR-10"),
        (gzip.compress(b"\0" * 60_000_000), "longer"),
    ],
)
def test_bad_cifar_batches(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "cifar10" / "data_batch_1.bin"
    path.parent.mkdir()
    path.write_bytes(data)
    refuse(lambda: load_images("cifar10", "train", tmp_path), str(path), words)


@pytest.mark.parametrize("name", ["../evil.bin", "/etc/evil.bin", "a/../../evil.bin"])
def test_escaping_archives_are_refused(tmp_path: Path, name: str) -> None:
    data = data_files.cifar_bytes(2)
    (tmp_path / "cifar10").mkdir()
    path = tmp_path / "cifar10" / "cifar-10-binary.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for member in (name, "cifar-10-batches-bin/test_batch.bin"):
            info = tarfile.TarInfo(member)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    refuse(lambda: load_images("cifar10", "test", tmp_path), str(path), "outside")
    (tmp_path / "affnist").mkdir()
    zipped = tmp_path / "affnist" / "test.mat.zip"
    with zipfile.ZipFile(zipped, "w") as bundle:
        bundle.writestr(name, b"x")
    refuse(lambda: load_images("affnist", "test", tmp_path), str(zipped), "outside")
    assert not list(tmp_path.rglob("evil*")) and not (tmp_path.parent / "evil.bin").exists()


def test_archives_that_are_no_archives(tmp_path: Path) -> None:
    for place in ("cifar10/cifar-10-binary.tar.gz", "affnist/test.mat.zip"):
        path = tmp_path / place
        path.parent.mkdir()
        for data in (b"", HTML, b"\x1f\x8b junk", b"PK junk", gzip.compress(b"a" * 2000)):
            path.write_bytes(data)
            refuse(lambda p=place: load_images(p.split("/")[0], "test", tmp_path), str(path))
    link = tarfile.TarInfo("cifar-10-batches-bin/test_batch.bin")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with tarfile.open(tmp_path / "cifar10/cifar-10-binary.tar.gz", "w:gz") as archive:
        archive.addfile(link)
    refuse(lambda: load_images("cifar10", "test", tmp_path), "lacks test_batch.bin")


def test_bad_affnist(tmp_path: Path) -> None:
    path = tmp_path / "affnist" / "test.mat"
    path.parent.mkdir()
    for fields, words in (
        ({"image": np.zeros((1599, 2), np.uint8), "label_int": np.zeros(2)}, "(1599, 2)"),
        ({"image": np.zeros((1600, 2), np.uint8)}, "label_int"),
        ({"image": np.zeros((1600, 2), np.uint8), "label_int": np.full(2, 10)}, "label 10"),
        ({"image": np.zeros((1600, 2), np.uint8), "label_int": np.zeros(3)}, "3 labels"),
    ):
        savemat(path, {"affNISTdata": fields})
        refuse(lambda: load_images("affnist", "test", tmp_path), str(path), words)
    savemat(path, {"other": np.eye(2)})
    refuse(lambda: load_images("affnist", "test", tmp_path), str(path), "affNISTdata")


def test_mixed_sizes_and_modes_in_a_folder(tmp_path: Path) -> None:
    data_files.write_image(tmp_path / "a.png", (9, 7))
    data_files.write_image(tmp_path / "b.png", (9, 8))
    words = (str(tmp_path / "b.png"), "size", "9x8", "--data.size")
    refuse(lambda: load_images(str(tmp_path)), *words)
    data_files.write_image(tmp_path / "b.png", (9, 7), "L")
    refuse(lambda: load_images(str(tmp_path)), str(tmp_path / "b.png"), "mode", "grey", "RGB")
    Image.new("I;16", (9, 7)).save(tmp_path / "b.png")
    refuse(lambda: load_images(str(tmp_path)), str(tmp_path / "b.png"), "mode I;16")


def test_bad_images_in_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    data_files.write_image(path, (40, 40))
    whole = path.read_bytes()
    for data in (b"", HTML, whole[: len(whole) // 2], whole[:60] + b"\0\0\0\0" + whole[64:]):
        path.write_bytes(data)
        refuse(lambda: load_images(str(tmp_path)), str(path), "cannot be read")
    # A header that claims 9 000 x 9 000 pixels, with hardly any data.
    chunks = ((b"IHDR", struct.pack(">IIBBBBB", 9_000, 9_000, 8, 0, 0, 0, 0)), (b"IDAT", b""))
    bomb = b"\x89PNG\r\n\x1a\n"
    for kind, data in chunks:
        bomb += struct.pack(">I", len(data)) + kind + data
        bomb += struct.pack(">I", zlib.crc32(kind + data))
    path.write_bytes(bomb)
    refuse(lambda: load_images(str(tmp_path)), str(path), "9000x9000")
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n")
    refuse(lambda: load_images(str(tmp_path)), str(path), "cannot be read")
    path.unlink()
    refuse(lambda: load_images(str(tmp_path)), str(tmp_path), "no images")
    refuse(lambda: load_images(str(tmp_path / "none")), "none")


def test_links_out_of_a_folder_are_refused(tmp_path: Path) -> None:
    data_files.write_image(tmp_path / "outside" / "secret.png")
    folder = tmp_path / "folder"
    data_files.write_image(folder / "a.png")
    (folder / "b.png").symlink_to(folder / "a.png")
    assert len(load_images(str(folder))) == 2  # a link that stays inside is fine
    (folder / "c.png").symlink_to(tmp_path / "outside" / "secret.png")
    refuse(lambda: load_images(str(folder)), str(folder / "c.png"), "leads out")
    (folder / "c.png").unlink()
    (folder / "a.png").unlink()
    (folder / "b.png").unlink()
    (folder / "class").symlink_to(tmp_path / "outside")
    refuse(lambda: load_images(str(folder)), str(folder / "class"), "leads out")


def test_images_beside_class_folders_are_refused(tmp_path: Path) -> None:
    data_files.write_image(tmp_path / "a.png")
    data_files.write_image(tmp_path / "class" / "b.png")
    refuse(lambda: load_images(str(tmp_path)), str(tmp_path), "class")


def test_one_class_loads_and_small_data_cannot_fill_a_batch(tmp_path: Path) -> None:
    for i in range(3):
        data_files.write_image(tmp_path / "only" / f"{i}.png", seed=i)
    data = load_images(str(tmp_path))
    assert data.labels.tolist() == [0, 0, 0] and "1 classes" in data.summary
    source = image_source(ImageDataConfig(name=str(tmp_path)))
    refuse(lambda: source.batch(0, 4), str(tmp_path), "3 examples", "batch of 4")


class Evil:
    """Creates a file when unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = str(marker)

    def __reduce__(self) -> tuple:
        return (open, (self.marker, "w"))


def test_pickles_and_object_arrays_are_never_loaded(tmp_path: Path) -> None:
    marker = tmp_path / "unpickled"
    objects = np.array([Evil(marker)], dtype=object)
    np.savez(tmp_path / "a.npz", images=objects)
    np.save(tmp_path / "b.npy", objects, allow_pickle=True)
    (tmp_path / "c.npy").write_bytes(pickle.dumps(Evil(marker)))
    (tmp_path / "d.npz").write_bytes(pickle.dumps(Evil(marker)))
    for name in ("a.npz", "b.npy", "c.npy", "d.npz"):
        refuse(lambda n=name: load_images(str(tmp_path / n)), str(tmp_path / name))
        refuse(lambda n=name: read_arrays(tmp_path / n), str(tmp_path / name))
    assert not marker.exists()


def test_damaged_and_lying_numpy_files(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    np.savez_compressed(path, images=np.zeros((50, 40, 40), np.uint8))
    whole = path.read_bytes()
    for data in (b"", HTML, whole[:-10], whole[: len(whole) // 2], b"PK\x03\x04"):
        path.write_bytes(data)
        refuse(lambda: load_images(str(path)), str(path))
    header = {"descr": "|u1", "fortran_order": False, "shape": (10**15,)}
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, header)
    (tmp_path / "b.npy").write_bytes(buffer.getvalue() + b"abc")
    refuse(lambda: load_images(str(tmp_path / "b.npy")), "b.npy", "does not match its 3 bytes")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("images.npy", buffer.getvalue() + b"\0" * 30_000_000)
    tracemalloc.start()
    refuse(lambda: load_images(str(path)), str(path), "does not match")
    assert tracemalloc.get_traced_memory()[1] < 2_000_000
    tracemalloc.stop()
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../escape.npy", b"x")
    refuse(lambda: load_images(str(path)), str(path), "outside")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("code.py", b"x")
    refuse(lambda: load_images(str(path)), str(path), "no array")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("images.npy", b"x" * 100)
    refuse(lambda: load_images(str(path)), str(path), "unusual")
    np.savez(path, other=np.zeros(3))
    refuse(lambda: load_images(str(path)), str(path), "images")


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.full((2, 4, 4), np.nan), "NaN"),
        (np.full((2, 4, 4), np.inf), "infinite"),
        (np.full((2, 4, 4), 1.5), "1.5"),
        (np.full((2, 4, 4), -0.1), "-0.1"),
        (np.full((2, 4, 4), 256), "256"),
        (np.zeros((2, 4)), "(2, 4)"),
        (np.zeros((2, 4, 4, 2)), "(2, 4, 4, 2)"),
        (np.zeros((0, 4, 4)), "no images"),
        (np.full((2, 4, 4), "a"), "expected numbers"),
        (np.zeros((2, 4, 4), complex), "complex"),
    ],
)
def test_bad_pixels(images: np.ndarray, words: str) -> None:
    refuse(lambda: from_arrays(images, name="mine.npz"), "mine.npz", words)


@pytest.mark.parametrize(
    "labels", [np.arange(3), np.array([0.5, 1]), np.array([-1, 0]), np.array([[0, 1], [1, 0]])]
)
def test_bad_labels(labels: np.ndarray) -> None:
    refuse(lambda: from_arrays(np.zeros((2, 4, 4)), labels, "mine.npz"), "mine.npz", "labels")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "scene,x,y"),
        ("<html><body>no</body></html>", "scene,x,y"),
        ("x,y\n1,2\n", "scene,x,y"),
        ("scene,x,y\n", "no points"),
        ("scene,x,y\n1,2\n", "line 2"),
        ("scene,x,y\n1,2,3\n1,2,3,4\n", "line 3"),
        ("scene,x,y\n1,2,three\n", "numbers"),
        ("scene,x,y\n1,2,nan\n", "NaN"),
        ("scene,x,y\n1,2,1e999\n", "NaN"),
        ("scene,x,y,object\n1,2,3,-1\n", "object"),
        ("scene,x,y,object\n1,2,3,a\n", "object"),
        ("scene,x,y\n1,2,\x00\n", "numbers"),
    ],
)
def test_bad_point_tables(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "points.csv"
    path.write_text(text)
    refuse(lambda: load_points(path), str(path), words)


def test_bad_point_files(tmp_path: Path) -> None:
    path = tmp_path / "points.npz"
    ones = np.ones((3, 4, 2))
    for arrays, words in (
        ({"points": np.zeros((3, 4, 3))}, "(3, 4, 3)"),
        ({"points": np.zeros((3, 2))}, "(3, 2)"),
        ({"other": ones}, "found none"),
        ({"points": ones * np.nan}, "NaN"),
        ({"points": ones, "presence": np.ones((3, 5))}, "(3, 5)"),
        ({"points": ones, "presence": np.full((3, 4), 0.5)}, "presences"),
        ({"points": ones, "object": np.ones((3, 4))}, "whole numbers"),
    ):
        np.savez(path, **arrays)
        refuse(lambda: load_points(path), str(path), words)
    (tmp_path / "binary.csv").write_bytes(b"scene,x,y\n\xff\xfe\x00")
    refuse(lambda: load_points(tmp_path / "binary.csv"), "binary.csv")
    refuse(lambda: load_points(tmp_path / "none.csv"), "none.csv", "does not exist")
    uneven = "scene,x,y\n" + "".join(f"{i},0,0\n" for i in range(5000)) + "0,1,1\n" * 5000
    (tmp_path / "uneven.csv").write_text(uneven)
    refuse(lambda: load_points(tmp_path / "uneven.csv"), "uneven.csv", "5001 points")
    config = ConstellationDataConfig(name=str(tmp_path / "none.npz"))
    from scae.data import point_source

    refuse(lambda: point_source(config), "none.npz")
