"""From a name or a path and a split to images or scenes, as configured."""

from dataclasses import replace
from pathlib import Path

import torch

from scae.config import ConstellationDataConfig, ImageDataConfig
from scae.data.arrays import load_array_images
from scae.data.catalog import NAMES, read_split
from scae.data.constellations import ConstellationSource, generate
from scae.data.digits import DIGITS_SIZE, load_digits
from scae.data.folders import load_folder
from scae.data.interface import SHIFT, ImageData, ImageSource, draw_shifts, split_key, stream
from scae.data.point_files import load_points
from scae.data.points import PointSource, Scenes
from scae.data.transforms import pad_and_shift, resize
from scae.errors import ScaeError

MNIST40 = {"canvas": 40, "shift": 6}
# Evaluation images are shifted once and for all; each split has shifts of its own.
EVALUATION_SEED = 2019


def load_images(
    data: str | ImageDataConfig, split: str | None = None, data_dir: Path | str | None = None
) -> ImageData:
    """A whole split (or several, "train+test") for evaluation, padded and shifted as configured.

    Shifts are fixed: the same images are the same in every run. `data_dir` is the folder of
    data sets; without it SCAE_DATA is used, and without that files are downloaded.
    """
    config = _complete(ImageDataConfig(name=data) if isinstance(data, str) else data)
    images = _read(config, split or config.split, data_dir)
    if config.canvas is None and not config.shift:
        return images
    key = split_key(images.split)
    shifts = draw_shifts(stream(EVALUATION_SEED, SHIFT, key), len(images), config.shift)
    return replace(images, images=pad_and_shift(images.images, config.canvas, shifts))


def image_source(
    config: ImageDataConfig, data_dir: Path | str | None = None, seed: int = 0
) -> ImageSource:
    """Training batches of images; padding and shifts are made anew for every batch."""
    config = _complete(config)
    data = _read(config, config.split, data_dir)
    return ImageSource(data, seed, config.canvas, config.shift)


def point_source(
    config: ConstellationDataConfig, seed: int = 0, steps: int = 0
) -> ConstellationSource | PointSource:
    """Batches for a training of `steps`: generated, or from the file that `config.name` names."""
    if config.name == "constellations":
        return ConstellationSource(config, seed, steps)
    return PointSource(load_points(config.name, config.normalise), seed)


def scenes(config: ConstellationDataConfig, seed: int, count: int) -> Scenes:
    """`count` scenes for evaluation, with ground truth; of a file, the first `count`."""
    if config.name == "constellations":
        return generate(config, seed, count)
    stored = load_points(config.name, config.normalise)
    ids = None if stored.pattern_id is None else stored.pattern_id[:count]
    return replace(
        stored, points=stored.points[:count], presence=stored.presence[:count], pattern_id=ids
    )


def _complete(config: ImageDataConfig) -> ImageDataConfig:
    """Fill in what a data set's name implies, and refuse what cannot be."""
    if config.name == "mnist40" and config.canvas is None:
        config = replace(config, canvas=MNIST40["canvas"], shift=MNIST40["shift"])
    if config.shift < 0:
        raise ScaeError(f"A shift must not be negative, got {config.shift}.")
    return config


def _read(config: ImageDataConfig, split: str, data_dir: Path | str | None) -> ImageData:
    parts = split.split("+")
    if len(set(parts)) != len(parts) or not all(parts):
        raise ScaeError(f"Split {split!r} is not a list of different splits such as train+test.")
    found: list[ImageData] = []
    for part in parts:
        found.append(_read_part(config, part, data_dir))
        if found[-1].split == "all":  # data without splits is never taken twice
            break
    data = _join(found, split) if len(found) > 1 else found[0]
    if config.name in NAMES and data.name != config.name:
        data = replace(data, name=config.name)
    if config.size is not None and data.images.shape[2:] != (config.size, config.size):
        data = replace(data, images=resize(data.images, config.size))
    return data


def _read_part(config: ImageDataConfig, split: str, data_dir: Path | str | None) -> ImageData:
    if config.name == "digits":
        return load_digits(split, config.size or DIGITS_SIZE)
    if config.name in NAMES:
        return read_split(config.name, split, data_dir)
    path = Path(config.name).expanduser()
    if path.suffix in (".npz", ".npy"):
        return load_array_images(path, split)
    if path.is_dir():
        return load_folder(path, split, config.size)
    raise ScaeError(
        f"{config.name!r} is neither a data set ({', '.join(NAMES)}) nor a folder of images nor "
        "an .npz or .npy file."
    )


def _join(parts: list[ImageData], split: str) -> ImageData:
    labels = [part.labels for part in parts if part.labels is not None]
    expected = [part.expected for part in parts if part.expected is not None]
    for part in parts[1:]:
        if part.images.shape[1:] != parts[0].images.shape[1:] or part.classes != parts[0].classes:
            raise ScaeError(
                f"Splits {parts[0].split} and {part.split} of {part.name!r} differ in image size "
                "or classes and cannot be joined."
            )
    return replace(
        parts[0],
        images=torch.cat([part.images for part in parts]),
        labels=torch.cat(labels) if len(labels) == len(parts) else None,
        split=split,
        files=tuple(name for part in parts for name in part.files),
        expected=sum(expected) if len(expected) == len(parts) else None,
    )
