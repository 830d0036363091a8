"""Data sets by name: where their files are, how they are read, whether they are complete."""

import hashlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from scae.data.affnist import affine_style, read_affnist
from scae.data.images import ImageData
from scae.data.readers import DIGITS_SIZE, read_cifar10, read_digits, read_mnist, read_svhn
from scae.data.streams import split_key
from scae.errors import ScaeError

TIMEOUT = 30
RETRIES = 2
State = Literal["built in", "complete", "unofficial", "found", "broken", "missing"]


@dataclass(frozen=True)
class Dataset:
    """One published data set."""

    home: str
    """Where people get it."""
    folders: tuple[str, ...]
    """Places under the data folder, the first one being where downloads go."""
    files: Mapping[str, tuple[str, ...]]
    """Files of each split, plain or gzipped; `*` stands for one or more numbers."""
    read: Callable[[Sequence[Path], str, str], ImageData]
    """Images of (files, name, split)."""
    counts: Mapping[str, int]
    """Published number of images of each split."""
    mirrors: tuple[str, ...] = ()
    md5: Mapping[str, str] = field(default_factory=dict)
    """Files to download and their published checksums."""
    single: Mapping[str, str] = field(default_factory=dict)
    """One file that has all of a split."""

    def find(self, root: Path, split: str) -> list[Path]:
        """Files of a split under the data folder; empty when some are missing."""
        for folder in (root / place for place in self.folders):
            single = self.single.get(split)
            if single and (folder / single).is_file():
                return [folder / single]
            alike = [_plain_or_gzipped(folder, name) for name in self.files[split]]
            if all(alike):
                return [path for paths in alike for path in paths]
        return []

    def downloads(self, split: str) -> list[str]:
        """Published files that have a split."""
        wanted = (self.single.get(split), *self.files[split])
        return [name for name in self.md5 if name in wanted or name.removesuffix(".gz") in wanted]

    def describe(self, split: str) -> str:
        """The files of a split, in words."""
        names = " and ".join(self.files[split])
        return f"{names} (or {self.single[split]})" if split in self.single else names


def _plain_or_gzipped(folder: Path, name: str) -> list[Path]:
    """Files of a name or pattern in the order of their numbers; plain ones come first."""
    paths = (*folder.glob(f"{name}.gz"), *folder.glob(name))
    found = {path.name.removesuffix(".gz"): path for path in paths}
    return [found[key] for key in sorted(found, key=lambda key: (len(key), key))]


def _idx(home: str, folders: tuple[str, ...], mirrors: tuple[str, ...], *md5: str) -> Dataset:
    """MNIST or a data set in its format; `md5` in the order of the files below."""
    files = {
        "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
    }
    names = [f"{name}.gz" for split in files.values() for name in split]
    counts, known = {"train": 60_000, "test": 10_000}, dict(zip(names, md5, strict=True))
    return Dataset(home, folders, files, read_mnist, counts, mirrors, known)


DATASETS: dict[str, Dataset] = {
    "mnist": _idx(
        "https://ossci-datasets.s3.amazonaws.com/mnist/",
        ("mnist", "MNIST/raw"),
        (
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ),
        "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        "d53e105ee54ea40749a09fcbcd1e9432",
        "9fb629c4189551a2d022fa330f9573f3",
        "ec29112dd5afa0611ce80d1b7f02629c",
    ),
    "fashion-mnist": _idx(
        "https://github.com/zalandoresearch/fashion-mnist",
        ("fashion-mnist", "FashionMNIST/raw"),
        ("https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",),
        "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        "25c81989df183df01b3e8a0aad5dffbe",
        "bef4ecab320f06d8554ea6380940ec79",
        "bb300cfdad3c16e7a12a480ee83cd310",
    ),
    "svhn": Dataset(
        "https://ufldl.stanford.edu/housenumbers/",
        ("svhn", "SVHN"),
        {split: (f"{split}_32x32.mat",) for split in ("train", "test", "extra")},
        read_svhn,
        {"train": 73_257, "test": 26_032, "extra": 531_131},
        ("https://ufldl.stanford.edu/housenumbers/",),
        {
            "train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
            "test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
            "extra_32x32.mat": "a93ce644f1a588dc4d68dda5feec44a7",
        },
    ),
    "cifar10": Dataset(
        "https://www.cs.toronto.edu/~kriz/cifar.html",
        ("cifar10", "cifar-10-batches-bin"),
        {"train": ("data_batch_*.bin",), "test": ("test_batch.bin",)},
        read_cifar10,
        {"train": 50_000, "test": 10_000},
        ("https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/"),
        {"cifar-10-binary.tar.gz": "c32a1d4ab5d03f1284b67883e8d87530"},
        dict.fromkeys(("train", "test"), "cifar-10-binary.tar.gz"),
    ),
    # No checksums of the affNIST files were ever published, so those are not downloaded.
    "affnist": Dataset(
        "https://www.cs.toronto.edu/~tijmen/affNIST/",
        ("affnist", "affNIST"),
        {
            "train": ("training_and_validation_batches/*.mat",),
            "validation": ("validation_batches/*.mat",),
            "test": ("test_batches/*.mat",),
        },
        read_affnist,
        {"train": 1_920_000, "validation": 320_000, "test": 320_000},
        single={
            "train": "training_and_validation.mat",
            "validation": "validation.mat",
            "test": "test.mat",
        },
    ),
}
MADE_FROM = {"mnist40": "mnist", "affnist-style": "mnist"}
NAMES = (
    *("digits", "constellations", "mnist", "mnist40", "fashion-mnist", "svhn", "cifar10"),
    *("affnist", "affnist-style"),
)


