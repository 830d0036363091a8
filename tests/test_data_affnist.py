"""Original affNIST files, and images in their style."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.io import savemat

import data_files
from data_files import refuse
from scae.data import load_images
from scae.data.affnist import affine_style, warp


def test_batches_and_single_files(tmp_path: Path) -> None:
    folder = tmp_path / "affnist"
    second = data_files.write_affnist(folder / "test_batches" / "2.mat", seed=2)
    tenth = data_files.write_affnist(folder / "test_batches" / "10.mat", seed=10)
    data = load_images("affnist", "test", tmp_path)
    np.testing.assert_array_equal(data.images[:, 0], np.concatenate([second, tenth]))
    assert data.labels.tolist() == [0, 1, 2, 3, 4, 5, 6] * 2
    single = data_files.write_affnist(folder / "validation.mat", seed=3)
    found = load_images("affnist", "validation", tmp_path).images[:, 0]
    np.testing.assert_array_equal(found, single)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"image": np.zeros((1599, 2), np.uint8), "label_int": np.zeros(2)}, "(1599, 2)"),
        ({"image": np.zeros((1600, 2), np.uint8)}, "label_int"),
        ({"image": np.zeros((1600, 2), np.uint8), "label_int": np.full(2, 10)}, "label 10"),
        ({"image": np.zeros((1600, 2), np.uint8), "label_int": np.zeros(3)}, "3 labels"),
        (np.eye(2), "label_int"),
        (None, "affNISTdata"),
    ],
)
def test_bad_files(tmp_path: Path, fields: object, words: str) -> None:
    path = tmp_path / "affnist" / "test.mat"
    path.parent.mkdir()
    savemat(path, {"other": 1} if fields is None else {"affNISTdata": fields})
    refuse(lambda: load_images("affnist", "test", tmp_path), str(path), words)


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
    # The area scales by the determinant sx * sy, so 0.64 to 1.44, and nothing is cut off.
    ratio = made.double().sum((1, 2, 3)) / 255 / (18 * 14)
    assert ratio.min() > 0.62 and ratio.max() < 1.47
    assert ratio.mean() == pytest.approx(1.0, abs=0.02)
    assert ratio.std() == pytest.approx(((1 + 0.16 / 12) ** 2 - 1) ** 0.5, rel=0.15)
    touched = (made > 0).any(0)[0]
    assert touched[1].any() and touched[-2].any() and touched[:, 1].any() and touched[:, -2].any()
