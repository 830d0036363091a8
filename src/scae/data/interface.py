"""What the rest of the package sees of data: images or scenes in memory, served by step.

A batch is a pure function of (seed, step): no iterator state exists, so a resumed run sees
the batches it would have seen, and any process can compute its own rows.
"""

import hashlib
import zlib
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from torch import Tensor

from scae.data.transforms import pad_and_shift
from scae.errors import ScaeError

# Keys that keep the random streams of one seed apart.
ORDER, SHIFT, SCENE, AFFINE = range(4)


def stream(*key: int) -> np.random.Generator:
    """An independent random stream for a key such as (seed, purpose, step)."""
    if any(k < 0 for k in key):
        raise ScaeError(f"A seed must not be negative, got {min(key)}.")
    return np.random.default_rng(np.random.SeedSequence(key))


def split_key(split: str) -> int:
    """A number for a split's name, to keep the random streams of splits apart."""
    return zlib.crc32(split.encode())


@dataclass(frozen=True)
class ImageData:
    """Images of one split, in memory."""

    images: UInt8[Tensor, "images channels height width"]
    labels: Int64[Tensor, " images"] | None
    name: str
    split: str
    classes: tuple[str, ...] = ()
    """Class names in the order of the labels; empty when the labels are plain numbers."""
    files: tuple[str, ...] = ()
    """File name of each image, for data read from a folder."""
    expected: int | None = None
    """Images in the published split; a smaller count is reported by `summary`."""

    def __len__(self) -> int:
        return len(self.images)

    @cached_property
    def fingerprint(self) -> str:
        """Sha-256 of pixels, shape and labels: equal data has equal fingerprints."""
        digest = hashlib.sha256(repr(tuple(self.images.shape)).encode())
        digest.update(self.images.contiguous().numpy().data)
        if self.labels is not None:
            digest.update(self.labels.contiguous().numpy().data)
        return digest.hexdigest()

    @property
    def summary(self) -> str:
        """One line for people: how many images were found and of what shape."""
        count, channels, height, width = self.images.shape
        of = f" of {self.expected}" if self.expected and self.expected != count else ""
        line = f"{self.name} {self.split}: {count}{of} images of {height}x{width}x{channels}"
        if self.labels is None:
            return line + ", no labels"
        return line + f", {len(self.labels.unique())} classes"

    def floats(
        self, start: int = 0, stop: int | None = None
    ) -> Float[Tensor, "batch channels height width"]:
        """Images `start` to `stop` as the model takes them: float32 in [0, 1]."""
        return self.images[start:stop].float().div_(255.0)


@runtime_checkable
class Source(Protocol):
    """Anything training can draw from; a batch is what a model's `loss_terms` takes."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str: ...

    def batch(self, step: int, size: int, rank: int = 0, world: int = 1) -> tuple[Tensor, ...]:
        """Rows of process `rank` of the global batch of `size` examples at `step`."""
        ...


def rows_of(size: int, rank: int, world: int) -> slice:
    """Rows of a global batch that belong to one process."""
    if size < 1 or world < 1 or not 0 <= rank < world:
        raise ScaeError(f"No batch of {size} examples for process {rank} of {world}.")
    if size % world:
        raise ScaeError(f"A batch of {size} examples cannot be split over {world} processes.")
    share = size // world
    return slice(rank * share, (rank + 1) * share)


class EpochOrder:
    """Every example once per epoch, in an order that depends on (seed, epoch) only.

    The last incomplete batch of an epoch is left out; which examples that concerns
    changes with every epoch.
    """

    def __init__(self, count: int, seed: int, name: str) -> None:
        self._count, self._seed, self._name = count, seed, name
        self._cached: tuple[int, np.ndarray] | None = None

    def __call__(self, step: int, size: int) -> np.ndarray:
        """Indices of the global batch of `size` examples at `step`."""
        per_epoch = self._count // size
        if per_epoch == 0:
            raise ScaeError(
                f"Data {self._name!r} has {self._count} examples, fewer than one batch of {size}; "
                "use a smaller --training.batch or more data."
            )
        epoch, position = divmod(step, per_epoch)
        if self._cached is None or self._cached[0] != epoch:
            self._cached = epoch, stream(self._seed, ORDER, epoch).permutation(self._count)
        return self._cached[1][position * size : (position + 1) * size]


class ImageSource:
    """Batches of images, padded to a canvas and shifted at random when asked to.

    Shifts are uniform integers in [-shift, shift] for each axis; the release's are the same
    but for the extreme shift of -6, which it draws half as often.
    """

    def __init__(
        self, data: ImageData, seed: int, canvas: int | None = None, shift: int = 0
    ) -> None:
        self.data, self.canvas, self.shift, self._seed = data, canvas, shift, seed
        self._order = EpochOrder(len(data), seed, data.name)

    @property
    def name(self) -> str:
        return self.data.name

    @property
    def fingerprint(self) -> str:
        return self.data.fingerprint

    def __len__(self) -> int:
        return len(self.data)

    @property
    def is_still(self) -> bool:
        """Whether images are shown as they are, the same every time."""
        return self.canvas is None and not self.shift

    def which(self, step: int, size: int, rank: int = 0, world: int = 1) -> Int64[Tensor, "batch"]:
        """Which images a batch has."""
        return torch.from_numpy(self._order(step, size)[rows_of(size, rank, world)])

    def batch(
        self, step: int, size: int, rank: int = 0, world: int = 1
    ) -> tuple[Float[Tensor, "batch channels height width"]]:
        """Images in [0, 1] of process `rank`; `size` counts the examples of all processes."""
        images = self.data.images[self.which(step, size, rank, world)]
        if not self.is_still:
            rows = rows_of(size, rank, world)
            shifts = draw_shifts(stream(self._seed, SHIFT, step), size, self.shift)[rows]
            images = pad_and_shift(images, self.canvas, shifts)
        return (images.float().div_(255.0),)


def draw_shifts(rng: np.random.Generator, count: int, shift: int) -> Int64[Tensor, "count 2"]:
    """Independent vertical and horizontal shifts, uniform integers in [-shift, shift]."""
    return torch.from_numpy(rng.integers(-shift, shift, (count, 2), endpoint=True))
