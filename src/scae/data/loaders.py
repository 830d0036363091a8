"""From a name or a path to whole splits for evaluation, or to batches for training.

A batch is a pure function of (seed, step): no iterator state exists, so a resumed run sees
the batches it would have seen, and any process can compute its own rows.
"""

import hashlib
import warnings
from dataclasses import asdict, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from scae.config import (
    ConstellationDataConfig,
    Experiment,
    ImageDataConfig,
    ImageExperiment,
    StackedConfig,
)
from scae.data.constellations import BATCHES_PER_RANGE, arrange, draw, generate
from scae.data.datasets import NAMES, read_split
from scae.data.folder import load_folder
from scae.data.images import ImageData, unit_floats
from scae.data.points import Scenes, load_points
from scae.data.readers import read_array_images
from scae.data.streams import ORDER, SCENE, SHIFT, stream
from scae.data.transforms import draw_shifts, pad_and_shift, resize
from scae.errors import ScaeError, did_you_mean

GENERATED = "constellations"
DIGITS_SIZE = 28
MNIST40_CANVAS, MNIST40_SHIFT = 40, 6
# Evaluation images are shifted once and for all; each split has shifts of its own.
EVALUATION_SEED = 2019

Points = tuple[Float[Tensor, "batch points 2"], Float[Tensor, "batch points"]]


@runtime_checkable
class Batches(Protocol):
    """Training data by step; a batch is what `loss_terms` takes after the model."""

    name: str
    fingerprint: str

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        """Rows of process `rank` of the global batch of `size` examples at `step`."""
        ...


