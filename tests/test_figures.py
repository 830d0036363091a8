"""Figures of images and constellations from small untrained models."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from PIL import Image

from scae.api import Loaded
from scae.config import ConstellationExperiment, ImageDataConfig, ImageExperiment
from scae.errors import ScaeError
from scae.figures import FIGURE_LIST, make, make_figures
from scae.figures.constellations import wrong_points
from scae.figures.embedding import embed
from scae.figures.reconstructions import red_and_green
from scae.figures.sweep import STEPS, swept_votes
from scae.geometry import compose, pose_from_parameters
from scae.models import build
from small_models import IMAGES, POINTS

METRICS = {
    "step": [0.0, 1.0, 2.0],
    "loss": [3.0, 2.0, 1.0],
    "image_ll": [1.0, float("nan"), 2.0],
    "diagnostics/objects_in_use": [float("nan"), 4.0, 4.0],
}
RESULT = {"dataset": "digits", "confusion": {"prior": {"train-test": [[3, 1, 0], [0, 2, 1]]}}}


def loaded_images(folder: Path, **fields: Any) -> Loaded:
    """A small model of the embedded digits, in colour if `fields` say so."""
    torch.manual_seed(0)
    model = replace(IMAGES, image_size=(28, 28), **fields)
    experiment = ImageExperiment("test", "no paper", model, data=ImageDataConfig(name="digits"))
    return Loaded(build(model).eval(), experiment, folder)


def loaded_points(folder: Path, **fields: Any) -> Loaded:
    torch.manual_seed(0)
    experiment = ConstellationExperiment("test", "no paper", replace(POINTS, **fields))
    return Loaded(build(experiment.model).eval(), experiment, folder)


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("SCENES", 40), ("LOOKED_AT", 40), ("EXAMPLES", 3)):
        monkeypatch.setattr(make, name, value)
    monkeypatch.setattr("scae.figures.embedding.MAX_POINTS", 40)


def test_all_figures_of_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(make, "run_metrics", lambda folder: METRICS)
    before = mpl.rcParams["font.size"]
    paths = make_figures(loaded_images(tmp_path), tmp_path / "figures", result=RESULT)
    assert mpl.rcParams["font.size"] == before, "the style stays inside"
    names = ["templates", "reconstructions", "object-sweep", "tsne", "confusion", "usage", "curves"]
    assert [path.name for path in paths] == [f"{name}.png" for name in names]
    for path in paths:
        pixels = np.asarray(Image.open(path).convert("L"))
        assert min(pixels.shape) > 200 and pixels.std() > 5, path
    listed = json.loads((tmp_path / "figures" / FIGURE_LIST).read_text())
    assert [entry["name"] for entry in listed["figures"]] == names
    assert all(len(entry["caption"]) > 80 and entry["title"] for entry in listed["figures"])
    assert "digits" in listed["data"] and listed["diagnosis"]


def test_figures_of_constellations(tmp_path: Path) -> None:
    paths = make_figures(loaded_points(tmp_path), tmp_path)
    assert {path.stem for path in paths} == {"constellations", "usage"}
    baseline = make_figures(loaded_points(tmp_path, decoder="baseline"), tmp_path / "baseline")
    assert {path.stem for path in baseline} == {"constellations", "usage"}


def test_figures_by_name_join_the_list(tmp_path: Path) -> None:
    loaded = loaded_images(tmp_path)
    make_figures(loaded, tmp_path, names=["usage"])
    make_figures(loaded, tmp_path, names=["templates"])
    listed = json.loads((tmp_path / FIGURE_LIST).read_text())["figures"]
    assert [entry["name"] for entry in listed] == ["templates", "usage"]
    with pytest.raises(ScaeError, match="did you mean 'templates'"):
        make_figures(loaded, tmp_path, names=["template"])
    with pytest.raises(ScaeError, match="it has constellations"):
        make_figures(loaded_points(tmp_path), tmp_path, names=["confusion matrix"])


def test_colour_images_with_edge_targets(tmp_path: Path) -> None:
    loaded = loaded_images(tmp_path, channels=3, target="sobel", alpha="coupled")
    grey = make.examples(loaded, None)
    colour = replace(grey, images=grey.images.expand(-1, 3, -1, -1), labels=None)
    names = ["templates", "reconstructions", "tsne"]
    paths = make_figures(loaded, tmp_path, names=names, data=colour)
    assert [path.stem for path in paths] == names


def test_red_and_green_make_yellow() -> None:
    image = np.ones((1, 2, 2))
    assert red_and_green(image, None)[:, 0, 0].tolist() == [1, 0, 0]
    assert red_and_green(None, image)[:, 0, 0].tolist() == [0, 1, 0]
    assert red_and_green(image, image)[:, 0, 0].tolist() == [1, 1, 0]


def test_wrong_points_follow_the_best_match() -> None:
    segments, pattern = np.array([2, 2, 2, 0, 0]), np.array([0, 0, 1, 1, 1])
    assert wrong_points(segments, pattern).tolist() == [False, False, True, False, False]
    assert wrong_points(segments[:0], pattern[:0]).tolist() == []


def test_an_unmoved_object_votes_as_before() -> None:
    torch.manual_seed(0)
    pose = pose_from_parameters(torch.randn(6))
    relation = pose_from_parameters(torch.randn(4, 6))
    votes = swept_votes(pose, relation, torch.ones(4))
    assert votes.shape == (4, STEPS, 4, 2, 3)
    for sweep in (0, 2, 3):  # the middle of rotation and shifts changes nothing
        torch.testing.assert_close(votes[sweep, STEPS // 2], compose(pose, relation))
    centre = votes[..., 2].mean(2)  # turning and scaling keep the object in its place
    torch.testing.assert_close(centre[:2], centre[:2, :1].expand(2, STEPS, 2))


def test_embedding_is_a_sample_and_repeats() -> None:
    presences = np.random.default_rng(0).random((60, 4)).astype(np.float32)
    points, rows = embed(presences)
    assert points.shape == (40, 2) and len(set(rows.tolist())) == 40
    again, _ = embed(presences)
    np.testing.assert_array_equal(points, again)
