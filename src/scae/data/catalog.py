"""Data sets by name: where their files are, who reads them, whether they are whole."""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from scae.data import affnist, cifar10, idx, svhn
from scae.data.downloads import HOMES, REMOTES, download, published_md5s
from scae.data.files import plain_or_gz
from scae.data.interface import ImageData, split_key
from scae.errors import ScaeError

State = Literal["built in", "whole", "unofficial", "found", "broken", "missing"]


@dataclass(frozen=True)
class Dataset:
    """How to find and read one data set that lives in files."""

    folders: tuple[str, ...]
    """Places under the data folder, the first one being where downloads go."""
    splits: tuple[str, ...]
    find: Callable[[Path, str], list[Path]]
    """Files of a split in a folder; empty when some are missing."""
    read: Callable[[list[Path], str], ImageData]
    files: Callable[[str], str]
    """The files of a split, in words, for whoever lacks them."""


@dataclass(frozen=True)
class DataStatus:
    """What `scae data list` and `scae data check` say of one split."""

    name: str
    split: str
    state: State
    detail: str
    files: tuple[str, ...] = ()
    images: int | None = None


def _find_idx(folder: Path, split: str) -> list[Path]:
    found = [plain_or_gz(folder, stem) for stem in idx.STEMS[split]]
    return [path for path in found if path] if all(found) else []


def _idx(name: str, *folders: str) -> Dataset:
    def read(paths: list[Path], split: str) -> ImageData:
        return idx.read_mnist_files(paths[0], paths[1], name, split)

    def files(split: str) -> str:
        return " and ".join(f"{stem}.gz" for stem in idx.STEMS[split])

    return Dataset(folders, ("train", "test"), _find_idx, read, files)


def _find_svhn(folder: Path, split: str) -> list[Path]:
    path = folder / svhn.FILES[split]
    return [path] if path.is_file() else []


def _find_cifar10(folder: Path, split: str) -> list[Path]:
    loose = [plain_or_gz(folder, name) for name in cifar10.BATCHES[split]]
    batches = [path for path in loose if path]
    archive = folder / cifar10.ARCHIVE
    if len(batches) < len(loose) and archive.is_file():
        return [archive]
    return batches


def _read_cifar10(paths: list[Path], split: str) -> ImageData:
    if paths[0].name == cifar10.ARCHIVE:
        return cifar10.collect(cifar10.read_archive(paths[0], cifar10.BATCHES[split]), split)
    return cifar10.collect([cifar10.read_batch(path) for path in paths], split)


DATASETS: dict[str, Dataset] = {
    "mnist": _idx("mnist", "mnist", "MNIST/raw"),
    "fashion-mnist": _idx("fashion-mnist", "fashion-mnist", "FashionMNIST/raw"),
    "svhn": Dataset(
        ("svhn", "SVHN"),
        ("train", "test", "extra"),
        _find_svhn,
        lambda paths, split: svhn.read_svhn(paths[0], split),
        lambda split: svhn.FILES[split],
    ),
    "cifar10": Dataset(
        ("cifar10", "cifar-10-batches-bin"),
        ("train", "test"),
        _find_cifar10,
        _read_cifar10,
        lambda split: f"{', '.join(cifar10.BATCHES[split])} or {cifar10.ARCHIVE}",
    ),
    "affnist": Dataset(
        ("affnist", "affNIST"),
        ("train", "validation", "test"),
        affnist.find_affnist,
        affnist.read_affnist,
        lambda split: " or ".join(f"{p}_batches.zip" for p in affnist.PLACES[split]),
    ),
}
MADE_FROM = {"mnist40": "mnist", "affnist-style": "mnist"}
NAMES = (
    *("digits", "constellations", "mnist", "mnist40", "fashion-mnist", "svhn", "cifar10"),
    *("affnist", "affnist-style"),
)


