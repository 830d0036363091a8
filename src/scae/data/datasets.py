"""Data sets by name: where their files are, how they are read, whether they are complete."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from scae.data import readers
from scae.data.images import ImageData
from scae.data.transforms import affine_style
from scae.errors import ScaeError


@dataclass(frozen=True)
class Dataset:
    """One published data set; its files are in the folder of its name, plain or gzipped."""

    url: str
    """Where it is published; files are downloaded if they have a checksum."""
    files: Mapping[str, tuple[tuple[str, ...], ...]]
    """Names of each split's files, in one or more forms; `*` stands for several numbers."""
    read: Callable[[Sequence[Path], str], tuple[readers.Pixels, readers.Labels]]
    counts: Mapping[str, int]
    """Published number of images of each split."""
    md5: Mapping[str, str] = field(default_factory=dict)
    """Files to download and their published checksums."""
    classes: tuple[str, ...] = ()

    def find(self, folder: Path, split: str) -> list[Path]:
        """Files of a split in the order of their numbers; empty when some are missing."""
        for form in self.files[split]:
            found = [[*folder.glob(name)] or [*folder.glob(f"{name}.gz")] for name in form]
            if all(found):
                return [p for paths in found for p in sorted(paths, key=lambda p: (len(p.name), p))]
        return []

    def names(self, split: str) -> str:
        """The forms of a split's files in words."""
        return " or ".join(" and ".join(form) for form in self.files[split])


def _idx(url: str, *md5: str) -> Dataset:
    """MNIST or a data set in its format; `md5` in the order of the files below."""
    names = [f"{s}-{p}-ubyte" for s in ("train", "t10k") for p in ("images-idx3", "labels-idx1")]
    known = {f"{name}.gz": checksum for name, checksum in zip(names, md5, strict=True)}
    files = {"train": (tuple(names[:2]),), "test": (tuple(names[2:]),)}
    return Dataset(url, files, readers.read_mnist, {"train": 60_000, "test": 10_000}, known)


DATASETS: dict[str, Dataset] = {
    "mnist": _idx(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": _idx(
        "https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    "svhn": Dataset(
        "https://ufldl.stanford.edu/housenumbers/",
        {"train": (("train_32x32.mat",),), "test": (("test_32x32.mat",),)},
        readers.read_svhn,
        {"train": 73_257, "test": 26_032},
        {
            "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
            "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
        },
    ),
    "cifar10": Dataset(
        "https://www.cs.toronto.edu/~kriz/",
        {
            "train": (("cifar-10-binary.tar.gz",), ("data_batch_*.bin",)),
            "test": (("cifar-10-binary.tar.gz",), ("test_batch.bin",)),
        },
        readers.read_cifar10,
        {"train": 50_000, "test": 10_000},
        {"cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530"},
        readers.CIFAR10_CLASSES,
    ),
    # No checksums of the affNIST files were ever published, so those are not downloaded.
    "affnist": Dataset(
        "https://www.cs.toronto.edu/~tijmen/affNIST/",
        {
            "train": (("training_and_validation.mat",), ("training_and_validation_batches/*.mat",)),
            "test": (("test.mat",), ("test_batches/*.mat",)),
        },
        readers.read_affnist,
        {"train": 1_920_000, "test": 320_000},
    ),
}
MADE_FROM = {"mnist40": "mnist", "affnist-style": "mnist"}
NAMES = ("digits", "constellations", *DATASETS, *MADE_FROM)
SPLITS = ("train", "test")


@dataclass(frozen=True)
class DatasetStatus:
    """What `scae data list` and `scae data check` say of one split."""

    name: str
    split: str
    state: str
    """Built in, missing, found, or once read: complete, partial or broken."""
    detail: str


def data_folder(data_dir: Path | str | None = None) -> Path:
    """The folder given, else the one in SCAE_DATA, else the cache of downloads."""
    given = data_dir if data_dir is not None else os.environ.get("SCAE_DATA")
    if not given:
        return cache_folder()
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise ScaeError(f"The data folder {folder} does not exist.")
    return folder


def cache_folder() -> Path:
    """Where downloads are kept."""
    import pooch

    return Path(pooch.os_cache("scae"))


def find_files(name: str, split: str, data_dir: Path | str | None = None) -> list[Path]:
    """Files of a split; those absent from the cache are downloaded."""
    original, root = MADE_FROM.get(name, name), data_folder(data_dir)
    dataset, folder = DATASETS[original], root / original
    if not dataset.find(folder, split) and dataset.md5 and root == cache_folder():
        download(name)
    if found := dataset.find(folder, split):
        return found
    needed = f"Data {name!r}, split {split}, needs {dataset.names(split)} in {folder}"
    raise ScaeError(f"{needed}; get them from {dataset.url}.")


def download(name: str, data_dir: Path | str | None = None) -> list[Path]:
    """All files of a data set; those that the data folder lacks are downloaded to it."""
    import pooch

    original = MADE_FROM.get(name, name)
    dataset = DATASETS.get(original)
    if dataset is None or not dataset.md5:
        choice = ", ".join(key for key, value in DATASETS.items() if value.md5)
        raise ScaeError(f"There is nothing to download for {name!r}; choose one of {choice}.")
    folder, paths = data_folder(data_dir) / original, []
    for file, md5 in dataset.md5.items():
        url = dataset.url + file
        try:
            paths.append(pooch.retrieve(url, f"md5:{md5}", file, folder, progressbar=True))
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            problem = f"Downloading {url} to {folder} failed ({type(error).__name__})"
            raise ScaeError(f"{problem}; try again, or put the file there yourself.") from None
    return [Path(path) for path in paths]


def read_split(name: str, split: str, data_dir: Path | str | None = None) -> ImageData:
    """One split of a named data set as published (digits 8x8, mnist40 not padded yet)."""
    if name == "constellations":
        raise ScaeError("Data 'constellations' are points, not images.")
    if split not in SPLITS:
        raise ScaeError(f"Data {name!r} has splits train, test and train+test, not {split!r}.")
    dataset = DATASETS.get(MADE_FROM.get(name, name))
    if dataset is None:
        pixels, labels = readers.read_digits(split)
    else:
        pixels, labels = dataset.read(find_files(name, split, data_dir), split)
    images = torch.from_numpy(pixels)
    if name == "affnist-style":
        images = affine_style(images, split)
    classes = dataset.classes if dataset else ()
    return ImageData(images, torch.from_numpy(labels), name, split, classes)


def dataset_status(data_dir: Path | str | None = None, read: bool = False) -> list[DatasetStatus]:
    """Every split of every data set: what is there; with `read`, whether it can be read."""
    root = data_folder(data_dir)
    pairs = [(name, split) for name in NAMES for split in SPLITS]
    return [DatasetStatus(name, split, *_state(name, split, root, read)) for name, split in pairs]


def _state(name: str, split: str, root: Path, read: bool) -> tuple[str, str]:
    original = MADE_FROM.get(name, name)
    if original not in DATASETS:
        return "built in", "needs no files"
    dataset, folder = DATASETS[original], root / original
    if not dataset.find(folder, split):
        return "missing", f"{dataset.names(split)} not in {folder}"
    if not read or original != name:
        return "found", f"in {folder}"
    try:
        found = len(read_split(name, split, root))
    except ScaeError as error:
        return "broken", str(error)
    count = dataset.counts[split]
    return "complete" if found == count else "partial", f"{found} of {count} images in {folder}"
