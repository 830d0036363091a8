"""The one reader of image layouts, and image data in memory."""

import numpy as np
import pytest
import torch

from data_files import refuse
from scae.data import ImageData, from_arrays, image_array

RNG = np.random.default_rng(0)
COLOUR = RNG.integers(0, 256, (4, 3, 6, 7)).astype(np.uint8)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy, lambda a: a.tolist()])
def test_layouts_of_batches(kind) -> None:
    for given in (COLOUR, np.ascontiguousarray(COLOUR.transpose(0, 2, 3, 1))):
        np.testing.assert_array_equal(image_array(kind(given)), COLOUR)
        np.testing.assert_array_equal(image_array(kind(given), "x", 3, (6, 7)), COLOUR)
    grey = COLOUR[:, 0]
    for given in (grey, grey[:, None], np.ascontiguousarray(grey[..., None])):
        np.testing.assert_array_equal(image_array(kind(given)), grey[:, None])


def test_layouts_of_single_images_of_known_size() -> None:
    for given in (COLOUR[0], COLOUR[0].transpose(1, 2, 0)):
        np.testing.assert_array_equal(image_array(given, "x", 3, (6, 7)), COLOUR[:1])
    grey = COLOUR[0, 0]
    for given in (grey, grey[None], grey[..., None]):
        np.testing.assert_array_equal(image_array(given, "x", 1, (6, 7))[0, 0], grey)
    refuse(lambda: image_array(grey, "`images`", 3, (6, 7)), "`images`", "3 channels of 6x7")


def test_types() -> None:
    assert image_array(COLOUR.astype(np.int16)).dtype == torch.uint8
    assert image_array(COLOUR > 9).unique().tolist() == [0, 255]
    floats = image_array(COLOUR / 255.0)
    assert floats.dtype == torch.float32 and floats.min() >= 0 and floats.max() <= 1
    np.testing.assert_array_equal(from_arrays(COLOUR / 255.0).images, COLOUR)
    assert image_array(np.full((1, 2, 2), 1.00001)).max() == 1  # rounding over the edge
    np.testing.assert_array_equal(image_array(COLOUR[:, ::-1]), COLOUR[:, ::-1])


@pytest.mark.parametrize(
    ("images", "words"),
    [
        (np.full((2, 4, 4), np.nan), "nan"),
        (np.full((2, 4, 4), 1e300), "inf"),
        (np.full((2, 4, 4), 1.5), "1.5"),
        (np.full((2, 4, 4), -0.1), "-0.1"),
        (np.full((2, 4, 4), 256), "256"),
        (np.zeros((2, 4)), "(2, 4)"),
        (np.zeros((2, 4, 4, 2)), "(2, 4, 4, 2)"),
        (np.zeros((0, 4, 4)), "no images"),
        (np.full((2, 4, 4), "a"), "numbers"),
        (np.zeros((2, 4, 4), complex), "complex"),
        ([[[1, 2], [3]]], "numbers"),
    ],
)
def test_bad_pixels(images, words: str) -> None:
    refuse(lambda: from_arrays(images, name="mine.npz"), "mine.npz", words)


@pytest.mark.parametrize(
    "labels", [np.arange(3), np.array([0.5, 1]), np.array([-1, 0]), np.array([[0, 1], [1, 0]])]
)
def test_bad_labels(labels: np.ndarray) -> None:
    refuse(lambda: from_arrays(np.zeros((2, 4, 4)), labels, "mine.npz"), "mine.npz", "labels")


def test_floats_are_in_the_unit_interval() -> None:
    data = ImageData(torch.full((4, 3, 2, 2), 255, dtype=torch.uint8), None, "white", "all")
    assert (data.floats(1, 3) == 1).all() and len(data.floats(1, 3)) == 2
    assert data.summary == "white all: 4 images of 2x2x3, no labels"