@dataclass(frozen=True)
class DatasetStatus:
    """What `scae data list` and `scae data check` say of one split."""

    name: str
    split: str
    state: State
    detail: str
    files: tuple[str, ...] = ()
    images: int | None = None


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


def find_files(
    name: str, split: str, data_dir: Path | str | None = None, fetch: bool = False
) -> list[Path]:
    """Files of a split; absent ones are downloaded to the cache, or anywhere with `fetch`."""
    dataset, root = DATASETS[MADE_FROM.get(name, name)], data_folder(data_dir)
    if found := dataset.find(root, split):
        return found
    folder = root / dataset.folders[0]
    problem = f"Data {name!r}, split {split}, needs {dataset.describe(split)} in {folder}; "
    problem += f"get them from {dataset.home}"
    if not dataset.mirrors or not (fetch or root == cache_folder()):
        raise ScaeError(f"{problem}.")
    for file in dataset.downloads(split):
        if failures := _fetch(dataset, file, folder):
            raise ScaeError(f"{problem}, since downloading failed: {', '.join(failures)}.")
    return dataset.find(root, split)


def download(name: str, data_dir: Path | str | None = None) -> list[Path]:
    """Files of the train and test splits; what is not in the data folder is downloaded to it."""
    dataset = DATASETS.get(MADE_FROM.get(name, name))
    if dataset is None or not dataset.mirrors:
        choice = ", ".join(key for key, value in DATASETS.items() if value.mirrors)
        raise ScaeError(f"There is nothing to download for {name!r}; choose one of {choice}.")
    paths = [find_files(name, split, data_dir, fetch=True) for split in ("train", "test")]
    return list(dict.fromkeys(path for split in paths for path in split))


def read_split(
    name: str, split: str, data_dir: Path | str | None = None, size: int | None = None
) -> ImageData:
    """One split of a named data set as published (mnist40 is not padded yet).

    `size` matters only for digits, which are enlarged to 28 pixels or to `size`.
    """
    if name == "constellations":
        raise ScaeError("Data 'constellations' are points, not images.")
    if split not in _splits(name):
        splits = ", ".join(_splits(name))
        raise ScaeError(f"Data {name!r} has splits {splits} (join with +), not {split!r}.")
    if name == "digits":
        return read_digits(split, size or DIGITS_SIZE)
    dataset = DATASETS[MADE_FROM.get(name, name)]
    data = dataset.read(find_files(name, split, data_dir), name, split)
    if name == "affnist-style":
        data = replace(data, images=affine_style(data.images, split_key(split)))
    return replace(data, published=dataset.counts.get(split))


def dataset_status(data_dir: Path | str | None = None, read: bool = False) -> list[DatasetStatus]:
    """Every split of every data set: what is there.

    With `read`, files are read and are complete, unofficial (readable, but with another
    checksum than the published one) or broken.
    """
    return [_status(name, split, data_dir, read) for name in NAMES for split in _splits(name)]


def _splits(name: str) -> tuple[str, ...]:
    dataset = DATASETS.get(MADE_FROM.get(name, name))
    return tuple(dataset.files) if dataset else ("train", "test")


def _status(name: str, split: str, data_dir: Path | str | None, read: bool) -> DatasetStatus:
    original = MADE_FROM.get(name, name)
    if original not in DATASETS:
        return DatasetStatus(name, split, "built in", "needs no files")
    dataset = DATASETS[original]
    paths = dataset.find(root := data_folder(data_dir), split)
    if not paths:
        detail = f"{dataset.describe(split)} not in {root / dataset.folders[0]}"
        return DatasetStatus(name, split, "missing", detail)
    detail = f"in {paths[0].parent}" if original == name else f"made from {original}"
    found = DatasetStatus(name, split, "found", detail, tuple(str(path) for path in paths))
    if not read or original != name:
        return found
    try:
        data = read_split(name, split, data_dir)
    except ScaeError as error:
        return replace(found, state="broken", detail=str(error))
    other = [path.name for path in paths if _md5(path) not in dataset.md5.values()]
    note = f"; not the published checksum: {', '.join(other)}" if other else ""
    state: State = "unofficial" if other else "complete"
    return replace(found, state=state, detail=data.summary + note, images=len(data))


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()


def _fetch(dataset: Dataset, file: str, folder: Path) -> list[str]:
    """Download a file with its published checksum; what went wrong if no mirror has it."""
    import pooch

    failures = []
    for mirror in dataset.mirrors:
        known = {file: f"md5:{dataset.md5[file]}"}
        fetcher = pooch.create(folder, mirror, registry=known, retry_if_failed=RETRIES)
        downloader = pooch.HTTPDownloader(progressbar=True, timeout=TIMEOUT)
        try:
            fetcher.fetch(file, downloader=downloader)
            return []
        except (OSError, ValueError) as error:  # requests' errors are OSErrors
            failures.append(f"{mirror}{file} ({type(error).__name__})")
    return failures
