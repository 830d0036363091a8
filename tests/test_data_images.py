"""The one reader of image layouts, and padding, resizing and affine maps of images."""

import numpy as np
import pytest
import torch

from data_files import refuse
from scae.data import from_arrays
from scae.data.images import image_array
from scae.data.transforms import affine_style, pad_and_shift, resize, warp

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (4, 3, 6, 7)).astype(np.uint8)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, lambda a: a.tolist()])
def test_layouts(kind) -> None:
    for given in (COLOUR, np.ascontiguousarray(COLOUR.transpose(0, 2, 3, 1))):
        np.testing.assert_array_equal(image_array(kind(given)), COLOUR)
        np.testing.assert_array_equal(image_array(kind(given), "x", 3, (6, 7)), COLOUR)
        np.testing.assert_array_equal(image_array(kind(given[0]), "x", 3, (6, 7)), COLOUR[:1])
    grey = COLOUR[:, 0]
    for given in (grey, grey[:, None], np.ascontiguousarray(grey[..., None])):
        np.testing.assert_array_equal(image_array(kind(given)), grey[:, None])
        np.testing.assert_array_equal(image_array(kind(given[0]), "x", 1, (6, 7))[0, 0], grey[0])
    refuse(lambda: image_array(grey[0], "`images`", 3, (6, 7)), "`images`", "3 channels of 6x7")


def test_types() -> None:
    assert image_array(COLOUR.astype(np.int16)).dtype == torch.uint8
    assert image_array(COLOUR > 9).unique().tolist() == [0, 255]
    assert image_array(COLOUR / 255.0).dtype == torch.float32
    data = from_arrays(COLOUR / 255.0)
    np.testing.assert_array_equal(data.images, COLOUR)
    assert data.summary == "images all: 4 images of 6x7x3, no labels"
    assert image_array(np.full((1, 2, 2), 1.00001)).max() == 1  # rounding over the edge
    np.testing.assert_array_equal(image_array(COLOUR[:, ::-1]), COLOUR[:, ::-1])


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.full((2, 4, 4), np.nan), "nan"),
        (np.full((2, 4, 4), 1e300), "1e+300"),
        (np.full((2, 4, 4), 256), "256"),
        (np.zeros((2, 4)), "(2, 4)"),
        (np.zeros((2, 4, 4, 2)), "(2, 4, 4, 2)"),
        (np.zeros((0, 4, 4)), "(0, 4, 4)"),
        ([[[1, 2], [3]]], "numbers"),
    ],
)
def test_bad_pixels(images, words: str) -> None:
    refuse(lambda: from_arrays(images, name="mine.npz"), "mine.npz", words)


@pytest.mark.parametrize("labels", [[0, 1, 2], [0.5, 1], [-1, 0], ["a", "b"]])
def test_bad_labels(labels: list) -> None:
    refuse(lambda: from_arrays(np.zeros((2, 4, 4)), labels, "mine.npz"), "mine.npz", "labels")


def test_pad_and_shift_against_plain_slices() -> None:
    images = torch.from_numpy(RNG.integers(1, 256, (20, 2, 28, 28)).astype(np.uint8))
    shifts = torch.from_numpy(RNG.integers(-6, 7, (20, 2)))
    expected = torch.zeros(20, 2, 40, 40, dtype=torch.uint8)
    for i, (down, right) in enumerate(shifts.tolist()):
        expected[i, :, 6 + down : 34 + down, 6 + right : 34 + right] = images[i]
    assert torch.equal(pad_and_shift(images, 40, shifts), expected)
    # Without a canvas, what leaves the frame is lost and black comes in.
    off = pad_and_shift(images[:1], None, torch.tensor([[2, -3]]))
    assert torch.equal(off[0, :, 2:, :-3], images[0, :, :-2, 3:])
    assert (off[0, :, :2] == 0).all() and (off[0, :, :, -3:] == 0).all()
    refuse(lambda: pad_and_shift(images, 20, shifts), "canvas of 20")


def test_resize_is_exact_for_constant_images_and_the_same_size() -> None:
    assert (resize(torch.full((2, 3, 9, 5), 77, dtype=torch.uint8), 32) == 77).all()
    noise = torch.randint(0, 256, (2, 1, 8, 8), dtype=torch.uint8)
    assert resize(noise, 8).equal(noise)


def test_warp_moves_pixels_where_the_map_says() -> None:
    images = torch.zeros(3, 1, 28, 28, dtype=torch.uint8)
    images[:, 0, 10:14, 20:23] = 200  # rows 10 to 13, columns 20 to 22
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]])  # (x, y) -> (-y, x)
    linear = torch.stack([torch.eye(2), turn, torch.diag(torch.tensor([1.0, 2.0]))])
    shift = torch.tensor([[5.0, 7.0], [30.0, 2.0], [0.0, 0.0]])
    moved = warp(images, linear, shift)[:, 0]
    expected = torch.zeros(2, 40, 40, dtype=torch.uint8)
    expected[0, 17:21, 25:28] = 200
    expected[1, 22:25, 16:20] = 200  # x = 30 - (10 to 14), y = 2 + (20 to 23)
    assert torch.equal(moved[:2], expected)
    assert (moved[2, 21:27, 20:23] == 200).all() and (moved[2, 29:] == 0).all()


def test_affine_style_keeps_digits_whole() -> None:
    images = torch.zeros(400, 1, 28, 28, dtype=torch.uint8)
    for image, (top, left) in zip(images[:, 0], RNG.integers(2, 8, (400, 2)), strict=True):
        image[top : top + 18, left : left + 14] = 255
    made = affine_style(images, seed=3)
    assert torch.equal(made, affine_style(images, seed=3))
    assert not torch.equal(made, affine_style(images, seed="test"))
    # The area scales by the determinant sx * sy, so 0.64 to 1.44, and nothing is cut off.
    ratio = made.double().sum((1, 2, 3)) / 255 / (18 * 14)
    assert ratio.min() > 0.62 and ratio.max() < 1.47
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)
    assert ratio.std() == pytest.approx(((1 + 0.16 / 12) ** 2 - 1) ** 0.5, rel=0.15)
    touched = (made > 0).any(0)[0]
    assert touched[1].any() and touched[-2].any() and touched[:, 1].any() and touched[:, -2].any()