def data_folder(data_dir: Path | str | None) -> Path | None:
    """The folder given, else the one in SCAE_DATA, else None: the cache with downloads."""
    given = data_dir if data_dir is not None else os.environ.get("SCAE_DATA")
    if not given:
        return None
    folder = Path(given).expanduser()
    if not folder.is_dir():
        raise ScaeError(f"The data folder {folder} does not exist.")
    return folder


def cache_folder() -> Path:
    """Where downloads are kept."""
    import pooch

    return Path(pooch.os_cache("scae"))


def find(name: str, split: str, data_dir: Path | str | None = None) -> list[Path]:
    """Files of a split; downloads them when no data folder was given and they are absent."""
    dataset = DATASETS[name]
    if split not in dataset.splits:
        raise ScaeError(
            f"Data {name!r} has splits {', '.join(dataset.splits)} (join with +), not {split!r}."
        )
    folder = data_folder(data_dir)
    root = folder or cache_folder()
    for place in dataset.folders:
        if paths := dataset.find(root / place, split):
            return paths
    target = root / dataset.folders[0]
    wanted = f"Data {name!r}, split {split}, needs {dataset.files(split)} in {target}"
    if folder is not None or name not in REMOTES:
        raise ScaeError(f"{wanted}; get them from {HOMES[name]}.")
    try:
        for remote in REMOTES[name][split]:
            download(remote, target)
    except ScaeError as error:
        raise ScaeError(f"{wanted}; get them from {HOMES[name]}, since {error}") from None
    return dataset.find(target, split)


def read_split(name: str, split: str, data_dir: Path | str | None) -> ImageData:
    """One split of a named data set as its files hold it (mnist40 is MNIST until padded)."""
    if name == "affnist-style":
        digits = read_split("mnist", split, data_dir)
        images = affnist.affine_style(digits.images, split_key(split))
        return ImageData(images, digits.labels, name, split)
    source = MADE_FROM.get(name, name)
    if source not in DATASETS:
        raise ScaeError(f"Data {name!r} are points, not images.")
    return DATASETS[source].read(find(source, split, data_dir), split)


def list_data(data_dir: Path | str | None = None) -> list[DataStatus]:
    """What is there, without reading it."""
    return [_status(name, split, data_dir, read=False) for name, split in _every_split()]


def check_data(data_dir: Path | str | None = None) -> list[DataStatus]:
    """Read all that is there: whole, unofficial (readable, other checksum), broken, missing."""
    return [_status(name, split, data_dir, read=True) for name, split in _every_split()]


def _every_split() -> list[tuple[str, str]]:
    pairs = []
    for name in NAMES:
        dataset = DATASETS.get(MADE_FROM.get(name, name))
        pairs += [(name, split) for split in (dataset.splits if dataset else ("train", "test"))]
    return pairs


def _status(name: str, split: str, data_dir: Path | str | None, read: bool) -> DataStatus:
    source = MADE_FROM.get(name, name)
    if source not in DATASETS:
        return DataStatus(name, split, "built in", "needs no files")
    dataset = DATASETS[source]
    root = data_folder(data_dir) or cache_folder()
    for place in dataset.folders:
        if paths := dataset.find(root / place, split):
            break
    else:
        where = f"{dataset.files(split)} not in {root / dataset.folders[0]}"
        return DataStatus(name, split, "missing", where)
    files = tuple(str(path) for path in paths)
    if source != name:
        return DataStatus(name, split, "found", f"made from {source}", files)
    if not read:
        return DataStatus(name, split, "found", f"{len(files)} files in {root / place}", files)
    try:
        data = dataset.read(paths, split)
    except ScaeError as error:
        return DataStatus(name, split, "broken", str(error), files)
    known = published_md5s(name)
    other = [path.name for path in paths if _md5(path) not in known]
    detail = data.summary
    if other:
        detail += f"; not the published checksum: {', '.join(other)}"
    return DataStatus(name, split, "unofficial" if other else "whole", detail, files, len(data))


def _md5(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "md5").hexdigest()
