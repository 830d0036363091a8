"""Batches that depend on (seed, step) and nothing else."""

from pathlib import Path

import pytest
import torch

import data_files
from data_files import refuse
from scae.config import ImageDataConfig, ImageExperiment, StackedConfig
from scae.data import Batches, ImageBatches, ImageData, load_images, training_batches


def numbered(count: int, size: int = 4) -> ImageData:
    """Images whose first pixel is their number."""
    images = torch.zeros(count, 1, size, size, dtype=torch.uint8)
    images[:, 0, 0, 0] = torch.arange(count)
    return ImageData(images, None, "numbered", "train")


def numbers(batch: torch.Tensor) -> list[int]:
    return (batch.amax((1, 2, 3)) * 255).round().long().tolist()


def test_an_epoch_shows_every_image_once_in_an_order_of_its_own() -> None:
    batches = ImageBatches(numbered(24), seed=0)
    assert isinstance(batches, Batches) and batches.fingerprint == numbered(24).fingerprint
    seen = [numbers(batches.batch(step, 6)[0]) for step in range(8)]
    epochs = [[n for batch in seen[i : i + 4] for n in batch] for i in (0, 4)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(24))
    assert epochs[0] != epochs[1] != list(range(24))
    refuse(lambda: batches.batch(0, 25), "'numbered' has 24 examples, fewer than one batch of 25")
    # The order of a seed never changes, so that old runs can be continued.
    assert numbers(ImageBatches(numbered(50), 7).batch(12, 4)[0]) == [10, 12, 0, 4]


@pytest.mark.parametrize(("canvas", "shift"), [(None, 0), (12, 4), (None, 1)])
def test_batches_do_not_depend_on_history_or_number_of_processes(
    canvas: int | None, shift: int
) -> None:
    walked, resumed = (ImageBatches(numbered(50), 7, canvas, shift) for _ in range(2))
    straight = [walked.batch(step, 8)[0] for step in range(30)]
    for step in (29, 17, 3):
        assert torch.equal(resumed.batch(step, 8)[0], straight[step])
    shares = [resumed.batch(17, 8, rank, 4)[0] for rank in range(4)]
    assert torch.equal(torch.cat(shares), straight[17])
    other = ImageBatches(numbered(50), 8, canvas, shift)
    assert not all(torch.equal(other.batch(s, 8)[0], straight[s]) for s in range(3))
    refuse(lambda: resumed.batch(0, 9, 0, 2), "over 2 processes")


def test_mnist40_is_shifted_mnist(tmp_path: Path) -> None:
    def batches(data: ImageDataConfig, side: int) -> Batches:
        model = StackedConfig(image_size=(side, side))
        return training_batches(ImageExperiment("mine", "", model, data=data), tmp_path)

    data_files.write_mnist(tmp_path, 40)
    raw, padded = load_images("mnist", "test", tmp_path), load_images("mnist40", "test", tmp_path)
    assert torch.equal(padded.images, load_images("mnist40", "test", tmp_path).images)
    assert torch.equal(padded.images.long().sum((1, 2, 3)), raw.images.long().sum((1, 2, 3)))
    corners = {tuple(image[0].nonzero().amin(0).tolist()) for image in padded.images}
    assert len(corners) > 10  # not all in the middle
    (batch,) = batches(ImageDataConfig(name="mnist", canvas=40, shift=6), 40).batch(0, 8)
    (same,) = batches(ImageDataConfig(name="mnist40"), 40).batch(0, 8)
    assert batch.shape == (8, 1, 40, 40) and torch.equal(batch, same)
    assert load_images("affnist-style", "test", tmp_path).images.shape == (20, 1, 40, 40)
    words = ("'mnist' are 28x28 with 1", "takes 32x32 with 1")
    refuse(lambda: batches(ImageDataConfig("mnist"), 32), *words)
    assert batches(ImageDataConfig("mnist", size=32), 32).batch(0, 2)[0].shape == (2, 1, 32, 32)
