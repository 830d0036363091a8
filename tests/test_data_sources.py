"""Order, augmentation and resizing: batches that depend on (seed, step) and nothing else."""

from pathlib import Path

import numpy as np
import pytest
import torch

import data_files
from scae.config import ImageDataConfig
from scae.data import ImageData, ImageSource, image_source, load_images
from scae.data.affnist import affine_style, warp
from scae.data.transforms import pad_and_shift, resize
from scae.errors import ScaeError


def numbered(count: int, size: int = 4) -> ImageData:
    """Images whose first pixel is their number."""
    images = torch.zeros(count, 1, size, size, dtype=torch.uint8)
    images[:, 0, 0, 0] = torch.arange(count)
    return ImageData(images, None, "numbered", "train")


def numbers(batch: torch.Tensor) -> list[int]:
    return (batch.amax((1, 2, 3)) * 255).round().long().tolist()


def test_an_epoch_shows_every_image_once_and_epochs_differ() -> None:
    source = ImageSource(numbered(24), seed=0)
    batches = [numbers(source.batch(step, 6)[0]) for step in range(8)]
    epochs = [[n for batch in batches[i : i + 4] for n in batch] for i in (0, 4)]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(24))
    assert epochs[0] != epochs[1] != list(range(24))


@pytest.mark.parametrize(("canvas", "shift"), [(None, 0), (12, 4), (None, 1)])
def test_batches_do_not_depend_on_history_or_number_of_processes(
    canvas: int | None, shift: int
) -> None:
    def fresh() -> ImageSource:
        return ImageSource(numbered(50), 7, canvas, shift)

    walked = fresh()
    straight = [walked.batch(step, 8)[0] for step in range(30)]
    resumed = fresh()
    for step in (29, 17, 3):
        assert torch.equal(resumed.batch(step, 8)[0], straight[step])
    shares = [fresh().batch(17, 8, rank, 4)[0] for rank in range(4)]
    assert torch.equal(torch.cat(shares), straight[17])
    other = ImageSource(numbered(50), 8, canvas, shift)
    assert not all(torch.equal(other.batch(s, 8)[0], straight[s]) for s in range(3))


def test_too_few_images_for_a_batch_are_refused() -> None:
    with pytest.raises(ScaeError, match="'numbered' has 5 examples, fewer than one batch of 6"):
        ImageSource(numbered(5), 0).batch(0, 6)


def test_values_are_in_the_unit_interval() -> None:
    data = ImageData(torch.full((4, 3, 2, 2), 255, dtype=torch.uint8), None, "white", "all")
    (batch,) = ImageSource(data, 0).batch(0, 2)
    assert batch.dtype == torch.float32 and (batch == 1).all()
    assert (data.floats(1, 3) == 1).all() and len(data.floats(1, 3)) == 2


def test_pad_and_shift_against_plain_slices() -> None:
    rng = np.random.default_rng(0)
    images = torch.from_numpy(rng.integers(1, 256, (20, 2, 28, 28)).astype(np.uint8))
    shifts = torch.from_numpy(rng.integers(-6, 7, (20, 2)))
    moved = pad_and_shift(images, 40, shifts)
    expected = torch.zeros(20, 2, 40, 40, dtype=torch.uint8)
    for i, (down, right) in enumerate(shifts.tolist()):
        expected[i, :, 6 + down : 34 + down, 6 + right : 34 + right] = images[i]
    assert torch.equal(moved, expected)
    # Without a canvas, what leaves the frame is lost and black comes in.
    off = pad_and_shift(images[:1], None, torch.tensor([[2, -3]]))
    assert torch.equal(off[0, :, 2:, :-3], images[0, :, :-2, 3:])
    assert (off[0, :, :2] == 0).all() and (off[0, :, :, -3:] == 0).all()
    with pytest.raises(ScaeError, match="canvas of 20"):
        pad_and_shift(images, 20, shifts)


def test_mnist40_is_shifted_mnist(tmp_path: Path) -> None:
    data_files.write_mnist(tmp_path, 40)
    raw, padded = load_images("mnist", "test", tmp_path), load_images("mnist40", "test", tmp_path)
    assert padded.images.shape == (20, 1, 40, 40) and padded.name == "mnist40"
    assert torch.equal(padded.images, load_images("mnist40", "test", tmp_path).images)
    assert torch.equal(padded.images.long().sum((1, 2, 3)), raw.images.long().sum((1, 2, 3)))
    corners = {tuple(image[0].nonzero().amin(0).tolist()) for image in padded.images}
    assert len(corners) > 10  # not all in the middle
    config = ImageDataConfig(name="mnist", canvas=40, shift=6)
    (batch,) = image_source(config, tmp_path, seed=1).batch(0, 8)
    (same,) = image_source(ImageDataConfig(name="mnist40"), tmp_path, seed=1).batch(0, 8)
    assert batch.shape == (8, 1, 40, 40) and torch.equal(batch, same)


def test_warp_moves_pixels_where_the_map_says() -> None:
    images = torch.zeros(3, 1, 28, 28, dtype=torch.uint8)
    images[:, 0, 10:14, 20:23] = 200  # rows 10 to 13, columns 20 to 22
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])  # (x, y) -> (-y, x)
    linear = torch.stack([torch.eye(2), turn, torch.diag(torch.tensor([1.0, 2.0]))])
    shift = torch.tensor([[5.0, 7.0], [30.0, 2.0], [0.0, 0.0]])
    moved = warp(images, linear, shift)[:, 0]
    expected = torch.zeros(3, 40, 40, dtype=torch.uint8)
    expected[0, 17:21, 25:28] = 200
    expected[1, 22:25, 16:20] = 200  # x = 30 - (10 to 14), y = 2 + (20 to 23)
    assert torch.equal(moved[:2], expected[:2])
    assert (moved[2, 21:27, 20:23] == 200).all() and (moved[2, 29:] == 0).all()


def test_affine_style_keeps_digits_whole() -> None:
    rng = np.random.default_rng(0)
    images = torch.zeros(400, 1, 28, 28, dtype=torch.uint8)
    for i in range(400):
        top, left = rng.integers(2, 8, 2)
        images[i, 0, top : top + 18, left : left + 14] = 255
    made = affine_style(images, seed=3)
    assert torch.equal(made, affine_style(images, seed=3))
    assert not torch.equal(made, affine_style(images, seed=4))
    ink = made.double().sum((1, 2, 3)) / 255
    # The area scales by the determinant sx * sy, so 0.64 to 1.44, and nothing is cut off.
    ratio = ink / (18 * 14)
    assert ratio.min() > 0.62 and ratio.max() < 1.47
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)
    assert ratio.std() == pytest.approx(((1 + 0.16 / 12) ** 2 - 1) ** 0.5, rel=0.15)
    touched = (made > 0).any(0)[0]
    assert touched[1].any() and touched[-2].any() and touched[:, 1].any() and touched[:, -2].any()


def test_resize_is_exact_for_constant_images_and_keeps_range() -> None:
    flat = torch.full((2, 3, 9, 5), 77, dtype=torch.uint8)
    assert (resize(flat, 32) == 77).all()
    noise = torch.randint(0, 256, (2, 1, 8, 8), dtype=torch.uint8)
    assert resize(noise, 8).equal(noise)
    with pytest.raises(ScaeError):
        resize(noise, 0)
