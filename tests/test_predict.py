"""Predictions: stable cluster numbers, tables of images and points, sentences for mistakes."""

import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from scae.api import Loaded, load
from scae.config import ImageDataConfig
from scae.data import from_arrays
from scae.errors import ScaeError
from scae.evaluation import fit_kmeans
from scae.gallery import GALLERY, write_gallery
from scae.inference import presences
from scae.prediction import CLUSTERS, keep_clusters, predict, read_clusters
from scae.weights_file import save_weights
from small_models import IMAGE_EXPERIMENT, image_capsules, point_capsules

IMAGES = np.random.default_rng(0).integers(0, 256, (30, 14, 12), dtype=np.uint8)


@pytest.fixture
def run(tmp_path: Path) -> Loaded:
    """A run folder of a model of 14x12 images that were in an .npz file."""
    np.savez(tmp_path / "train.npz", images=IMAGES)
    data = ImageDataConfig(name=str(tmp_path / "train.npz"))
    experiment = replace(IMAGE_EXPERIMENT, data=data)
    save_weights(image_capsules().model, experiment, tmp_path / "weights.safetensors")
    return load(tmp_path)


def clusters_of(loaded: Loaded, data: object) -> list[object]:
    return [row[1] for row in predict(loaded, data).rows]


def test_kept_clusters_give_stable_numbers_one_by_one(run: Loaded, tmp_path: Path) -> None:
    assert read_clusters(tmp_path) is None
    assert keep_clusters(run) == tmp_path / GALLERY
    prior, _ = presences(run.model, torch.from_numpy(IMAGES)[:, None])
    expected = fit_kmeans(prior, 2).predict(prior).tolist()
    found = predict(run, str(tmp_path / "train.npz"))
    assert [row[1] for row in found.rows] == expected and found.note == ""
    assert [row[2] for row in found.rows] == prior.argmax(1).tolist()
    assert sum(found.sizes.values()) == 30
    for i in range(3):
        path = tmp_path / f"{i}.png"
        Image.fromarray(IMAGES[i]).save(path)
        assert clusters_of(run, path) == [expected[i]]
    assert clusters_of(run, [tmp_path / "0.png", tmp_path / "2.png"]) == [expected[0], expected[2]]
    assert clusters_of(run, IMAGES[::-1]) == expected[::-1]


def test_unreadable_images_are_left_out_with_a_count_or_refused(
    run: Loaded, tmp_path: Path
) -> None:
    keep_clusters(run)
    folder = tmp_path / "folder"
    folder.mkdir()
    Image.fromarray(IMAGES[0]).save(folder / "a.png")
    (folder / "b.png").write_bytes(b"no image")
    with pytest.warns(UserWarning, match=r"1 of 2 images .* cannot be read.*b\.png"):
        assert [row[0] for row in predict(run, folder).rows] == ["a.png"]
    with pytest.raises(ScaeError, match=r"1 of 2 images .* cannot be read.*b\.png"):
        predict(run, folder, strict=True)


def test_without_kept_clusters_a_note_says_so(run: Loaded, tmp_path: Path) -> None:
    found = predict(run, IMAGES)
    assert "keeps no 2 clusters" in found.note and set(found.sizes) == {0, 1}
    keep_clusters(run)
    assert predict(run, IMAGES, clusters=2).note == ""
    other = predict(run, IMAGES, clusters=3)
    assert "keeps no 3 clusters" in other.note and set(other.sizes) == {0, 1, 2}
    other.write(tmp_path / "out.csv")
    assert (tmp_path / GALLERY).is_file()
    head, *rows = (tmp_path / "out.csv").read_text().splitlines()
    assert head == "file,cluster,strongest_object,presence" and len(rows) == 30


def test_the_gallery_shows_each_cluster_with_the_nearest_first(tmp_path: Path) -> None:
    grey = np.arange(60, dtype=np.uint8)  # image i is of grey i
    data = from_arrays(np.broadcast_to(grey[:, None, None], (60, 6, 5)), name="<greys>")
    prior = np.linspace(0, 1, 60)[:, None].astype(np.float32)
    centres = np.array([[0.1], [0.9], [5.0]], np.float32)
    text = write_gallery(tmp_path / GALLERY, "a & b", data, prior, centres).read_text()
    assert "a &amp; b" in text and "&lt;greys&gt;" in text and "://" not in text
    found = [
        [Image.open(BytesIO(b64decode(uri))) for uri in re.findall(r"base64,([^\"]+)", section)]
        for section in text.split("<section")[1:]
    ]
    assert [len(pictures) for pictures in found] == [30, 30, 0]
    assert found[0][0].size == (5, 6) and ">30 images, 50.0 %<" in text
    for pictures, centre in zip(found, centres[:, 0], strict=True):
        greys = np.array([picture.getpixel((0, 0)) for picture in pictures])
        assert (np.diff(np.abs(greys / 59 - centre)) > -1e-6).all()


def test_bad_input_is_one_sentence(run: Loaded, tmp_path: Path) -> None:
    with pytest.raises(ScaeError, match="40 clusters were asked for with 30"):
        predict(run, IMAGES, clusters=40)
    with pytest.raises(ScaeError, match="this model takes 14x12"):
        predict(run, np.zeros((2, 9, 9), np.uint8))
    with pytest.raises(ScaeError, match="neither a data set"):
        predict(run, "nowhere")
    (tmp_path / CLUSTERS).write_bytes(b"no tensors")
    with pytest.raises(ScaeError, match="not a readable safetensors file"):
        predict(run, IMAGES)


def test_points_get_their_objects(tmp_path: Path) -> None:
    capsules = point_capsules()
    loaded = Loaded(capsules.model, capsules.experiment)
    text = "scene,x,y\na,10,10\na,12,10\nb,10,30\na,11,15\n"
    (tmp_path / "points.csv").write_text(text)
    found = predict(loaded, tmp_path / "points.csv")
    assert found.header == ("scene", "point", "x", "y", "object")
    assert [row[:4] for row in found.rows] == [
        ("a", 0, 10.0, 10.0),
        ("a", 1, 12.0, 10.0),
        ("a", 2, 11.0, 15.0),
        ("b", 0, 10.0, 30.0),
    ]
    scene = capsules.segment(np.array([[10, 10], [12, 10], [11, 15.0]]))[0]
    assert [row[4] for row in found.rows[:3]] == scene.tolist()
    with pytest.raises(ScaeError, match="leave out --clusters"):
        predict(loaded, "constellations", clusters=2)
