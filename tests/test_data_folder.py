"""Folders of people's own images."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import data_files
from data_files import refuse
from scae.config import ImageDataConfig
from scae.data import load_images


def test_with_and_without_classes(tmp_path: Path) -> None:
    flat = tmp_path / "flat"
    pixels = [data_files.write_image(flat / f"{i}.png", seed=i) for i in range(3)]
    data = load_images(str(flat), "train")
    np.testing.assert_array_equal(data.images.permute(0, 2, 3, 1), np.stack(pixels))
    assert data.labels is None and data.files == ("0.png", "1.png", "2.png")
    assert data.split == "all" and len(load_images(str(flat), "train+test")) == 3
    classed = tmp_path / "classed"
    for name in ("b/2.png", "a/1.png", "b/1.png", ".hidden/1.png"):
        data_files.write_image(classed / name, mode="L")
    data = load_images(str(classed), "test")
    assert data.labels.tolist() == [0, 1, 1] and data.classes == ("a", "b")
    assert data.files == ("a/1.png", "b/1.png", "b/2.png") and data.images.shape[1:] == (1, 7, 9)
    data_files.write_image(classed / "beside.png", mode="L")
    refuse(lambda: load_images(str(classed)), str(classed), "class folders such as 'a'")


def test_splits(tmp_path: Path) -> None:
    data_files.write_image(tmp_path / "train" / "only" / "1.png")
    data_files.write_image(tmp_path / "test" / "only" / "1.png", seed=1)
    assert len(load_images(str(tmp_path), "train+test")) == 2
    refuse(lambda: load_images(str(tmp_path), "validation"), "splits train, test")
    data_files.write_image(tmp_path / "test" / "only" / "1.png", (8, 8))
    refuse(lambda: load_images(str(tmp_path), "train+test"), "differ in image size")


def test_mixed_sizes_colours_and_transparency(tmp_path: Path) -> None:
    pixels = data_files.write_image(tmp_path / "a.png", (8, 8), "RGBA")
    grey = data_files.write_image(tmp_path / "b.png", (8, 8), "L")
    images = load_images(str(tmp_path)).images.permute(0, 2, 3, 1)
    np.testing.assert_allclose(images[0], pixels[..., :3] * (pixels[..., 3:] / 255.0), atol=1)
    np.testing.assert_array_equal(images[1], np.stack([grey] * 3, -1))
    data_files.write_image(path := tmp_path / "c.jpg", (20, 10))
    refuse(lambda: load_images(str(tmp_path)), str(path), "10 pixels high and 20 wide", "data.size")
    assert load_images(ImageDataConfig(str(tmp_path), size=8)).images.shape == (3, 3, 8, 8)


def test_unreadable_images_are_left_out_and_named(tmp_path: Path) -> None:
    for name in ("a/1.png", "b/1.png", "b/2.png"):
        data_files.write_image(tmp_path / name, (40, 40))
    path = tmp_path / "b" / "1.png"
    whole = path.read_bytes()
    postscript = b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n"
    Image.new("I;16", (40, 40)).save(path)
    deep = path.read_bytes()
    Image.new("1", (9_000, 9_000)).save(path)
    for content, words in {
        path.read_bytes(): "9000x9000",
        deep: "mode is I;16",
        b"": "an image",
        whole[: len(whole) // 2]: "an image",
        postscript: "an image",
    }.items():
        path.write_bytes(content)
        with pytest.warns(UserWarning, match=rf"1 of 3 images .*1\.png.*{words}"):
            data = load_images(str(tmp_path))
        assert data.files == ("a/1.png", "b/2.png") and data.labels.tolist() == [0, 1]
        strict = ImageDataConfig(str(tmp_path), strict=True)
        refuse(lambda c=strict: load_images(c), "1 of 3 images", str(path), words)


def test_nothing_to_read(tmp_path: Path) -> None:
    refuse(lambda: load_images(str(tmp_path)), str(tmp_path), "no images")
    refuse(lambda: load_images(str(tmp_path / "none")), "none", "neither a data set")
    (tmp_path / "a.png").write_bytes(b"nothing")
    refuse(lambda: load_images(str(tmp_path)), "1 of 1 images", "a.png")