class StoredBatches:
    """Every example once per epoch, in an order that depends on (seed, epoch) only.

    The last incomplete batch of an epoch is left out; which examples that concerns
    changes with every epoch.
    """

    def __init__(self, data: ImageData | Scenes, seed: int) -> None:
        self.name, self.fingerprint = data.name, data.fingerprint
        self.seed, self._count = seed, len(data)
        self._order = lru_cache(1)(lambda epoch: stream(seed, ORDER, epoch).permutation(len(data)))

    def indices(self, step: int, size: int) -> Int64[Tensor, " size"]:
        """Examples of the global batch at `step`."""
        if self._count < size:
            raise ScaeError(
                f"Data {self.name!r} has {self._count} examples, fewer than one batch of {size}; "
                "use a smaller --training.batch or more data."
            )
        epoch, position = divmod(step, self._count // size)
        return torch.from_numpy(self._order(epoch)[position * size : (position + 1) * size])


class ImageBatches(StoredBatches):
    """Batches of images, padded to a canvas and shifted at random when asked to."""

    def __init__(
        self, data: ImageData, seed: int, canvas: int | None = None, shift: int = 0
    ) -> None:
        super().__init__(data, seed)
        self.data, self.canvas, self.shift = data, canvas, shift

    def batch(
        self, step: int, size: int, rank: int = 0, world: int = 1
    ) -> tuple[Float[Tensor, "batch channels height width"]]:
        """Images in [0, 1] of process `rank`."""
        rows = process_rows(size, rank, world)
        images = self.data.images[self.indices(step, size)[rows]]
        if self.canvas is not None or self.shift:
            shifts = draw_shifts(stream(self.seed, SHIFT, step), size, self.shift)[rows]
            images = pad_and_shift(images, self.canvas, shifts)
        return (unit_floats(images),)


class PointBatches(StoredBatches):
    """Batches of stored scenes."""

    def __init__(self, scenes: Scenes, seed: int) -> None:
        super().__init__(scenes, seed)
        self.scenes = scenes

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> Points:
        """Points and presences of process `rank`."""
        rows = self.indices(step, size)[process_rows(size, rank, world)]
        return self.scenes.points[rows].float(), self.scenes.presence[rows]


class ConstellationBatches:
    """Endless generated scenes; with `global_range`, one range per 100 batches."""

    def __init__(self, config: ConstellationDataConfig, seed: int, steps: int = 0) -> None:
        """`steps` is the length of the training, for `train_keep`."""
        settings = repr(sorted(asdict(config).items()))
        self.name, self.fingerprint = GENERATED, hashlib.sha256(settings.encode()).hexdigest()
        self.config, self._seed, self._half = config, seed, steps // 2
        self._per_range = BATCHES_PER_RANGE if config.global_range else 1
        self._scenes = lru_cache(1)(self._generate)

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> Points:
        """Points and presences of process `rank`."""
        chunk, position = divmod(step, self._per_range)
        scenes, rows = self._scenes(chunk, size), process_rows(size, rank, world)
        batch = slice(position * size, (position + 1) * size)
        return scenes.points[batch][rows].clone(), scenes.presence[batch][rows].clone()

    def keep_at(self, step: int) -> float:
        """Probability of each pattern in the training scenes of a step."""
        first, last = self.config.train_keep or (self.config.keep, self.config.keep)
        return first + (last - first) * min(1.0, step / max(1, self._half))

    def _generate(self, chunk: int, size: int) -> Scenes:
        config = replace(self.config, keep=self.keep_at(chunk * self._per_range))
        count = size * self._per_range
        return arrange(config, draw(config, stream(self._seed, SCENE, chunk), count))


def process_rows(size: int, rank: int, world: int) -> slice:
    """Rows of a global batch that belong to one process."""
    if size % world:
        raise ScaeError(f"A batch of {size} examples cannot be split over {world} processes.")
    return slice(rank * size // world, (rank + 1) * size // world)


def training_batches(experiment: Experiment, data_dir: Path | str | None = None) -> Batches:
    """Batches for the training of an experiment; shifts are drawn anew for every batch."""
    seed = experiment.training.seed
    if isinstance(experiment, ImageExperiment):
        config = _complete(experiment.data)
        images = _read(config, config.split, data_dir)
        check_fits(experiment.model, images, config.canvas)
        return ImageBatches(images, seed, config.canvas, config.shift)
    data = experiment.data
    if data.name == GENERATED:
        return ConstellationBatches(data, seed, experiment.training.steps)
    return PointBatches(load_points(data.name, data.global_range), seed)


def load_scenes(config: ConstellationDataConfig, seed: int, count: int) -> Scenes:
    """`count` scenes for evaluation, with ground truth; of a file, the first `count`."""
    if config.name == GENERATED:
        return generate(config, seed, count)
    return load_points(config.name, config.global_range).first(count)


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
    shifts = draw_shifts(stream(EVALUATION_SEED, SHIFT, images.split), len(images), config.shift)
    return replace(images, images=pad_and_shift(images.images, config.canvas, shifts))


def check_fits(model: StackedConfig, data: ImageData, canvas: int | None = None) -> None:
    """Refuse images of another size or number of channels than the model takes."""
    channels, *size = data.images.shape[1:]
    height, width = (canvas, canvas) if canvas else size
    tall, wide = model.image_size
    if (channels, height, width) != (model.channels, tall, wide):
        raise ScaeError(
            f"The images of {data.name!r} are {height}x{width} with {channels} channels, but this "
            f"model takes {tall}x{wide} with {model.channels}; resize or convert them."
        )


def _complete(config: ImageDataConfig) -> ImageDataConfig:
    """Fill in what the name of a data set implies."""
    if config.name == "mnist40" and config.canvas is None:
        return replace(config, canvas=MNIST40_CANVAS, shift=MNIST40_SHIFT)
    if config.name == "digits" and config.size is None:
        return replace(config, size=DIGITS_SIZE)
    return config


def _read(config: ImageDataConfig, split: str, data_dir: Path | str | None) -> ImageData:
    """Splits joined by +, resized but not padded."""
    first, *others = dict.fromkeys(split.split("+"))
    data = _read_split(config, first, data_dir)
    if others and data.split != "all":  # data without splits is never taken twice
        parts = [data, *(_read_split(config, name, data_dir) for name in others)]
        if len({(part.images.shape[1:], part.classes) for part in parts}) > 1:
            raise ScaeError(f"Splits {split} of {data.name!r} differ in image size or classes.")
        labels = [part.labels for part in parts if part.labels is not None]
        data = replace(
            data,
            images=torch.cat([part.images for part in parts]),
            labels=torch.cat(labels) if len(labels) == len(parts) else None,
            split=split,
            files=tuple(name for part in parts for name in part.files),
        )
    if config.size is not None and data.images.shape[2:] != (config.size, config.size):
        data = replace(data, images=resize(data.images, config.size))
    if data.labels is not None and len(data.labels.unique()) == 1:
        warnings.warn(f"All images of {data.name!r} have one label, so none is used.", stacklevel=2)
        data = replace(data, labels=None, classes=())
    return data


def _read_split(config: ImageDataConfig, split: str, data_dir: Path | str | None) -> ImageData:
    path = Path(config.name).expanduser()
    if config.name in NAMES:
        return read_split(config.name, split, data_dir)
    if path.suffix in (".npz", ".npy"):
        return read_array_images(path, split)
    if path.is_dir():
        return load_folder(path, split, config.size, config.strict)
    hint = did_you_mean(config.name, NAMES, f"data sets are {', '.join(NAMES)}.")
    raise ScaeError(
        f"{config.name!r} is neither a data set nor a folder of images nor an .npz or .npy file; "
        f"{hint}"
    )
