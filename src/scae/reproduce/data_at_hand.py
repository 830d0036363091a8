"""Which data the cells can have: real files with their fingerprint, or what stands in for them."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

from scae.config import ImageExperiment
from scae.data.catalog import data_folder, find, list_data
from scae.errors import ScaeError

SPLITS = ("train", "test")
STYLE = "affnist-style"
DIGITS_STYLE = "digits-affine"
"""Embedded digits under affNIST's kind of maps, where even MNIST is missing."""
BUILT_IN = "built in"


@dataclass(frozen=True)
class DataAtHand:
    """The data of one column, or why there are none."""

    name: str
    fingerprint: str
    problem: str | None = None

    @property
    def found(self) -> bool:
        return self.problem is None


class DataFinder:
    """Looks each data set up once; downloads it if that is wanted and it has to be."""

    def __init__(self, data_dir: Path | None, download: bool) -> None:
        self.data_dir, self._download = data_dir, download
        self._known: dict[str, DataAtHand] = {}
        self._listed = list_data(data_dir)

    def look_up(self, name: str) -> DataAtHand:
        """The data set `name`, by its files."""
        if name not in self._known:
            self._known[name] = self._find(name)
        return self._known[name]

    def transfer(self) -> str:
        """What stands for affNIST: itself where it is at hand, else data in its style."""
        return "affnist" if self._files("affnist", ("test",)) else STYLE

    def _files(self, name: str, splits: tuple[str, ...]) -> list[Path]:
        rows = {row.split: row for row in self._listed if row.name == name}
        if any(split not in rows or rows[split].state == "missing" for split in splits):
            return []
        return [Path(file) for split in splits for file in rows[split].files]

    def _find(self, name: str) -> DataAtHand:
        splits = ("test",) if name == "affnist" else SPLITS
        paths = self._files(name, splits)
        if not paths:
            if not self._download and data_folder(self.data_dir) is None:
                return DataAtHand(name, "", f"Data {name!r} are not here.")
            try:
                paths = [path for split in splits for path in find(name, split, self.data_dir)]
            except ScaeError as error:
                return DataAtHand(name, "", str(error))
        return DataAtHand(name, _fingerprint(paths))


def on_digits(experiment: ImageExperiment) -> ImageExperiment:
    """The same experiment on the embedded digits: for trying things out without data."""
    model, data = experiment.model, replace(experiment.data, name="digits", split="train")
    if data.canvas is None:
        data = replace(data, size=model.image_size[0])
    return replace(experiment, model=replace(model, channels=1), data=data)


def _fingerprint(paths: list[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            digest.update(path.name.encode() + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
